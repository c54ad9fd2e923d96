"""Holds everything that is settled before a run begins."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import numpy.typing as npt

from podium.files.excerpt import escaped
from podium.model import Cluster, Workload
from podium.policies import Policy
from podium.policies.demand import Demand
from podium.sim.bound import NOBODY_BOUND, Bound
from podium.sim.gangs import Gangs
from podium.sim.kernel import Variant
from podium.sim.preparation import Preparation
from podium.sim.protocols import Protocol
from podium.sim.tiers import Tier

Ties = Literal["order", "profile"]
"""Who wins among nodes that a policy scores alike: the first by rank, or whom kube-scheduler would
take with the profile of Podium's chart, by its own score and then by a draw."""

TIE_POLICY = "kube-packing"
"""Scores as that profile does."""


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """Says what is run, in which order, and how."""

    cluster: Cluster
    rank_order: npt.NDArray[np.int64]  # (num_nodes,) node indices, the lowest rank first
    arrivals: Workload  # pods in order of arrival; those that run already come first
    trace: Workload  # pods as in the trace, before shuffling and inflation
    policy: Policy
    protocol: Protocol
    seed: int
    tier: Tier
    ties: Ties = "order"
    preparation: Preparation = field(default_factory=Preparation, repr=False)
    bound: Bound = NOBODY_BOUND  # where the first pods are when the run begins
    gangs: Gangs = field(kw_only=True, repr=False)
    demand: Demand = "trace"  # from which pods a policy's table is prepared

    @property
    def follows_pods(self) -> bool:
        """Tells whether the policy has a table, and has it prepared as pods come."""
        return self.demand != "trace" and self.policy.reads_demand

    @property
    def is_plain(self) -> bool:
        """Tells whether CPU, memory and GPUs alone decide where a pod fits."""
        arrivals = self.arrivals
        return arrivals.tables is None and arrivals.gpu_shares is None and not self.gangs.is_any

    @property
    def variant(self) -> Variant:
        """Names the variant of the core that knows what the run needs."""
        # Whoever is evicted waits as a late member of a gang does, which the plain core leaves out.
        return "plain" if self.is_plain and not self.protocol.preemption else "full"

    @property
    def gpu_weight_milli(self) -> npt.NDArray[np.int64]:
        """Tells what each pod counts in GPU allocation; of one that runs already, what it holds."""
        weights = self.arrivals.gpu_weight_milli
        if not len(self.bound):
            return weights
        held = self.bound.gpu_milli
        return np.append(np.minimum(weights[: len(held)], held), weights[len(held) :])

    def __repr__(self) -> str:
        return (
            f"<Plan of {escaped(self.policy.name)} on {escaped(self.cluster.name)}: "
            f"{self.protocol.name} of "
            f"{len(self.arrivals):,} pods, seed {self.seed}>"
        )
