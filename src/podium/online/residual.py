"""Tells how far a run is from what the runs of its job type before it lead to expect.

The expectation is that of a regression on features and neighbours, over all runs of the job type,
with a level of its own on each GPU type. It follows in closed form from the sums that are kept
anyway. What it explains is no change, though no two runs may be alike.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from podium.online.cell import Cell, JobRuns, Kind, Sums
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


def residual(runs: JobRuns, gpu: int, run: Run, kind: Kind, prior: Prior) -> float | None:
    """Returns by how many standard deviations a new run of a kind is longer than expected.

    There is nothing to compare it with where too few runs are like it, or where it differs from
    all of them in something that never differed before.
    """
    log_s, _, beside = run
    cell = runs.cells.get(gpu)
    if cell is None or (beside and not {*beside} <= {*runs.neighbours, *runs.others}):
        return None
    if _weight(cell, kind) < FEWEST:
        return None
    if not kind.given and not kind.is_beside:
        return _plain_residual(runs, gpu, log_s, kind)
    own = _group(cell, kind, gpu, trust_in(runs, (gpu,)))
    if own is None or own.weight < FEWEST:
        return None
    scatter, freedom = own.scatter, own.weight - 1.0
    if own.weight < ENOUGH + FOR_EACH * (len(own.mean) - 1):
        trust = trust_in(runs)
        for other, each in runs.cells.items():
            found = _group(each, kind, other, trust) if other != gpu else None
            if found is not None and found.weight > 1.0:
                scatter = scatter + found.scatter
                freedom += found.weight - 1.0
    return _score(runs.row(run) - own.mean, scatter, freedom, own.weight, runs.features, prior)


def _plain_residual(runs: JobRuns, gpu: int, log_s: float, kind: Kind) -> float | None:
    """Does the same for a run alone without features, where all matrices are numbers."""
    weight, mean, squares = _plain_group(runs.cells[gpu], kind, gpu, trust_in(runs, (gpu,)))
    if weight < FEWEST:
        return None
    freedom = weight - 1.0
    if weight < ENOUGH + FOR_EACH * runs.features:
        trust = trust_in(runs)
        for other, cell in runs.cells.items():
            if other == gpu:
                continue
            more, _, scatter = _plain_group(cell, kind, other, trust)
            if more > 1.0:
                squares += scatter
                freedom += more - 1.0
    return _plain_score(log_s - mean, squares, freedom, weight)


def _plain_group(cell: Cell, kind: Kind, gpu: int, trust: Trust) -> tuple[float, float, float]:
    """Returns weight, mean and squares of such runs on a GPU type; all 0 where there are none."""
    weight = mean = squares = 0.0
    for each, sums in cell.alone.items():
        if each.given != kind.given or sums.weight <= _TINY:
            continue
        share = trust.get((gpu, each), 1.0) if trust else 1.0
        more = sums.weight * share
        if not weight:
            weight, mean, squares = more, sums.mean.item(0), sums.scatter.item(0) * share
        elif (total := weight + more) > 0.0:
            apart = sums.mean.item(0) - mean
            mean = mean + apart * (more / total)
            added = apart * apart * (weight * more / total)
            squares = squares + sums.scatter.item(0) * share + added
            weight = total
    return weight, mean, squares


def _weight(cell: Cell, kind: Kind) -> float:
    part = cell.beside if kind.is_beside else cell.alone
    weight = 0.0
    for each, sums in part.items():
        if each.given == kind.given:
            weight += sums.weight
    return weight


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
