"""What candidates are tried on inside a worker: cases, single states and the probe."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from podium.evaluation.cases import Case, TrainingSet, planned
from podium.evaluation.measures import Values, measure_case
from podium.evaluation.splits import FIRST_SEED
from podium.evaluation.waste import Losses, MedianPod, measure_losses
from podium.model.records import Node, Pod
from podium.policies import load
from podium.policies.states import States, random_states
from podium.search.judging.fitness import BASELINE
from podium.search.judging.probe import Probe
from podium.sim.execution import execute
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
        median_pods = tuple(MedianPod.of(plan.trace) for plan in plans)
        return cls(
            tiny, plans, training.is_compiled, states, views, wide_views, probe, probed,
            median_pods, tuple(case.family for case in training.cases),
        )  # fmt: skip

    def baseline(self) -> Sequence[tuple[Values, Losses]]:
        """Measures fgd on every case, and what it loses there."""
        policy, found = load(BASELINE), []
        for plan, median_pod in zip(self.plans, self.median_pods, strict=True):
            result = execute(replace(plan, policy=policy, tier="scan"))
            found.append((measure_case(result), measure_losses(result, median_pod)))
        return found


def _picked(states: States, which: Any) -> States:
    return States(states.pods[which], states.nodes[which], states.gpus[which])
