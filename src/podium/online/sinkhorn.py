"""Solves entropic transport by Sinkhorn's algorithm, in logarithms.

Cuturi, Sinkhorn distances (2013); the rounding to exact marginals is that of Altschuler, Weed and
Rigollet (2017). Costs are taken above the cheapest of each row and divided by their spread, so that
milliseconds and days behave alike; the entropy is taken away step by step.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

FORBIDDEN = 10.0
"""Cost of what may not be, in units of the spread of the costs."""

_LAST_EPSILON = 1e-3
_STEPS, _LAST_STEPS = 20, 200
_TOLERANCE = 1e-7


def transport_plan(costs: Array, capacities: Sequence[int]) -> Array:
    """Returns the share of each row on each column: rows sum to one, columns stay within capacity.

    It shows which jobs could as well be elsewhere, at a price that is small beside the largest
    differences of costs; `assign_costs` finds the cheapest assignment without it.

    Args:
        costs: one row per job; infinite where a job may not go.
        capacities: such that `assign_costs` finds an assignment.
    """
    room = np.minimum(np.array(capacities, dtype=np.float64), len(costs))
    is_open = room > 0.0
    plan = np.zeros(costs.shape)
    if len(costs):
        plan[:, is_open] = _plan(scaled_costs(costs[:, is_open]), room[is_open])
    return plan


def _plan(scaled: Array, room: Array) -> Array:
    jobs = len(scaled)
    supply = np.ones(jobs)
    spare = room.sum() - jobs
    if spare > 0:
        scaled = np.vstack([scaled, np.zeros(len(room))])
        supply = np.append(supply, spare)
    return _with_marginals(_sinkhorn(scaled, supply, room), supply, room)[:jobs]


def scaled_costs(costs: Array) -> Array:
    """Takes costs above the cheapest of their row, in units of the largest difference."""
    above = costs - costs.min(axis=1, keepdims=True)
    is_open = np.isfinite(above)
    spread = float(above[is_open].max())
    if spread > 0.0:
        # Differences so small that they could not be divided are no differences.
        above = above / max(spread, np.finfo(float).tiny * 1e10)
    return np.where(is_open, above, FORBIDDEN)


def _sinkhorn(costs: Array, supply: Array, demand: Array) -> Array:
    log_supply, log_demand = np.log(supply), np.log(demand)
    rows, columns = np.zeros(len(supply)), np.zeros(len(demand))
    epsilon = 1.0
    while True:
        is_last = epsilon <= _LAST_EPSILON
        for _ in range(_LAST_STEPS if is_last else _STEPS):
            columns = epsilon * (log_demand - _log_sum((rows[:, None] - costs) / epsilon, 0))
            before = rows
            rows = epsilon * (log_supply - _log_sum((columns - costs) / epsilon, 1))
            if np.abs(rows - before).max() < _TOLERANCE * epsilon:
                break
        if is_last:
            return np.asarray(np.exp((rows[:, None] + columns - costs) / epsilon))
        epsilon = max(epsilon / 2.0, _LAST_EPSILON)


def _log_sum(values: Array, axis: int) -> Array:
    top = values.max(axis=axis, keepdims=True)
    summed = np.log(np.exp(values - top).sum(axis=axis, keepdims=True)) + top
    return np.asarray(summed.squeeze(axis))


def _with_marginals(plan: Array, supply: Array, demand: Array) -> Array:
    plan = plan * np.minimum(1.0, supply / plan.sum(axis=1))[:, None]
    sums = plan.sum(axis=0)
    plan = plan * np.minimum(1.0, demand / np.where(sums > 0.0, sums, 1.0))
    lacking = np.maximum(supply - plan.sum(axis=1), 0.0)
    open_ = np.maximum(demand - plan.sum(axis=0), 0.0)
    missing = lacking.sum()
    return plan + np.outer(lacking, open_) / missing if missing > 0.0 else plan
