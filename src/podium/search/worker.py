"""Is the process that candidates run in: it gets ready, locks itself in, and tries them.

The parent speaks first, with what to train on. Later it sends one candidate at a time, and
kills the process when that takes too long.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from podium.search.message import Channel, ChannelClosed

SPOILED = "spoiled"
"""Marks an answer after which the process is not to be used again."""

PLAIN = "def score(pod, node):\n    return -node.cpu_milli_left\n"
TUNABLE = """from podium.policies import tunable
W = tunable(0.5, 0, 1)
def score(pod, node):
    return W * node.cpu_milli_left
"""
BY_GPU = "def score(pod, node, gpu):\n    return -gpu\n"
FAILING = """def score(pod, node):
    pair = (1, (2, 3))
    return 1.0 if pair[node.gpu_count % 2] == 1 else 0.0
"""
"""Passes in plain Python and does not compile: the words for that are loaded too."""


def main() -> None:
    """Serves one parent until it goes away."""
    _spare_imports()
    channel = _private_channel()
    try:
        setup = channel.receive()
        serve(channel, setup)
    except ChannelClosed:
        return


def _spare_imports() -> None:
    """Keeps out what CMA-ES would load where it is installed: it draws nothing here.

    Without it, a worker takes a second longer to start.
    """
    for name in ("matplotlib", "scipy.stats"):
        sys.modules.setdefault(name, None)  # type: ignore[arg-type]


def serve(channel: Channel, setup: dict[str, Any]) -> None:
    """Gets ready, locks the process in, and answers."""
    from podium.search.bench import Bench
    from podium.search.confinement import Confinement
    from podium.search.fitness import fitness_named
    from podium.search.measurement import bounds_of
    from podium.search.training import TrainingSet

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
    figures, losses = [each for each, _ in baseline], [each for _, each in baseline]
    bounds = [bounds_of(plan) for plan in bench.plans]
    ready = {"baseline": figures, "losses": losses, "doors": doors, "bounds": bounds}
    channel.send({"ready": True, **ready})
    while True:
        request = channel.receive()
        began_s = time.thread_time()  # a limit makes the clock of the process a coarse one
        confinement.allow(request["time_s"], request["memory_mib"])
        answer = guarded(serve_request, channel, bench, fitness, request)
        channel.send({**answer, "processor_s": time.thread_time() - began_s})


def guarded(
    work: Callable[..., dict[str, Any]], channel: Channel, bench: Any, fitness: Any,
    request: dict[str, Any],
) -> dict[str, Any]:  # fmt: skip
    """Does a piece of work for a candidate; whatever it raises becomes the last message."""
    from podium.search.rejection import Rejected

    try:
        told = work(channel, bench, fitness, request)
    except Rejected as error:
        return {"done": True, "reason": str(error)[:2000], SPOILED: error.is_spoiling}
    except MemoryError:
        reason = f"needs more than its {request['memory_mib']} MiB of memory"
        return {"done": True, "reason": reason, SPOILED: True}
    except ChannelClosed:
        raise
    except BaseException as error:  # noqa: BLE001 - a candidate may raise anything
        reason = f"{type(error).__name__}: {error}"[:2000]
        return {"done": True, "reason": reason, SPOILED: True}
    return {"done": True, "reason": "", SPOILED: False, **told}


def serve_request(
    channel: Channel, bench: Any, fitness: Any, request: dict[str, Any]
) -> dict[str, Any]:
    """Tries a candidate, or tunes its constants."""
    work = tune_candidate if "tuning" in request else judge_candidate
    return work(channel, bench, fitness, request)


def tune_candidate(
    _channel: Channel, bench: Any, fitness: Any, request: dict[str, Any]
) -> dict[str, Any]:
    """Tunes the constants of one candidate; gives the best values found."""
    from podium.search.tuning import Tuner, tune

    wanted = request["tuning"]
    baseline = [(kind, values) for kind, values in wanted["baseline"]]
    tuner = Tuner(bench, request["text"], fitness, baseline, bool(wanted["may_hold"]))
    values = tune(tuner, wanted["evaluations"], wanted["seed"])
    return {"tuned": dict(values), "evaluations": tuner.evaluations}


def judge_candidate(
    channel: Channel, bench: Any, fitness: Any, request: dict[str, Any]
) -> dict[str, Any]:
    """Tries one candidate, telling each step."""
    from podium.search.fitness import Outcome
    from podium.search.trial import Parent, try_candidate

    def wants(decisions: Any) -> bool:
        channel.send({"signature": decisions.signature, "behaviour": decisions.behaviour})
        return bool(channel.receive()["is_wanted"])

    def tell(message: dict[str, Any]) -> None:
        # Time limits go by the gate, so it is told at once; figures wait for the next word.
        (channel.send if "gate" in message else channel.put)(message)

    race, may_hold = [Outcome(*each) for each in request["race"]], bool(request["may_hold"])
    try_candidate(bench, request["text"], race, fitness, Parent(tell, wants, may_hold))
    return {}


def _private_channel() -> Channel:
    # Whatever prints goes nowhere: the pipes are moved away from standard input and output.
    reading, writing = os.dup(0), os.dup(1)
    sink = os.open(os.devnull, os.O_RDWR)
    os.dup2(sink, 0)
    os.dup2(sink, 1)
    return Channel(reading, writing)


def _warm_up(bench: Any) -> None:
    """Loads what the first candidates would otherwise load, from files, too late."""
    from podium.search.fitness import Fitness
    from podium.search.losses import Usual
    from podium.search.rejection import Rejected
    from podium.search.trial import Parent, try_candidate
    from podium.search.tuning import Tuner, tune

    parent = Parent(lambda _message: None, lambda _decisions: True)
    by_kind = {plan.protocol.name: plan for plan in bench.plans}
    plans = (bench.tiny, *by_kind.values())
    few = replace(bench, plans=plans, usual=(Usual(),) * len(plans))
    for text in (PLAIN, BY_GPU, FAILING):
        with contextlib.suppress(Rejected):
            try_candidate(few, text, [], Fitness("", ()), parent)
    # CMA-ES opens files when it is imported, and some more when it is first used.
    tiny = replace(bench, plans=(bench.tiny,))
    tune(Tuner(tiny, TUNABLE, Fitness("", ()), [(bench.tiny.protocol.name, {})]), 30, 1)


if __name__ == "__main__":
    main()
    sys.exit(0)
