"""Is the process that candidates run in: it gets ready, locks itself in, and tries them.

The parent speaks first, with what to train on. Later it sends one candidate at a time, and
kills the process when that takes too long.
"""

from __future__ import annotations

import contextlib
import os
import sys
from typing import Any

from podium.search.message import Channel, ChannelClosed

SPOILED = "spoiled"
"""Marks an answer after which the process is not to be used again."""

WARM_UP = '''"""Uses what a candidate may use, so that compiling needs no more files."""

import math

from podium.policies import HOLD, tunable

WEIGHT = tunable(0.5, 0.0, 2.0)
PAIR = (1.0, 2.0)


def helper(node, slot):
    return node.gpu_milli_left[slot] if slot >= 0 else 0


def score(pod, node, gpu):
    if pod.gpu_count == 0 and not node.gpu_count > 2 or pod.gang != 0:
        return HOLD
    total, best = 0, 0.0
    for slot in range(node.gpu_count):
        total += node.gpu_milli_left[slot] >> 1 & 3 | 4 ^ 5
    for left in node.gpu_milli_left:
        best = max(best, left % 7)
        if best > 900:
            break
    while total > 1:
        total //= 2
    best += abs(best) + min(total, 3) + round(best / 3) + int(best) + float(total) + (~total)
    best += round(best, 2) + pow(best, 2) + best ** 0.3 + best ** 3 + bool(best) + PAIR[total % 2]
    best += sum(node.gpu_milli_left) + max(node.gpu_milli_left) + min(node.gpu_milli_left)
    return WEIGHT * best + helper(node, gpu) + len(node.gpu_milli_left) + FUNCTIONS
'''
PLAIN = "def score(pod, node):\n    return -node.cpu_milli_left\n"
FAILING = (
    "def score(pod, node):\n    return PAIR[node.gpu_count % 2]\n\n\nPAIR = (1.0, (2.0, 3.0))\n"
)


def main() -> None:
    """Serves one parent until it goes away."""
    channel = _private_channel()
    try:
        setup = channel.receive()
        serve(channel, setup)
    except ChannelClosed:
        return


def serve(channel: Channel, setup: dict[str, Any]) -> None:
    """Gets ready, locks the process in, and answers."""
    from podium.search.confinement import Confinement
    from podium.search.fitness import fitness_named
    from podium.search.training import TrainingSet
    from podium.search.trial import Bench

    try:
        bench = Bench.of(TrainingSet.from_object(setup["training"]))
        fitness = fitness_named(setup["fitness"])
        baseline = bench.baseline() if setup["needs_baseline"] else []
        _warm_up(bench)
        confinement = Confinement()
        doors = confinement.enter()
    except Exception as error:  # noqa: BLE001 - told to the parent, who raises it
        channel.send({"failure": f"{type(error).__name__}: {error}"})
        return
    channel.send({"ready": True, "baseline": baseline, "doors": doors})
    while True:
        request = channel.receive()
        confinement.allow(request["time_s"], request["memory_mib"])
        channel.send(answer(channel, bench, fitness, request))


def answer(channel: Channel, bench: Any, fitness: Any, request: dict[str, Any]) -> dict[str, Any]:
    """Tries one candidate, telling each step; gives the last message."""
    from podium.search.fitness import Outcome
    from podium.search.trial import Rejected, try_candidate

    race = [Outcome(*each) for each in request["race"]]
    try:
        try_candidate(bench, request["text"], race, fitness, channel.send)
    except Rejected as error:
        return {"done": True, "reason": str(error)[:2000], SPOILED: False}
    except MemoryError:
        told = f"needs more than its {request['memory_mib']} MiB of memory"
        return {"done": True, "reason": told, SPOILED: True}
    except ChannelClosed:
        raise
    except BaseException as error:  # noqa: BLE001 - a candidate may raise anything
        told = f"{type(error).__name__}: {error}"[:2000]
        return {"done": True, "reason": told, SPOILED: True}
    return {"done": True, "reason": "", SPOILED: False}


def _private_channel() -> Channel:
    # Whatever prints goes nowhere: the pipes are moved away from standard input and output.
    reading, writing = os.dup(0), os.dup(1)
    sink = os.open(os.devnull, os.O_RDWR)
    os.dup2(sink, 0)
    os.dup2(sink, 1)
    return Channel(reading, writing)


def _warm_up(bench: Any) -> None:
    """Loads what the first candidates would otherwise load, from files, too late."""
    from podium.errors import PolicyError
    from podium.policies import PairPolicy
    from podium.policies.source import read_source
    from podium.search.fitness import Fitness
    from podium.search.trial import Rejected, try_candidate

    for text in (PLAIN, FAILING):
        with contextlib.suppress(Rejected):
            try_candidate(bench, text, [], Fitness("", ()), lambda _message: None)
    everything = WARM_UP.replace("FUNCTIONS", _every_function())
    for text in (everything, FAILING) if bench.is_compiled else ():
        with contextlib.suppress(PolicyError):
            PairPolicy.of(read_source(text, "warm-up"), "warm-up").native(1, 8)


def _every_function() -> str:
    from podium.search.vocabulary import MATH_FUNCTIONS, MATH_NUMBERS

    two = {"atan2", "copysign", "hypot", "pow"}
    calls = [
        f"math.{name}(0.5, 0.25)" if name in two else f"math.{name}(best)"
        for name in sorted(MATH_FUNCTIONS)
    ]
    return " + ".join([*calls, *(f"math.{name}" for name in sorted(MATH_NUMBERS))])


if __name__ == "__main__":
    main()
    sys.exit(0)
