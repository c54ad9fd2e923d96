"""Serves requests inside a worker process: tries candidates.

`podium.search.sandbox.worker_main` loads this module by name before the process locks itself in;
whatever candidates need is imported, built and used once before that.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from podium.evaluation.cases import TrainingSet
from podium.evaluation.measures import bounds_of
from podium.evaluation.waste import MedianPod
from podium.policies import load
from podium.search.candidate.verdict import Decisions, Rejected
from podium.search.judging.case_run import run_baseline
from podium.search.judging.fitness import Fitness, ObjectiveFitness, Outcome, fitness_named
from podium.search.judging.fixtures import Fixtures
from podium.search.judging.form import form_as_written
from podium.search.judging.race import Race
from podium.search.judging.trial import CANDIDATE, Parent, read_policy, try_candidate
from podium.search.sandbox.channel import Channel

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
"""Uses every construct: functions of its own, loops, tuples, constants."""


@dataclass(frozen=True, slots=True, eq=False)
class TrialHandler:
    """Tries candidates on one training set, by one fitness."""

    fixtures: Fixtures
    fitness: Fitness
    facts: dict[str, Any]  # for the parent, once the process is ready
    own_name: str = CANDIDATE  # of the file that candidates are compiled as

    def serve(self, channel: Channel, request: dict[str, Any]) -> dict[str, Any]:
        """Tries a candidate, reporting each step."""
        reply: dict[str, Any] = {}

        def wants(decisions: Decisions) -> bool:
            channel.send({"signature": decisions.signature, "behaviour": decisions.behaviour})
            reply.update(channel.receive())
            return bool(reply["is_wanted"])

        def tell(message: dict[str, Any]) -> None:
            # Time limits go by the gate, so it is told at once; figures wait for the next word.
            (channel.send if "gate" in message else channel.put)(message)

        def race() -> Race:
            return Race.from_object(reply["race"])

        parent = Parent(tell, wants, bool(request["may_hold"]), race)
        fitness = asked(self.fitness, channel)
        try_candidate(self.fixtures, request["text"], request["baseline"], fitness, parent)
        return {}


@dataclass(frozen=True, slots=True, eq=False)
class AskedFitness(Fitness):
    """Asks the parent what runs are worth: an objective of the user's is not run where this is."""

    channel: Channel

    def score(self, outcomes: Sequence[Outcome]) -> float:
        """Asks for what runs are worth together."""
        rows = [[each.kind, dict(each.values), dict(each.baseline)] for each in outcomes]
        self.channel.send({"outcomes": rows})
        return float(self.channel.receive()["worth"])


def asked(fitness: Fitness, channel: Channel) -> Fitness:
    """Returns a fitness by which a worker can judge: its own, or one that it asks for."""
    if not isinstance(fitness, ObjectiveFitness):
        return fitness
    return AskedFitness(fitness.name, fitness.weights, channel)


def open_handler(setup: dict[str, Any]) -> TrialHandler:
    """Builds what candidates are tried on, and loads all that they need."""
    fitness = fitness_named(setup["fitness"])
    fixtures = Fixtures.of(TrainingSet.from_object(setup["training"]))
    fixtures = replace(fixtures, is_detailed=isinstance(fitness, ObjectiveFitness))
    baseline = run_baseline(fixtures) if setup["needs_baseline"] else []
    _warm_up(fixtures)
    facts = {
        "baseline": [figures for figures, _ in baseline],
        "losses": [losses for _, losses in baseline],
        "bounds": [
            {} if other else bounds_of(plan)
            for plan, other in zip(fixtures.plans, fixtures.by_funsearch, strict=True)
        ],
    }
    return TrialHandler(fixtures, fitness, facts)


def _warm_up(fixtures: Fixtures) -> None:
    """Loads what the first candidates would otherwise load, from files, too late."""
    by_kind = {(plan.protocol.name, plan.variant): plan for plan in reversed(fixtures.plans)}
    plans = (fixtures.tiny, *by_kind.values())
    few = replace(
        fixtures, plans=plans, median_pods=(MedianPod(),) * len(plans),
        families=("",) * len(plans), by_funsearch=(None,) * len(plans), large=frozenset(),
    )  # fmt: skip
    for case in [each for each in fixtures.by_funsearch if each][:1]:
        case.run(load("first-fit"))
    _try_all(replace(few, is_compiled=False), (PLAIN, BY_GPU))
    if form_as_written(read_policy(PLAIN), fixtures.plans, fixtures.is_compiled).is_compiled:
        _try_all(replace(few, is_compiled=True), (RICH, BY_GPU, FAILING))
    if fixtures.large:
        _try_all(replace(few, is_compiled=False, large=frozenset({0})), (TUNABLE,))


def _try_all(fixtures: Fixtures, texts: Iterable[str]) -> None:
    parent = Parent(lambda _message: None, lambda _decisions: True)
    for text in texts:
        with contextlib.suppress(Rejected):
            try_candidate(fixtures, text, [], Fitness("", ()), parent)
