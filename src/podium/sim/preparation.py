"""Runs a policy's `prepare` for a run, once: the choice of a tier and the run share its table."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from podium.model import Workload
from podium.policies import PairPolicy

Table = npt.NDArray[np.float64]


class Preparation:
    """Keeps the table that was prepared last, until a run takes it."""

    __slots__ = ("_latest",)

    def __init__(self) -> None:
        self._latest: tuple[PairPolicy, Workload, Table] | None = None

    def table(self, policy: PairPolicy, trace: Workload) -> Table:
        """Prepares the policy's table from the shapes of a trace, for the run that follows."""
        table = policy.table(trace.shapes())
        self._latest = (policy, trace, table)
        return table

    def take(self, policy: PairPolicy, trace: Workload) -> Table:
        """Hands the policy's table over to a run; every run has one of its own."""
        latest, self._latest = self._latest, None
        if latest is not None and latest[0] is policy and latest[1] is trace:
            return latest[2]
        return policy.table(trace.shapes())
