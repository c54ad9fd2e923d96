"""Tells whether a job type goes against the trend: its pairs differ more than those of others.

Where that is so, what is known of other job types says little about GPU types that it never tried.

And whether it takes far longer or shorter than all others: then it must be the job type, for GPU
types do not differ as much, though nobody else may have used the one where it ran.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from podium.online.columns import Columns
from podium.online.evidence import Evidence, Gram, beside_variance, own_places, weighted_products
from podium.online.forecast import Known
from podium.online.noise import Noise
from podium.online.spread import JOBS, PAIRS, Spreads, integrated

Array = NDArray[np.float64]

DOUBT = 0.5
"""How far the logarithm of a job type's spread may be from that of all."""

JOB_DOUBT = 1.0
"""The same of the spread that the job type itself is taken from."""

_AT_ONCE = 128
"""Pairs of job types and GPU types whose spreads are found together."""


def own_pair_spread(
    gram: Gram, noise: Noise, columns: Columns, neighbours: Sequence[str], known: Known
) -> float:
    """Returns the spread of a job type's pairs: that of all, or a larger one if it must be."""
    common = known.spreads.pair
    if len(gram.gpus) < 2:
        return common
    spreads, variances, expected = _compared(common)
    left = _above(weighted_products(gram, noise), gram, columns, neighbours, known)
    doubt = known.doubt(gram.gpus)
    fits = _fits(left[:, 1, 1], left[:, 0, 1], variances + doubt, known.spreads.job)
    return spreads[int((fits + expected).argmax())]


class PairSpreads:
    """Finds the same for job types that only ran alone and without features, many at once.

    That takes hardly longer than for one of them. Blocks are fixed, so that what is found depends
    on what was seen alone, not on who was asked for.
    """

    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        self._size = max(_AT_ONCE // columns.gpus, 1)
        self._blocks: dict[int, _Block] = {}
        self._found: dict[int, list[float]] = {}  # by block, as long as nothing else is known
        self._known: Known | None = None

    def of(self, job: int, evidence: Sequence[Evidence], known: Known) -> float:
        """Returns the spread of a job type's pairs, given the evidence of all job types."""
        if known is not self._known:
            self._known = known
            self._found.clear()
        number, place = divmod(job, self._size)
        found = self._found.get(number)
        if found is None:
            block = self._blocks.get(number)
            if block is None:
                block = self._blocks[number] = _Block.empty(self._size, self._columns)
            block.take(evidence[number * self._size : (number + 1) * self._size])
            found = self._found[number] = block.spreads(known)
        return found[place]


@dataclass(frozen=True, slots=True)
class _Block:
    """Runs of a few job types by GPU type, where there are at least two; elsewhere zero."""

    first_gpu: int
    taken: list[Evidence | None]
    weight: Array  # in units of the noise, (job types, 1, GPU types)
    target: Array  # the same of run times above the level
    is_used: Array  # 1 where the job type ran, (job types, GPU types)

    @classmethod
    def empty(cls, size: int, columns: Columns) -> _Block:
        shape = (size, 1, columns.gpus)
        used = np.zeros((size, columns.gpus))
        return cls(columns.first_gpu, [None] * size, np.zeros(shape), np.zeros(shape), used)

    def take(self, evidence: Sequence[Evidence]) -> None:
        """Reads what changed since the last time."""
        for at, each in enumerate(evidence):
            if self.taken[at] is each:
                continue
            self.taken[at] = each
            self.weight[at] = self.target[at] = self.is_used[at] = 0.0
            if len(each.of_job) == 1 and len(each.gpus) > 1:
                place = each.index[1:] - self.first_gpu
                self.weight[at, 0, place] = each.products[:, 0, 0]
                self.target[at, 0, place] = each.targets[:, 0]
                self.is_used[at, place] = 1.0

    def spreads(self, known: Known) -> list[float]:
        """Returns the spread of the pairs of each job type; where there are none, that of all."""
        spreads, variances, expected = _compared(known.spreads.pair)
        gpus = slice(self.first_gpu, self.first_gpu + self.is_used.shape[1])
        target = self.target - self.weight * (known.mean[0] + known.mean[gpus])
        variance = variances + self._doubt(known.covariance[gpus, gpus])[:, None, :]
        fits = _fits(self.weight, target, variance, known.spreads.job)
        return [spreads[at] for at in (fits + expected).argmax(axis=1).tolist()]

    def _doubt(self, covariance: Array) -> Array:
        """Returns what is not known of each job type's GPU types against one another."""
        used = self.is_used
        count = np.maximum(np.add.reduce(used, axis=1, keepdims=True), 1.0)
        mean = used @ covariance
        mean /= count
        level = np.add.reduce(used * mean, axis=1, keepdims=True) / count
        found: Array = covariance.diagonal() - 2.0 * mean + level
        return np.maximum(found, 0.0)


def own_job_spread(gram: Gram, noise: Noise, spreads: Spreads) -> float:
    """Returns the spread that a job type is taken from: that of all, or a larger one if it must be.

    So the tails of job types are heavy, and those of GPU types are not.
    """
    common = spreads.job
    if spreads.usual is None or common >= JOBS[-1]:
        return common
    products = weighted_products(gram, noise)
    target, weight = products[:, 0, 1], np.maximum(products[:, 1, 1], 1e-9)
    trust = 1.0 / (spreads.gpu**2 + spreads.pair**2 + 1.0 / weight)
    whole = float(np.add.reduce(trust))
    apart = float(trust @ (target / weight)) / whole - spreads.usual
    compared, expected = _compared_jobs(common)
    variance = compared**2 + 1.0 / whole
    fits = -0.5 * apart**2 / variance - 0.5 * np.log(variance) + expected
    return float(compared[int(fits.argmax())])


@cache
def _compared_jobs(common: float) -> tuple[Array, Array]:
    spreads = np.array([common, *(each for each in JOBS if each > common)])
    return spreads, -0.5 * (np.log(spreads / common) / JOB_DOUBT) ** 2


@cache
def _compared(common: float) -> tuple[list[float], Array, Array]:
    """Returns the spreads that are compared, their squares, and what is expected of them."""
    spreads = np.array([common, *(each for each in PAIRS if each > common)])
    expected = -0.5 * (np.log(spreads / common) / DOUBT) ** 2
    return spreads.tolist(), spreads[:, None] ** 2, expected


def _above(
    weighted: Array, gram: Gram, columns: Columns, neighbours: Sequence[str], known: Known
) -> Array:
    """Returns the products of run times, above what shared effects explain, with one another.

    Their squares are left out, as no spread changes them.
    """
    # Effects that do not exist have the place -1, and are zero.
    effects = np.append(known.mean, 0.0)[columns.index(neighbours, gram.gpus)]
    count, head = columns.first_gpu + len(neighbours), 1 + len(columns.features)
    by_gpu = np.tile(effects[:count], (len(gram.gpus), 1))
    by_gpu[:, :head] += effects[count:].reshape(-1, head)
    explained = (weighted[:, 1:, 1:] @ by_gpu[:, :, None])[:, :, 0]
    aims = weighted[:, 1:, 0] - explained
    kept = own_places(weighted.shape[1] - 1, len(neighbours))
    left = np.zeros((len(by_gpu), 1 + len(kept), 1 + len(kept)))
    left[:, 0, 1:] = left[:, 1:, 0] = aims[:, kept]
    left[:, 1:, 1:] = weighted[:, 1 + kept[:, None], 1 + kept]
    return left if len(kept) == 1 else integrated(left, 2, beside_variance(known.prior))


def _fits(own: Array, target: Array, variance: Array, job_spread: float) -> Array:
    """Returns the log likelihood for each row of variances of pairs, up to a constant.

    Places without weight and target do not count.
    """
    within = variance * own
    share = variance / (1.0 + within)
    rest = 1.0 - share * own
    weight = np.add.reduce(rest * own, axis=-1)
    aim = np.add.reduce(rest * target, axis=-1)
    found: Array = (
        0.5 * np.add.reduce(share * target**2 - np.log1p(within), axis=-1)
        + 0.5 * aim**2 / (weight + job_spread**-2)
        - 0.5 * np.log1p(job_spread**2 * weight)
    )
    return found
