"""Tells which sums of a job type are mistakes: a few runs that are far from all the others.

A run time in the wrong unit is off by a factor of sixty or a thousand. Noise with heavy tails would
give such a run little weight, whatever the others are; here its whole kind gets that weight, which
is found from the sums alone, so that it does not depend on the order of runs.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from podium.online.cell import Cell, JobRuns, Kind, Sums

STEEPEST = 2.0
"""Exponent of a feature up to which it may explain that a run is far from the others."""

LONGEST_APART = 3.0
"""Of log run time: up to a factor of twenty between GPU types is no mistake."""

_BESIDE = 1.0
"""Of log run time: what neighbours may explain."""

_CALM, _CALM_WEIGHT = 0.2, 4.0
_FEW = 1


class _Row(NamedTuple):
    gpu: int
    kind: Kind
    sums: Sums

    @property
    def log_runtime(self) -> float:
        return self.sums.mean.item(0)


Trust = dict[tuple[int, Kind], float]


def trust_in(runs: JobRuns, gpus: Iterable[int] | None = None) -> Trust:
    """Returns the weight of each kind of runs that deserves less than its runs alone would give.

    Args:
        runs: of the job type.
        gpus: GPU types whose kinds are asked for; all of them where none are named.
    """
    suspects = _suspects(runs, runs.cells if gpus is None else gpus)
    if not suspects or not _is_wide(runs):
        return {}
    found: Trust = {}
    calm = _calm(runs)
    for row, others in suspects:
        apart = 4.0 * calm + 0.5 if others[0].gpu == row.gpu else LONGEST_APART
        if _farthest(row, others) <= apart:  # the median is no farther, and takes longer to find
            continue
        weight = _weight(row, others, apart, calm, runs.features)
        if weight < 1.0:
            found[row.gpu, row.kind] = weight
    return found


def _suspects(runs: JobRuns, gpus: Iterable[int]) -> list[tuple[_Row, list[_Row]]]:
    """Lists the rare kinds of runs, with those that they are compared with."""
    found = []
    for gpu in gpus:
        weights = _weights(runs.cells[gpu])
        whole = sum(weights)
        if 0.0 < whole <= 2 * _FEW:
            found += _of_few(runs, gpu, whole)
        elif weights and _is_rare(min(weights), whole):
            here = _rows(runs, (gpu,))
            found += [(row, here) for row in here if _is_rare(row.sums.weight, whole)]
    return found


def _of_few(runs: JobRuns, gpu: int, whole: float) -> list[tuple[_Row, list[_Row]]]:
    """Does the same for one or two runs: if they are far apart, others tell which is wrong."""
    here = _rows(runs, (gpu,))
    elsewhere = _rows(runs, [other for other in runs.cells if other != gpu])
    is_known = sum([row.sums.weight for row in elsewhere]) >= 4 * _FEW
    found = []
    for row in here:
        own = row.sums.weight
        if 2.0 * own >= whole:
            if own <= _FEW and is_known:
                found.append((row, elsewhere))
        elif _is_rare(own, whole):
            found.append((row, here))
    return found


def _weights(cell: Cell) -> list[float]:
    found = [sums.weight for sums in cell.alone.values() if sums.weight > 0.0]
    if cell.beside:
        found += [sums.weight for sums in cell.beside.values() if sums.weight > 0.0]
    return found


def _is_rare(own: float, whole: float) -> bool:
    return 2.0 * own < whole and own <= 1.0 + whole / 20.0


def _rows(runs: JobRuns, gpus: Iterable[int]) -> list[_Row]:
    return [
        _Row(gpu, kind, sums)
        for gpu in gpus
        for kind, sums in runs.cells[gpu].kinds()
        if sums.weight > 0.0
    ]


def _is_wide(runs: JobRuns) -> bool:
    """Tests whether some kinds of runs are two magnitudes apart: mistakes are."""
    low, high = math.inf, -math.inf
    for cell in runs.cells.values():
        for part in (cell.alone, cell.beside):
            for kind, sums in part.items():
                if sums.weight > 0.0:
                    magnitude = kind.magnitude
                    low = magnitude if magnitude < low else low
                    high = magnitude if magnitude > high else high
        if high - low >= 2:
            return True
    return False


def _calm(runs: JobRuns) -> float:
    """Estimates the noise inside kinds, which mistakes cannot disturb."""
    parts = [part for cell in runs.cells.values() for part in (cell.alone, cell.beside)]
    found = [sums for part in parts for sums in part.values() if sums.weight > 0.0]
    squares = sum([sums.scatter.item(0) for sums in found])
    freedom = sum([max(sums.weight - 1.0, 0.0) for sums in found])
    return math.sqrt((_CALM_WEIGHT * _CALM**2 + squares) / (_CALM_WEIGHT + freedom))


def _farthest(row: _Row, others: Sequence[_Row]) -> float:
    """Returns how far the run times of others are away at most."""
    own = row.log_runtime
    return max([abs(own - each.log_runtime) for each in others])


def _weight(row: _Row, others: Sequence[_Row], apart: float, calm: float, features: int) -> float:
    """Returns a weight that falls with the distance; 1 where it is explained."""
    middle = _median(others)
    explained = 0.0
    if row.kind.given or middle.kind.given:
        steps = row.sums.mean[1 : 1 + features] - middle.sums.mean[1 : 1 + features]
        explained = STEEPEST * float(abs(steps).sum())
    explained += _BESIDE * (row.kind.is_beside or middle.kind.is_beside)
    excess = abs(row.log_runtime - middle.log_runtime) - apart - explained
    return 1.0 / (1.0 + (excess / calm) ** 4) if excess > 0.0 else 1.0


def _median(rows: Sequence[_Row]) -> _Row:
    # Runs beside others have more columns than runs alone.
    ordered = sorted(rows, key=lambda row: (row.sums.mean.tolist(), row.kind))
    half, passed = 0.5 * sum(row.sums.weight for row in ordered), 0.0
    for row in ordered:
        passed += row.sums.weight
        if passed >= half:
            return row
    return ordered[-1]
