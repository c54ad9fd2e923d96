"""Employs workers on this machine: one that many threads share, or a process for each."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from queue import Empty, SimpleQueue
from typing import Any, cast

from podium.compute.crew import CrewExecutor, WorkerLost
from podium.compute.executor import NOTHING, Call, Reply, check_workers, run_all
from podium.compute.worker import (
    Greeting,
    HostedWorker,
    Values,
    Welcome,
    WorkerSpec,
    as_object,
    welcome_all,
)

_FAREWELL_S = 2.0

_BOOT = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[2]); "
    "from podium.compute.local import serve; serve(int(sys.argv[1]))"
)


class ThreadExecutor:
    """Runs calls on threads that share one worker: for work that waits, or releases the GIL."""

    def __init__(self, spec: WorkerSpec, threads: int, welcome: Welcome = welcome_all) -> None:
        check_workers(threads)
        self.worker = spec.build(threads)
        self._threads = ThreadPoolExecutor(threads)
        self._welcome = welcome
        self._is_ready = False
        self._waiting: dict[Future[Values], Call] = {}
        self._done: SimpleQueue[Future[Values]] = SimpleQueue()

    def get_ready(self) -> None:
        """Starts the worker."""
        if not self._is_ready:
            facts = self.worker.get_ready()
            self._welcome(Greeting(socket.gethostname(), os.getpid(), facts))
            self._is_ready = True

    def run(self, calls: Sequence[Call], shared: Values = NOTHING) -> Iterator[Reply]:
        """Yields the reply to each call as soon as it is there; an error is the task's own."""
        return run_all(self, calls, shared)

    def send(self, call: Call, shared: Values = NOTHING) -> None:
        """Puts a call behind those that were sent before."""
        future = self._threads.submit(self.worker.perform, call.task, shared)
        self._waiting[future] = call
        future.add_done_callback(self._done.put)

    def receive(self, timeout_s: float) -> list[Reply]:
        """Returns the replies that are there, after a wait for the first; an error is raised."""
        found = []
        with suppress(Empty):
            found.append(self._done.get(timeout=timeout_s))
            while True:
                found.append(self._done.get_nowait())
        known = [(self._waiting.pop(each), each) for each in found if each in self._waiting]
        return [Reply(call.key, future.result()) for call, future in known]

    def drop(self) -> None:
        """Forgets all calls that are not answered yet; nobody hears of those under way."""
        waiting, self._waiting = self._waiting, {}
        for future in waiting:
            future.cancel()

    def close(self) -> None:
        """Ends the worker."""
        self.worker.close()
        self._threads.shutdown(cancel_futures=True)


class ProcessExecutor(CrewExecutor):
    """Keeps a process for each worker: for work that computes in Python, or that may crash."""

    def __init__(self, spec: WorkerSpec, workers: int, welcome: Welcome = welcome_all) -> None:
        check_workers(workers)
        super().__init__(ProcessHost(), spec, workers, welcome)


@dataclass(frozen=True, slots=True, eq=False)
class WorkerProcess:
    """A child process and the connection to the worker in it."""

    process: subprocess.Popen[bytes]
    connection: Connection[Any, Any]

    def fileno(self) -> int:
        """Names the connection to whoever waits for it."""
        return self.connection.fileno()


class ProcessHost:
    """Starts workers in child processes; an answer is waited for at the process itself."""

    def start(self, spec: WorkerSpec) -> tuple[WorkerProcess, WorkerProcess]:
        """Starts a worker; the program that employs it is not imported again by the child."""
        ours, theirs = Pipe()
        with theirs:
            handle = theirs.fileno()
            # Nothing is imported from the working folder.
            command = [sys.executable, "-P", "-c", _BOOT, str(handle), json.dumps(sys.path)]
            # Standard output is for results: what a worker prints goes to standard error.
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=2, pass_fds=[handle]
            )
        made = WorkerProcess(process, ours)
        _send(ours, as_object(spec))
        return made, made

    def share(self, values: Values) -> Values:
        """Leaves values as they are: they are copied with every call."""
        return values

    def call(self, worker: WorkerProcess, task: Values, shared: Values) -> WorkerProcess:
        """Sends a task to an idle worker."""
        _send(worker.connection, (dict(task), dict(shared)))
        return worker

    def wait(self, answers: Sequence[WorkerProcess], timeout_s: float) -> Sequence[WorkerProcess]:
        """Waits until a worker answers, or its process is gone."""
        return cast("list[WorkerProcess]", wait(cast("Any", answers), timeout_s))

    def receive(self, answer: WorkerProcess) -> Values:
        """Reads what a worker answers."""
        try:
            found: Values = answer.connection.recv()
        except (EOFError, OSError) as error:
            raise WorkerLost(_death_of(answer.process)) from error
        return found

    def kill(self, worker: WorkerProcess) -> None:
        """Ends a process, dead or alive."""
        worker.connection.close()
        worker.process.kill()
        worker.process.wait()

    def close(self, workers: Sequence[WorkerProcess]) -> None:
        """Hangs up, which ends a worker in order; who takes too long is killed."""
        for each in workers:
            each.connection.close()
        deadline_s = time.monotonic() + _FAREWELL_S
        for each in workers:
            with suppress(subprocess.TimeoutExpired):
                each.process.wait(max(0.0, deadline_s - time.monotonic()))
            self.kill(each)

    def advice(self, reason: str) -> tuple[str, str]:
        """Returns what to do when no process starts."""
        del reason
        return "this machine", "see the standard error output of the workers"


def serve(handle: int) -> None:
    """Runs a worker in this process for whoever holds the other end of a connection."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # ctrl-C reaches the employer, who hangs up
    connection: Connection[Any, Any] = Connection(handle)
    worker = HostedWorker(connection.recv())
    calls: SimpleQueue[tuple[Values, Values]] = SimpleQueue()
    threading.Thread(target=_take_calls, args=(connection, worker, calls), daemon=True).start()
    _send(connection, worker.get_ready())
    while True:
        _send(connection, worker.perform(*calls.get()))


def _take_calls(
    connection: Connection[Any, Any],
    worker: HostedWorker,
    calls: SimpleQueue[tuple[Values, Values]],
) -> None:
    """Answers calls until the parent hangs up or dies; then nothing is worth finishing."""
    try:
        while True:
            calls.put(connection.recv())
    except (EOFError, OSError):
        worker.close()
    finally:
        os._exit(0)


def _send(connection: Connection[Any, Any], values: Any) -> None:
    # Whoever waits for the other end finds out that it is gone.
    with suppress(OSError):
        connection.send(values)


def _death_of(process: subprocess.Popen[bytes]) -> str:
    with suppress(subprocess.TimeoutExpired):
        process.wait(_FAREWELL_S)
    code = process.returncode
    if code is None:
        return "its process closed the connection"
    return (
        f"its process was killed by {signal.Signals(-code).name}"
        if code < 0
        else (f"its process ended with exit code {code}")
    )
