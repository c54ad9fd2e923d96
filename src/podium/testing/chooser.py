"""Checks what a cluster policy promises of its choices."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from podium.model.fit import fitting_nodes
from podium.model.records import pod_view
from podium.policies import HOLD, ClusterPolicy
from podium.policies.session import is_feasible
from podium.policies.states import random_states
from podium.testing.attempt import Attempt
from podium.testing.report import Finding, described

NUM_CHOICES = 200
NUM_NODES = 12
RAISES = "raises nothing"
FITS = "chooses nodes that fit"
REPEATS = "makes the same choices again"
READS = "leaves records alone"


def check_cluster(policy: ClusterPolicy, seed: int, attempt: Attempt) -> list[Finding]:
    """Asks two choosers with one seed for the same choices."""
    try:
        first, second = _Trial(policy, seed, attempt), _Trial(policy, seed, attempt)
    except Exception as error:  # noqa: BLE001 - the policy is the user's own code
        return [Finding(RAISES, False, described(policy, error))]
    if first.error and not first.choices:
        return [Finding(RAISES, False, first.error)]  # nothing else can be judged
    differing = [i for i, pair in enumerate(zip(first.choices, second.choices, strict=False))
                 if pair[0] != pair[1]]  # fmt: skip
    repeated = f"choice {differing[0]} differs between two runs" if differing else ""
    return [
        Finding(RAISES, not first.error, first.error),
        Finding(FITS, not first.misfit, first.misfit or f"{len(first.choices):,} choices"),
        Finding(REPEATS, not differing, repeated),
        Finding(READS, not first.change, first.change),
    ]


class _Trial:
    """Has one chooser decide a series of random situations."""

    def __init__(self, policy: ClusterPolicy, seed: int, attempt: Attempt) -> None:
        self.choices: list[float] = []
        self.error = self.misfit = self.change = ""
        self._policy = policy
        self._attempt = attempt
        attempt.at(lambda: "where it is created")
        chooser = policy.start(seed)
        attempt.aside()
        states = random_states(NUM_CHOICES * NUM_NODES, seed).with_slots(8)
        for begin in range(0, len(states) - NUM_NODES, NUM_NODES):
            pod, nodes = states.pods[begin], states.nodes[begin : begin + NUM_NODES].copy()
            if not self._decide(chooser, pod, nodes):
                break

    def _decide(self, chooser: Any, pod: Any, nodes: npt.NDArray[Any]) -> bool:
        feasible = fitting_nodes(pod, nodes)
        before = (nodes.tobytes(), feasible.tobytes())
        shown = feasible.copy()
        self._attempt.at(lambda: f"for {pod_view(pod)} among {len(nodes)} nodes, {shown.tolist()}")
        try:
            choice = chooser.choose(pod_view(pod), nodes, shown)
            self.choices.append(float(choice))
        except Exception as error:  # noqa: BLE001 - the policy is the user's own code
            self.error = f"{described(self._policy, error)} for {pod_view(pod)}"
            return False
        if choice != HOLD and not is_feasible(choice, feasible):
            self.misfit = f"chose {choice!r} for {pod_view(pod)}; {feasible.tolist()} fit"
        if before != (nodes.tobytes(), shown.tobytes()):
            self.change = f"wrote to the nodes it was shown, for {pod_view(pod)}"
        return not (self.misfit or self.change)
