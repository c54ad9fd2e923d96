"""Makes records for stores, and writes to a store from a process of its own.

    python -m support.stored URL RUN FIRST COUNT

says "ready", waits for a line, opens the store, then proposes and judges COUNT candidates from
number FIRST on, one by one, and prints each number as soon as the store has acknowledged it.
"""

import struct
import subprocess
import sys
from dataclasses import fields, replace

from podium.store import JUDGED, CandidateRecord, RunRecord, open_store
from support.binary import TESTS, clean_environment

RUN = RunRecord(
    id="run-a",
    kind="search",
    name="a first look",
    created_s=1763200000.123,
    settings={"seed": 7, "islands": [1, 2.5], "model": None, "deep": {"is_on": True}},
    summary={"best": 91.7242},
    folder="runs/run-a",
)
CANDIDATE = CandidateRecord(
    run_id="run-a",
    number=0,
    batch=3,
    island=2,
    kind="repair",
    source="llm:some/model",
    operators=("swap", "constant"),
    parents=(4, 17),
    prompt="Write a policy.",
    thought="Füllt Knoten auf 🙂",
    text='"""Fills nodes."""\n\n\ndef score(pod, node):\n    return 1.0\n',
    fingerprint="f00",
    signature="pod, node",
    behaviour=(0.1, -0.0, 1e300),
)


def judged(record, fitness=1.5, **changes):
    """Gives a record with a judgement."""
    facts = {
        "accepted": True,
        "gate": "training",
        "reason": "",
        "complexity": 12,
        "may_hold": True,
        "scores": {"fitness": fitness, "fgd": {"fitness": 0.1 + 0.2}},
        "cases": ({"score": 1 / 3}, {"score": 5e-324}),
        "diagnostics": "3 pods waited",
        "seconds": 0.123456789,
        "cost": {"calls": 1, "usd": None},
    }
    return replace(record, state=JUDGED, fitness=fitness, **{**facts, **changes})


def bred(number, run_id="run-a"):
    """Gives a plain candidate."""
    return CandidateRecord(run_id, number, text=f"def score(pod, node):\n    return {number}\n")


def start_writer(folder, *arguments):
    """Starts a process that writes; it waits for `release`."""
    return subprocess.Popen(
        [sys.executable, "-m", "support.stored", *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=TESTS,
        env=clean_environment(folder),
    )


def release(writers):
    """Lets processes go, all at once."""
    for writer in writers:
        assert writer.stdout.readline() == "ready\n", writer.communicate()[1]
    for writer in writers:
        writer.stdin.write("go\n")
        writer.stdin.flush()


def _write(url, run_id, first, count):
    _say("ready")
    sys.stdin.readline()
    with open_store(url) as store:
        for number in range(int(first), int(first) + int(count)):
            store.candidates.propose([bred(number, run_id)])
            _say("proposed", number)
            store.candidates.judge([judged(bred(number, run_id), float(number))])
            _say("judged", number)


def _say(*words):
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


def bits(value):
    """Writes a value so that floats are equal only if all their bits are."""
    if isinstance(value, float):
        return struct.pack(">d", value).hex()
    if isinstance(value, dict):
        return {name: bits(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [bits(each) for each in value]
    return value


def all_bits(record):
    """Writes a record so, field by field."""
    return {item.name: bits(getattr(record, item.name)) for item in fields(record)}


def rows(folder):
    """Lists the candidates of the one run, without its name and what things took."""
    with open_store(f"sqlite:///{folder / 'runs.db'}") as store:
        (record,) = store.runs.all()
        return [
            replace(each, run_id="", seconds=0.0, cost={**each.cost, "seconds": 0.0})
            for each in store.candidates.of(record.id)
        ]


if __name__ == "__main__":
    _write(*sys.argv[1:])
