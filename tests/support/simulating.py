"""Is work for executors that has nothing to do with a search: first-fit on seeds."""

import os
import signal
from pathlib import Path

from podium.compute import WorkerSpec
from podium.errors import InputError, MissingError
from podium.policies import load
from podium.sim import Setup, simulate
from podium.traces import LoadOptions, load_trace

FACTORY = "support.simulating:open_simulator"
SPEC = WorkerSpec(FACTORY, {"policy": "first-fit"})


def open_simulator(setup, threads):
    """Makes a worker as executors ask for it."""
    return Simulator(setup, threads)


class Simulator:
    """Simulates a policy on seeds, and goes wrong in whatever way a task asks for."""

    def __init__(self, setup, threads):
        if setup.get("dies_at_start"):
            os.kill(os.getpid(), signal.SIGKILL)
        self.policy, self.threads = load(setup["policy"]), threads

    def get_ready(self):
        """Tells the policy's name."""
        return {"policy": self.policy.name, "threads": self.threads}

    def perform(self, task, shared):
        """Simulates one seed; a task with a mark is troubled until somebody left the mark."""
        mark = Path(task["mark"]) if "mark" in task else None
        if mark is not None and not mark.exists():
            mark.touch()
            TROUBLES[task["trouble"]]()
        if "trouble" in task and mark is None:
            TROUBLES[task["trouble"]]()
        size = {"nodes": shared["nodes"], "pods": shared["pods"]}
        trace = load_trace("openb", LoadOptions(seed=task["seed"], **size))
        setup = Setup(task["seed"], tier="python")
        return {"digest": simulate(trace.cluster, trace.workload, self.policy, setup=setup).digest}

    def close(self):
        """Ends nothing."""


def _die():
    os.kill(os.getpid(), signal.SIGKILL)


def _miss():
    raise MissingError("no traces on this machine")


def _object():
    raise InputError("a seed that nobody can use", where="seed", hint="use another")


def _crash():
    raise ZeroDivisionError("a bug of the worker")


TROUBLES = {"die": _die, "miss": _miss, "object": _object, "crash": _crash}
