"""Runs work on many workers: threads and processes of this machine, or the actors of a Ray cluster.

A worker is named by an importable factory, so that any machine can build it, and exchanges plain
values with whoever employs it. What the work is about is the caller's business.
"""

from podium.compute.executor import Call, Executor, Reply
from podium.compute.local import ProcessExecutor, ThreadExecutor
from podium.compute.worker import Greeting, Worker, WorkerSpec

__all__ = [
    "Call", "Executor", "Greeting", "ProcessExecutor", "Reply", "ThreadExecutor", "Worker",
    "WorkerSpec",
]  # fmt: skip
