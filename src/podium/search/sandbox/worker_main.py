"""Is the process that candidates run in: it gets ready, locks itself in, and tries them.

The parent speaks first, with what to train on. Later it sends one candidate at a time, and
kills the process when that takes too long.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import signal
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from podium.errors import PodiumError
from podium.search.sandbox.channel import Channel, ChannelClosed
from podium.search.sandbox.confinement import Confinement
from podium.search.sandbox.seccomp import die_with

SPOILED = "spoiled"
"""Marks an answer after which the process is not to be used again."""

LACKING = "lacking"
"""Marks an answer that depends on modules which this process could no longer load."""

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


RICH = """import math
from podium.policies import tunable
W = tunable(0.5, 0, 1)
WEIGHTS = (1.0, 2.0, 3.0)
def pair(a, b):
    return a + 1, b * 2.0
def score(pod, node):
    first, second = pair(node.cpu_milli_left, node.gpu_count)
    while first > 1000:
        first = first // 2
    total = 0
    for slot in range(node.gpu_count):
        total += node.gpu_milli_left[slot]
    kept = (first, second, W)
    most = max(total, sum(node.gpu_milli_left))
    return -kept[0] - math.log1p(most) * WEIGHTS[node.gpu_count % 3] - round(second, 1)
"""
"""Has of everything: functions of its own, loops, tuples, constants."""


def main(parent: int) -> None:
    """Serves one parent until it goes away."""
    die_with(parent)
    # Whoever sends a signal ends the process: the candidate is not to blame, and is tried again.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    _spare_imports()
    channel = _private_channel()
    with contextlib.suppress(ChannelClosed):
        serve(channel, channel.receive(), parent)
    # The usual end of Python needs more of the system than is left.
    os._exit(0)


def _spare_imports() -> None:
    """Keeps out what CMA-ES would load where it is installed: it draws nothing here.

    Without it, a worker takes a second longer to start.
    """
    for name in ("matplotlib", "scipy.stats"):
        sys.modules.setdefault(name, None)  # type: ignore[arg-type]


def serve(channel: Channel, setup: dict[str, Any], parent: int) -> None:
    """Gets ready, locks the process in, and answers."""
    try:
        confinement, bench, fitness, ready = _locked_in(channel, setup, parent)
        channel.send({"ready": True, **ready})
    except ChannelClosed:
        raise
    except Exception as error:  # noqa: BLE001 - told to the parent, who raises it
        channel.send({"failure": _told(error)})
        return
    while True:
        request = channel.receive()
        began_s = time.thread_time()  # a limit makes the clock of the process a coarse one
        confinement.allow(request["time_s"], request["memory_mib"])
        answer = guarded(serve_request, channel, bench, fitness, request)
        answer |= {LACKING: confinement.lacking(), "processor_s": time.thread_time() - began_s}
        channel.send(answer)


def _locked_in(
    channel: Channel, setup: dict[str, Any], parent: int
) -> tuple[Confinement, Any, Any, dict[str, Any]]:
    """Builds what candidates need, and the walls; gives what the parent wants to know of both."""
    from podium.evaluation.measures import bounds_of
    from podium.search.judging.trial import CANDIDATE

    absent = _load(setup["modules"])
    bench, fitness, baseline = _prepared(setup)
    confinement = Confinement(channel.pipes, CANDIDATE, absent)
    walls = confinement.enter(parent)
    figures, losses = [each for each, _ in baseline], [each for _, each in baseline]
    bounds = [bounds_of(plan) for plan in bench.plans] if bench else []
    ready = {"baseline": figures, "losses": losses, "walls": walls, "bounds": bounds}
    return confinement, bench, fitness, ready


def _told(error: Exception) -> str:
    return str(error) if isinstance(error, PodiumError) else f"{type(error).__name__}: {error}"


def _prepared(setup: dict[str, Any]) -> tuple[Any, Any, Any]:
    """Builds what candidates are tried on; nothing for who only asks which walls stand."""
    from podium.evaluation.cases import TrainingSet
    from podium.search.judging.fitness import fitness_named
    from podium.search.judging.testbed import Bench

    if setup["training"] is None:
        return None, None, []
    bench = Bench.of(TrainingSet.from_object(setup["training"]))
    baseline = bench.baseline() if setup["needs_baseline"] else []
    _warm_up(bench)
    return bench, fitness_named(setup["fitness"]), baseline


def _load(modules: Iterable[str]) -> list[str]:
    """Loads what an earlier process lacked; names what is not installed, and not to be missed."""
    absent = []
    for name in modules:
        try:
            importlib.import_module(name)
        except ImportError:
            absent.append(name)
    return absent


def guarded(
    work: Callable[..., dict[str, Any]], channel: Channel, bench: Any, fitness: Any,
    request: dict[str, Any],
) -> dict[str, Any]:  # fmt: skip
    """Does a piece of work for a candidate; whatever it raises becomes the last message."""
    from podium.search.candidate.verdict import Rejected

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
    from podium.search.judging.tuning import Tuner, tune

    wanted = request["tuning"]
    baseline = [(kind, values) for kind, values in wanted["baseline"]]
    tuner = Tuner(bench, request["text"], fitness, baseline, bool(wanted["may_hold"]))
    values = tune(tuner, wanted["evaluations"], wanted["seed"])
    return {"tuned": dict(values), "evaluations": tuner.evaluations}


def judge_candidate(
    channel: Channel, bench: Any, fitness: Any, request: dict[str, Any]
) -> dict[str, Any]:
    """Tries one candidate, telling each step."""
    from podium.search.judging.fitness import Outcome
    from podium.search.judging.trial import Parent, try_candidate

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
    from podium.evaluation.waste import Usual
    from podium.search.judging.fitness import Fitness
    from podium.search.judging.tuning import Tuner, tune

    by_kind = {plan.protocol.name: plan for plan in bench.plans}
    plans = (bench.tiny, *by_kind.values())
    few = replace(bench, plans=plans, usual=(Usual(),) * len(plans))
    _try_all(replace(few, is_compiled=False), (PLAIN, BY_GPU))
    if _may_compile(bench):
        _try_all(replace(few, is_compiled=True), (RICH, BY_GPU, FAILING))
    # CMA-ES opens files when it is imported, and some more when it is first used.
    tiny = replace(bench, plans=(bench.tiny,))
    tune(Tuner(tiny, TUNABLE, Fitness("", ()), [(bench.tiny.protocol.name, {})]), 30, 1)


def _may_compile(bench: Any) -> bool:
    from podium.search.judging.form import engine_as_written
    from podium.search.judging.trial import read_policy

    return engine_as_written(read_policy(PLAIN), bench.plans, bench.is_compiled).is_compiled


def _try_all(bench: Any, texts: Iterable[str]) -> None:
    from podium.search.candidate.verdict import Rejected
    from podium.search.judging.fitness import Fitness
    from podium.search.judging.trial import Parent, try_candidate

    parent = Parent(lambda _message: None, lambda _decisions: True)
    for text in texts:
        with contextlib.suppress(Rejected):
            try_candidate(bench, text, [], Fitness("", ()), parent)
