"""Tells how far a run is from what the runs of its job type before it lead to expect.

The expectation is that of a regression on features and neighbours, over all runs of the job type,
with a level of its own on each GPU type. It follows in closed form from the sums that are kept
anyway. What it explains is no change, though no two runs may be alike.
"""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
from numpy.typing import NDArray

from podium.online.cell import Cell, JobRuns, Kind, Sums, kind_of
from podium.online.drift import Run
from podium.online.evidence import beside_variance
from podium.online.parameters import Prior
from podium.online.trust import Trust, trust_in

Array = NDArray[np.float64]

FEWEST = 12
"""Runs that a pair must have before another one can be compared with them."""

ENOUGH, FOR_EACH = 32, 4
"""Runs of a pair, and more for each column, that tell all without those on other GPU types."""

_EXPECTED, _WEIGHT = 0.2, 4.0
_TINY = 1e-9


def residual(runs: JobRuns, gpu: int, run: Run, prior: Prior) -> float | None:
    """Returns by how many standard deviations a new run is longer than expected.

    There is nothing to compare it with where too few runs are like it, or where it differs from
    all of them in something that never differed before.
    """
    log_s, features, beside = run
    if gpu not in runs.cells or not {*beside} <= {*runs.neighbours, *runs.others}:
        return None
    kind = kind_of(log_s, features, is_beside=bool(beside))
    if _weight(runs.cells[gpu], kind) < FEWEST:
        return None
    trust = trust_in(runs)
    own = _group(runs.cells[gpu], kind, gpu, trust)
    if own is None or own.weight < FEWEST:
        return None
    scatter, freedom = own.scatter, own.weight - 1.0
    if own.weight < ENOUGH + FOR_EACH * (len(own.mean) - 1):
        for other, cell in runs.cells.items():
            found = _group(cell, kind, other, trust) if other != gpu else None
            if found is not None and found.weight > 1.0:
                scatter = scatter + found.scatter
                freedom += found.weight - 1.0
    if not kind.given and not kind.is_beside:
        return _plain_score(log_s - float(own.mean[0]), float(scatter[0, 0]), freedom, own.weight)
    return _score(_row(runs, run) - own.mean, scatter, freedom, own.weight, runs.features, prior)


def _weight(cell: Cell, kind: Kind) -> float:
    part = cell.beside if kind.is_beside else cell.alone
    return sum(sums.weight for each, sums in part.items() if each.given == kind.given)


def _row(runs: JobRuns, run: Run) -> Array:
    log_s, features, beside = run
    row = [log_s, *(value or 0.0 for value in features)]
    if beside:
        counts = Counter(runs.columns_of(beside))
        row += [counts.get(name, 0) for name in runs.neighbours]
    return np.array(row, dtype=np.float64)


def _group(cell: Cell, kind: Kind, gpu: int, trust: Trust) -> Sums | None:
    """Puts the runs on a GPU type together that give the same features, whatever they took."""
    part = cell.beside if kind.is_beside else cell.alone
    found: Sums | None = None
    for each, sums in part.items():
        if each.given != kind.given or sums.weight <= _TINY:
            continue
        weighed = sums.times(trust.get((gpu, each), 1.0))
        if found is None:
            found = Sums(weighed.observations, weighed.weight, weighed.mean, weighed.scatter)
        else:
            found.merge(weighed)
    return found


def _score(
    apart: Array, scatter: Array, freedom: float, weight: float, features: int, prior: Prior
) -> float | None:
    varies = scatter.diagonal()[1:] > _TINY
    if (np.abs(apart[1:][~varies]) > _TINY).any():
        return None
    squares, deviation, doubt = float(scatter[0, 0]), float(apart[0]), 0.0
    if varies.any():
        place = 1 + np.flatnonzero(varies)
        inner, cross, steps = scatter[place[:, None], place], scatter[place, 0], apart[place]
        spread = np.where(place <= features, prior.feature_spread**2, beside_variance(prior))
        inverse = np.linalg.inv(inner + np.diag(prior.noise**2 / spread))
        slopes = inverse @ cross
        squares -= float(slopes @ cross)
        freedom -= float((inverse * inner).sum())
        deviation -= float(slopes @ steps)
        doubt = float(steps @ inverse @ steps)
    return _plain_score(deviation, squares, freedom, weight, doubt)


def _plain_score(
    deviation: float, squares: float, freedom: float, weight: float, doubt: float = 0.0
) -> float:
    known = _WEIGHT * _EXPECTED**2 + max(squares, 0.0)
    variance = known / (_WEIGHT + max(freedom, 0.0))
    return deviation / math.sqrt(variance * (1.0 + 1.0 / weight + doubt))
