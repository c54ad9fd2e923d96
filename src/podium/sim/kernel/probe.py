"""Asks the core about a state: where a pod fits, and which of several find room in turn."""

from __future__ import annotations

from typing import Any

import numpy as np

from podium.sim.kernel.constraints import class_of, count
from podium.sim.kernel.layout import i8
from podium.sim.kernel.offers import slots_for
from podium.sim.kernel.ranking import mark_feasible
from podium.sim.kernel.scores import NO_SLOT
from podium.sim.kernel.world import allocate


def probe(runs: Any, pods: Any, seats: Any) -> int:
    """Lets pods run on the first node that each fits, all but the last, which is only looked at.

    Writes each pod's node, or a negative number, and leaves the nodes that the last pod fits marked
    as feasible. Where the run has a trial, only nodes that the trial may use count.
    """
    run = runs[0]
    for i in range(len(pods)):
        shape = i8(run.shape_of)[pods[i]]
        if run.has_constraints:
            run.pod_class = class_of(run, pods[i])
        node = np.int64(mark_feasible(run, shape))
        seats[i] = node
        if node >= 0 and i + 1 < len(pods):
            allocate(run, shape, node, slots_for(run, shape, node, NO_SLOT))
            if run.has_constraints:
                count(run, pods[i], node, np.int64(1))
    return 0
