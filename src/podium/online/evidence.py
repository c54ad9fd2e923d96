"""Turns the runs of one job type into what they say about the effects that all jobs share.

The model of log run time, for job type j on GPU type g with features x beside job types c:

    y = level + w·x + gpu[g] + slope[g]·x + job[j] + pair[j, g]
        + Σ (suffer[j] + disturb[c] + slow[j, c] + local[j, c, g]) + noise

All effects are Gaussian. Features are measured from what is usual, so that gpu is how GPU types
compare for usual jobs, and a missing feature has an effect of its own in the place of w·x. Effects
of one job type on one GPU type (pair, local) are integrated out of its runs there in closed form,
then those of the job type (job, suffer, slow): a job type of any number of runs becomes one matrix
over the shared effects. Such matrices add up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from podium.online.cell import Cell, JobRuns, Kind, Sums
from podium.online.columns import Columns
from podium.online.noise import Noise
from podium.online.parameters import Prior
from podium.online.spread import Spreads

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Index = NDArray[np.intp]
_PLAIN = 2
"""Columns of runs alone without features: y and 1."""

FADED = 1e-9
"""Sums that weigh less have been forgotten."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the columns of one job type's regression stand: y, 1, features, missing, neighbours."""

    features: tuple[int, ...]
    all_features: int
    neighbours: int
    given: int  # features, as bits, that the job type gives at least sometimes
    usual: tuple[float, ...] = ()  # of each feature, from which it is measured; empty: 0

    @property
    def size(self) -> int:
        """Counts the columns, with y."""
        return 2 + 2 * len(self.features) + self.neighbours

    @property
    def is_plain(self) -> bool:
        """Tells whether there is nothing but y and 1: runs alone without features."""
        return not self.features and not self.neighbours

    @property
    def active(self) -> int:
        """Returns the features as bits."""
        return sum(1 << each for each in self.features)

    def columns_of(self, kind: Kind) -> Taken:
        """Returns which columns the sums of a kind fill."""
        return _taken(self.features, self.all_features, self.neighbours, kind.is_beside)


class Taken(NamedTuple):
    """Columns of sums, and where they stand in the regression; each also as rows."""

    own: Index
    own_rows: Index
    place: Index
    place_rows: Index


@lru_cache(maxsize=1024)
def _taken(features: tuple[int, ...], all_features: int, neighbours: int, is_beside: bool) -> Taken:
    size = len(features)
    place = [0, *range(2, 2 + size)]
    own = [0, *(1 + each for each in features)]
    if is_beside:
        place += range(2 + 2 * size, 2 + 2 * size + neighbours)
        own += range(1 + all_features, 1 + all_features + neighbours)
    first, second = np.array(own, dtype=np.intp), np.array(place, dtype=np.intp)
    return Taken(first, first[:, None], second, second[:, None])


@dataclass(frozen=True, slots=True)
class CellGram:
    """The products of all columns on one GPU type; first of complete runs, then of others."""

    products: NDArray[np.float64]
    scatter: NDArray[np.float64]  # of y, features and neighbours, inside groups of like runs
    freedom: Vector

    @classmethod
    def of(cls, cell: Cell, layout: Layout, level: float, trust: dict[Kind, float]) -> CellGram:
        """Sums up the kinds of runs of a cell."""
        if layout.size == _PLAIN:
            return cls._plain(cell, level, trust)
        inner = 1 + len(layout.features) + layout.neighbours
        made = cls(
            np.zeros((2, layout.size, layout.size)), np.zeros((2, inner, inner)), np.zeros(2)
        )
        groups: dict[tuple[int, int, bool], Sums] = {}
        for kind, sums in cell.kinds():
            weight = trust.get(kind, 1.0)
            if sums.weight * weight > FADED:
                made._add(kind, sums.times(weight), layout, level, groups)
        for (at, _, _), group in groups.items():
            made.scatter[at] += group.scatter
            made.freedom[at] += max(group.weight - 1.0, 0.0)
        return made

    @classmethod
    def _plain(cls, cell: Cell, level: float, trust: dict[Kind, float]) -> CellGram:
        """Does the same for runs alone without features: all of them are one group of numbers."""
        squares = cross = whole = 0.0  # products of y and 1
        weight = mean = scatter = 0.0  # of the group
        for kind, sums in cell.kinds():
            share = trust.get(kind, 1.0)
            more = sums.weight * share
            if more <= FADED:
                continue
            own, around = sums.mean.item(0), sums.scatter.item(0) * share
            above = own - level
            squares += more * above * above + around
            cross += more * above
            whole += more
            if not weight:
                weight, mean, scatter = more, own, around
                continue
            total, apart = weight + more, own - mean
            mean = mean + apart * (more / total)
            scatter = scatter + around + apart * apart * (weight * more / total)
            weight = total
        products = np.zeros((2, _PLAIN, _PLAIN))
        products[0] = ((squares, cross), (cross, whole))
        freedom = np.array((max(weight - 1.0, 0.0), 0.0))
        return cls(products, np.array((scatter, 0.0)).reshape(2, 1, 1), freedom)

    def _add(
        self,
        kind: Kind,
        sums: Sums,
        layout: Layout,
        level: float,
        groups: dict[tuple[int, int, bool], Sums],
    ) -> None:
        given = kind.given & layout.active
        at = int(given != layout.given)
        taken = layout.columns_of(kind)
        part = Sums(
            sums.observations, sums.weight, sums.mean[taken.own],
            sums.scatter[taken.own_rows, taken.own],
        )  # fmt: skip
        row = np.zeros(layout.size)
        row[1] = 1.0
        row[taken.place] = part.mean
        row[0] -= level
        size = len(layout.features)
        if size:
            is_given = np.array([given >> each & 1 for each in layout.features])
            row[2 : 2 + size] -= is_given * layout.usual
            row[2 + size : 2 + 2 * size] = 1 - is_given
        products = self.products[at]
        products += (part.weight * row)[:, None] * row
        products[taken.place_rows, taken.place] += part.scatter
        if len(part.mean) < self.scatter.shape[1]:
            part = part.widened(self.scatter.shape[1])
        key = (at, given, kind.is_beside)
        if key in groups:
            groups[key].merge(part)
        else:
            groups[key] = part


@dataclass(frozen=True, slots=True)
class Gram:
    """The products of all columns of a job type, by GPU type, and the noise around them."""

    gpus: tuple[int, ...]
    products: NDArray[np.float64]  # of complete runs, then of others; by GPU type
    squares: Vector  # of noise, and the observations that it is known from
    freedom: Vector
    layout: Layout
    center: Vector  # mean of each feature where it is given
    is_mixed: tuple[bool, ...]  # features that are given sometimes

    @classmethod
    def of(cls, cells: dict[int, CellGram], layout: Layout, runs: JobRuns, prior: Prior) -> Gram:
        """Puts the cells of a job type together."""
        products = np.array([each.products for each in cells.values()]).transpose(1, 0, 2, 3)
        scatter = np.array([each.scatter for each in cells.values()]).sum(axis=0)
        freedom = np.array([each.freedom for each in cells.values()]).sum(axis=0)
        if scatter.shape[1] == 1:
            return cls(tuple(cells), products, scatter[:, 0, 0], freedom, layout, np.zeros(0), ())
        squares = np.zeros(2)
        for at in (0, 1):
            squares[at], used = _unexplained(scatter[at], len(layout.features), prior)
            freedom[at] = max(freedom[at] - used, 0.0)
        center, is_mixed = _features(runs, layout)
        return cls(tuple(cells), products, squares, freedom, layout, center, is_mixed)


def _features(runs: JobRuns, layout: Layout) -> tuple[Vector, tuple[bool, ...]]:
    if not layout.features:
        return np.zeros(0), ()
    weight, total = [0.0] * len(layout.features), [0.0] * len(layout.features)
    whole = 0.0
    for cell in runs.cells.values():
        for kind, sums in cell.kinds():
            whole += sums.weight
            for at, each in enumerate(layout.features):
                if kind.given >> each & 1:
                    weight[at] += sums.weight
                    total[at] += sums.weight * float(sums.mean[1 + each])
    mixed = tuple(FADED < each < whole - FADED for each in weight)
    return np.array(total) / np.maximum(weight, FADED), mixed


def _unexplained(scatter: Matrix, features: int, prior: Prior) -> tuple[float, float]:
    """Returns the squares that features and neighbours leave, and the freedom that they take."""
    variance = prior.noise**2
    inner, cross = scatter[1:, 1:], scatter[1:, 0]
    if not inner.any():
        return max(float(scatter[0, 0]), 0.0), 0.0
    whole = inner.copy()
    diagonal = whole.ravel()[:: len(cross) + 1]
    diagonal[:features] += variance / prior.feature_spread**2
    diagonal[features:] += variance / beside_variance(prior)
    # The last columns are inner and cross, so that one factorisation serves both.
    solved = np.linalg.solve(whole, np.roll(scatter[1:], -1, axis=1))
    explained = float(cross @ solved[:, -1])
    return max(float(scatter[0, 0]) - explained, 0.0), float(solved[:, :-1].trace())


def beside_variance(prior: Prior) -> float:
    """Returns the variance of the effect of one neighbour, before data."""
    return (
        prior.suffer_spread**2
        + prior.disturb_spread**2
        + prior.slowdown_spread**2
        + prior.local_spread**2
    )


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a job type shows about the shared effects, and what remains about itself."""

    index: NDArray[np.intp]  # the shared effects that it speaks of
    precision: Matrix
    shift: Vector  # the precision times the estimate
    gpus: dict[int, int]  # GPU types where it was seen, and their rows below
    products: NDArray[np.float64]  # of the columns of a GPU type with those of its own effects
    targets: Matrix  # of the own effects with y
    inverse: NDArray[np.float64]  # the covariance of the own effects, by GPU type
    own_variance: Vector  # of the same before data
    of_job: Matrix  # which columns contain which of the job type's effects
    job_inverse: Matrix
    job_mean: Vector
    pull: Matrix  # of the shared effects on those of the job type


def evidence_of(
    gram: Gram, noise: Noise, columns: Columns, neighbours: Sequence[str],
    spreads: Spreads, prior: Prior,
) -> Evidence:  # fmt: skip
    """Integrates out the effects of the job type, on each GPU type and on all of them."""
    if gram.layout.size == _PLAIN:
        return _plain_evidence(gram, noise, columns, spreads)
    weighted = weighted_products(gram, noise)
    products, targets = weighted[:, 1:, 1:], weighted[:, 1:, 0]
    own = own_places(gram.layout.size - 1, gram.layout.neighbours)
    own_variance = np.full(len(own), prior.local_spread**2)
    own_variance[0] = spreads.pair**2
    to_own = products[:, :, own]
    inverse = _inverse(to_own[:, own, :] + np.diag(1.0 / own_variance))
    share = to_own @ inverse
    left = products - share @ to_own.transpose(0, 2, 1)
    aims = targets - (share @ targets[:, own, None])[:, :, 0]
    return _of_job(
        _Cells(gram, left, aims), columns, neighbours, spreads, prior,
        (to_own, targets[:, own], inverse, own_variance),
    )  # fmt: skip


def _plain_evidence(gram: Gram, noise: Noise, columns: Columns, spreads: Spreads) -> Evidence:
    """Does the same for runs alone without features, where all matrices are numbers."""
    weighted = weighted_products(gram, noise)
    weight, target = weighted[:, 1, 1], weighted[:, 0, 1]
    inverse = 1.0 / (weight + spreads.pair**-2)
    rest = 1.0 - weight * inverse
    pull, shift = np.empty(1 + len(weight)), np.empty(1 + len(weight))
    pull[1:] = weight * rest
    shift[1:] = target * rest
    pull[0], shift[0] = np.add.reduce(pull[1:]), np.add.reduce(shift[1:])
    job_inverse = 1.0 / (float(pull[0]) + spreads.job**-2)
    job_mean = job_inverse * float(shift[0])
    precision = (-job_inverse * pull)[:, None] * pull
    precision[0] += pull
    precision[1:, 0] += pull[1:]
    precision.ravel()[len(pull) + 1 :: len(pull) + 1] += pull[1:]
    return Evidence(
        columns.index((), gram.gpus), precision, shift - pull * job_mean,
        {gpu: at for at, gpu in enumerate(gram.gpus)},
        weight[:, None, None], target[:, None], inverse[:, None, None],
        np.array([spreads.pair**2]), np.ones((1, 1)), np.array([[job_inverse]]),
        np.array([job_mean]), pull[:, None],
    )  # fmt: skip


def weighted_products(gram: Gram, noise: Noise) -> NDArray[np.float64]:
    """Returns the products by GPU type, in units of the noise."""
    weighted: NDArray[np.float64] = gram.products[0] / noise.variance[0]
    if gram.layout.size > _PLAIN:  # otherwise all runs are complete
        weighted += gram.products[1] / noise.variance[1]
    return weighted


@lru_cache(maxsize=1024)
def own_places(size: int, neighbours: int) -> Index:
    """Lists the columns, without y, that have an effect of their own on each GPU type."""
    return np.array([0, *range(size - neighbours, size)], dtype=np.intp)


@dataclass(frozen=True, slots=True)
class _Cells:
    gram: Gram
    left: NDArray[np.float64]
    aims: Matrix


def _of_job(
    cells: _Cells, columns: Columns, neighbours: Sequence[str], spreads: Spreads, prior: Prior,
    own: tuple[NDArray[np.float64], Matrix, NDArray[np.float64], Vector],
) -> Evidence:  # fmt: skip
    gram, left, aims = cells.gram, cells.left, cells.aims
    head = 1 + len(gram.layout.features)
    of_job, variance = job_effects(gram.layout, neighbours, columns, spreads, prior)
    whole, aim = left.sum(axis=0), aims.sum(axis=0)
    heads = left[:, :head, :]
    size = len(whole)
    full = np.zeros((size + heads.shape[0] * head,) * 2)
    full[:size, :size] = whole
    flat = heads.reshape(-1, size)
    full[size:, :size], full[:size, size:] = flat, flat.T
    for at, inner in enumerate(heads[:, :, :head], 1):
        place = slice(size + (at - 1) * head, size + at * head)
        full[place, place] = inner
    pull = full[:, :size] @ of_job
    inverse = _inverse(of_job.T @ pull[:size] + np.diag(1.0 / variance))
    job_mean = inverse @ (of_job.T @ aim)
    precision = full - pull @ inverse @ pull.T
    shift = np.concatenate([aim, aims[:, :head].ravel()]) - pull @ job_mean
    places = columns.index(neighbours, gram.gpus)
    if places.min() < 0:
        kept = np.flatnonzero(places >= 0)
        places, shift, pull = places[kept], shift[kept], pull[kept]
        precision = precision[np.ix_(kept, kept)]
    gpus = {gpu: at for at, gpu in enumerate(gram.gpus)}
    return Evidence(places, precision, shift, gpus, *own, of_job, inverse, job_mean, pull)


def _inverse(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    if matrix.shape[-1] == 1:
        return 1.0 / matrix
    return np.asarray(np.linalg.inv(matrix), dtype=np.float64)


def job_effects(
    layout: Layout, neighbours: Sequence[str], columns: Columns, spreads: Spreads, prior: Prior
) -> tuple[Matrix, Vector]:
    """Returns which columns contain the effects job, suffer and slow, and their variances."""
    of_job = _of_job_columns(layout.size - 1, layout.neighbours)
    if not layout.neighbours:
        return of_job, np.array([spreads.job**2])
    slow, others = prior.slowdown_spread**2, prior.disturb_spread**2
    each = [slow if name in columns.places else slow + others for name in neighbours]
    return of_job, np.array([spreads.job**2, prior.suffer_spread**2, *each])


@lru_cache(maxsize=1024)
def _of_job_columns(size: int, neighbours: int) -> Matrix:
    made = np.zeros((size, 2 + neighbours if neighbours else 1))
    made[0, 0] = 1.0
    if neighbours:
        made[size - neighbours :, 1] = 1.0
        made[size - neighbours :, 2:] = np.eye(neighbours)
    return made
