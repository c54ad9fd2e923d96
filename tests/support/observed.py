"""Makes observations, learns from them, and does both from processes of their own.

    python -m support.observed write URL SOURCE COUNT
    python -m support.observed learn URL SOURCE COUNT

Both say "ready" and wait for a line. `write` adds COUNT observations from eight threads and prints
the id of each as soon as it is acknowledged. `learn` does so without printing while it follows the
store, says "written", waits for another line, and prints what it has learned.
"""

import json
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from podium.online import Agent, Observation, Parameters
from podium.store import (
    CheckpointRecord,
    Follower,
    ObservationRecord,
    ObservationWriter,
    open_store,
)
from support.binary import TESTS, clean_environment

OBSERVATION = ObservationRecord(
    job_type="résumé-🙂",
    gpu_type="A100-80GB",
    runtime_s=0.1 + 0.2,
    recorded_s=1763200000.123,
    colocated_job_types=("bert", "bert", "resnet"),
    features={"batch_size": 32.0, "gpu_mem_gb": 5e-324},
    source="replica-a",
    key="7c1f",
    job_id="job-7",
)
CHECKPOINT = CheckpointRecord("online", 1, {"cells": [0.1 + 0.2, -0.0]}, 1763200001.5)
PARAMETERS = Parameters(enable_interference=True, gamma_interference=1.0)


def seen(number, source="", **changes):
    """Gives a plain observation; numbers go round twelve pairs, every fourth has a neighbour."""
    record = ObservationRecord(
        job_type=f"job-{number % 4}",
        gpu_type=f"gpu-{number % 3}",
        runtime_s=10.0 + number % 7 + number / 1000,
        recorded_s=float(number),
        colocated_job_types=(f"job-{number % 5}",) if number % 4 == 1 else (),
        features={"batch_size": float(1 + number % 6)},
        source=source,
        key=f"{source}-{number}" if source else None,
    )
    return replace(record, **changes)


class Tally:
    """Learns nothing but which observations it was shown."""

    def __init__(self, refused=()):
        self.ids, self.forgotten = [], []
        self.refused = refused

    def observe(self, record):
        if record.id in self.refused:
            raise self.refused[record.id]
        self.ids.append(record.id)

    def forget(self, names):
        self.forgotten += names

    def state(self):
        return {"ids": list(self.ids)}

    def restore(self, state):
        self.ids = list(state["ids"])


class Mind:
    """Learns run times and slowdowns."""

    def __init__(self):
        self.agent = Agent(PARAMETERS)

    def observe(self, record):
        self.agent.observe(
            Observation(
                record.job_type,
                record.gpu_type,
                record.runtime_s,
                record.features,
                record.colocated_job_types,
            )
        )

    def forget(self, names):
        for kind, name in names:
            self.agent.forget(**{kind: name})

    def state(self):
        return self.agent.as_object()

    def restore(self, state):
        self.agent = Agent.from_object(PARAMETERS, state)


def start_observer(folder, *arguments):
    """Starts a process; it waits for `support.stored.release`."""
    return subprocess.Popen(
        [sys.executable, "-m", "support.observed", *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=TESTS,
        env=clean_environment(folder),
    )


def _write(url, source, count):
    lock = threading.Lock()

    def add(number):
        (id,) = writer.add([seen(number, source)])
        with lock:
            _say(id, number)

    _wait("ready")
    with (
        open_store(url) as store,
        ObservationWriter(store.observations) as writer,
        ThreadPoolExecutor(8) as threads,
    ):
        list(threads.map(add, range(int(count))))


def _learn(url, source, count):
    def add(number):
        (id,) = writer.add([seen(number, source)])
        follower.reach(id)

    _wait("ready")
    with open_store(url) as store, ObservationWriter(store.observations) as writer:
        mind = Mind()
        follower = Follower(store, mind)
        with ThreadPoolExecutor(4) as threads:
            list(threads.map(add, range(int(count))))
        _wait("written")
        follower.catch_up()
        _say(json.dumps(mind.state(), sort_keys=True))


def _wait(word):
    _say(word)
    sys.stdin.readline()


def _say(*words):
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


def ids_in(store, after=0):
    """Lists the ids of the observations in a store."""
    return [record.id for record in store.observations.since(after, 100_000)]


def wait_until(is_true):
    """Waits until something has happened."""
    deadline_s = time.monotonic() + 300
    while not is_true():
        assert time.monotonic() < deadline_s
        time.sleep(0.001)


def save(store, last_id, name="online", **state):
    """Saves a checkpoint."""
    return store.checkpoints.save(CheckpointRecord(name, last_id, state, recorded_s=1.5))


if __name__ == "__main__":
    {"write": _write, "learn": _learn}[sys.argv[1]](*sys.argv[2:])
