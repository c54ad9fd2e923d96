"""What candidates are tried on inside a worker: cases, single states and the probe."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from podium.evaluation.cases import Case, TrainingSet, planned
from podium.evaluation.measures import FUNSEARCH
from podium.evaluation.splits import FIRST_SEED
from podium.evaluation.waste import MedianPod
from podium.model.records import Node, Pod
from podium.policies import load
from podium.policies.states import States, random_states
from podium.search.judging.form import large_cases
from podium.search.judging.probe import Probe
from podium.sim.funsearch.policy_run import FunsearchCase
from podium.sim.plan import Plan

NUM_STATES = 160
_TINY = Case(nodes=4, pods=50, seed=FIRST_SEED)
View = tuple[Pod, Node, int]


@dataclass(frozen=True, slots=True, eq=False)
class Fixtures:
    """Everything that candidates are tried on, built once."""

    tiny: Plan
    plans: tuple[Plan, ...]
    is_compiled: bool
    states: States  # in records of 8 slots
    views: tuple[View, ...]
    wide_views: tuple[View, ...]  # the same in records of 16
    probe: Probe
    probed: tuple[View, ...]  # the states of the probe
    median_pods: tuple[MedianPod, ...]  # what pods of each case ask for
    families: tuple[str, ...]  # of each case
    by_funsearch: tuple[FunsearchCase | None, ...]  # the case, where those rules play it
    large: frozenset[int] = frozenset()  # cases that are run as machine code
    is_detailed: bool = False  # figures of a case include what was lost and placed

    @classmethod
    def of(cls, training: TrainingSet) -> Fixtures:
        """Builds the cases; the policy in the plans only stands in for candidates."""
        stand_in = load("first-fit")
        wide = random_states(NUM_STATES, FIRST_SEED)
        wide = _picked(wide, wide.nodes["gpu_count"] <= 8)
        plans = tuple(planned(training.cases, stand_in))
        states = wide.with_slots(8)
        views, wide_views = tuple(states.views()), tuple(wide.views())
        tiny, probe = _TINY.plan(stand_in), Probe.build()
        probed = tuple(probe.states.views())
        median_pods = tuple(MedianPod.of(plan.trace.pods) for plan in plans)
        rows = zip(training.cases, plans, strict=True)
        by_funsearch = tuple(_by_funsearch(case, plan) for case, plan in rows)
        return cls(
            tiny, plans, training.is_compiled, states, views, wide_views, probe, probed,
            median_pods, tuple(case.family for case in training.cases), by_funsearch,
            frozenset() if any(by_funsearch) else large_cases(plans),
        )  # fmt: skip


def _by_funsearch(case: Case, plan: Plan) -> FunsearchCase | None:
    if case.protocol != FUNSEARCH:
        return None
    return FunsearchCase.of(plan.cluster, plan.trace, case.load)


def _picked(states: States, which: Any) -> States:
    return States(states.pods[which], states.nodes[which], states.gpus[which])
