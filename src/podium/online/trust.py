"""Tells which sums of a job type are mistakes: a few runs that are far from all the others.

A run time in the wrong unit is off by a factor of sixty or a thousand. Noise with heavy tails would
give such a run little weight, whatever the others are; here its whole kind gets that weight, which
is found from the sums alone, so that it does not depend on the order of runs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from podium.online.cell import JobRuns, Kind, Sums

STEEPEST = 2.0
"""Exponent of a feature up to which it may explain that a run is far from the others."""

LONGEST_APART = 3.0
"""Of log run time: up to a factor of twenty between GPU types is no mistake."""

_BESIDE = 1.0
"""Of log run time: what neighbours may explain."""

_CALM, _CALM_WEIGHT = 0.2, 4.0
_FEW = 1


@dataclass(frozen=True, slots=True)
class _Row:
    gpu: int
    kind: Kind
    sums: Sums

    @property
    def log_runtime(self) -> float:
        return float(self.sums.mean[0])


Trust = dict[tuple[int, Kind], float]


def trust_in(runs: JobRuns) -> Trust:
    """Returns the weight of each kind of runs that deserves less than its runs alone would give."""
    if not _is_wide(runs):
        return {}
    rows = [
        _Row(gpu, kind, sums)
        for gpu, cell in runs.cells.items()
        for part in (cell.alone, cell.beside)
        for kind, sums in part.items()
        if sums.weight > 0.0
    ]
    found: Trust = {}
    suspects = _suspects(runs, rows)
    calm = _calm(rows) if suspects else 0.0
    for row, others in suspects:
        apart = 4.0 * calm + 0.5 if others[0].gpu == row.gpu else LONGEST_APART
        weight = _weight(row, others, apart, calm, runs.features)
        if weight < 1.0:
            found[row.gpu, row.kind] = weight
    return found


def _suspects(runs: JobRuns, rows: Sequence[_Row]) -> list[tuple[_Row, list[_Row]]]:
    """Lists the rare kinds of runs, with those that they are compared with."""
    found = []
    for gpu in runs.cells:
        here = [row for row in rows if row.gpu == gpu]
        elsewhere = [row for row in rows if row.gpu != gpu]
        whole = sum(row.sums.weight for row in here)
        for row in here:
            own = row.sums.weight
            # Two runs that are far apart do not tell which of them is wrong; others may.
            if 2.0 * own >= whole:
                if _is_rare(row, elsewhere):
                    found.append((row, elsewhere))
            elif own <= 1.0 + whole / 20.0:
                found.append((row, here))
    return found


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
    return high - low >= 2


def _calm(rows: Sequence[_Row]) -> float:
    """Estimates the noise inside kinds, which mistakes cannot disturb."""
    squares = sum(float(row.sums.scatter[0, 0]) for row in rows)
    freedom = sum(max(row.sums.weight - 1.0, 0.0) for row in rows)
    return math.sqrt((_CALM_WEIGHT * _CALM**2 + squares) / (_CALM_WEIGHT + freedom))


def _is_rare(row: _Row, others: Sequence[_Row]) -> bool:
    return row.sums.weight <= _FEW and sum(each.sums.weight for each in others) >= 4 * _FEW


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
