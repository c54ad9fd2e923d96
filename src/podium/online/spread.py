"""Learns how far job types, GPU types and pairs of them differ, and how much features matter.

Where all jobs run best on the same GPU types, a few runs tell where a new one belongs; where every
pair is for itself, each has to be tried. Which it is shows in the spread of the pair effects. A few
values of each spread are compared by how likely they make what was seen, and what is expected
beforehand: first those of pairs, then those of job types and GPU types together, then of features.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from podium.online.parameters import Prior

PAIRS = np.array([0.05, 0.15, 0.3, 0.5, 0.8, 1.2, 1.8])
JOBS = np.array([0.3, 0.7, 1.4, 3.0])
GPUS = np.array([0.1, 0.3, 0.7, 1.5])
FEATURES = np.array([0.15, 0.5, 1.5])
DOUBT = 0.7
"""How far the logarithm of a spread may be from what is expected."""

FEWEST_JOB_TYPES = 4
STEP = 0.5
"""Job types from which it is known what is usual, and the steps in which that moves."""

MOST_JOB_TYPES = 64
"""The first so many job types are looked at: enough for a few numbers, and cheap for ever."""

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Spreads:
    """The spreads of effects."""

    pair: float
    job: float
    gpu: float
    feature: float
    usual: float | None = None  # log run time of a usual job type, above the level before data

    @classmethod
    def expected(cls, prior: Prior) -> Spreads:
        """Returns the spreads before data."""
        return cls(prior.pair_spread, prior.job_spread, prior.gpu_spread, prior.feature_spread)


@dataclass(frozen=True, slots=True)
class _Summary:
    """What a job type tells about level, features and GPU types; by spread of pairs."""

    precision: Array
    shift: Array
    fit: Array  # log likelihood where all other effects are zero, up to a constant
    pull: Array  # of the effect of the job type on each column
    weight: Array  # the precision of that effect, and its precision times its estimate
    target: Array


class SpreadSearch:
    """Compares spreads."""

    def __init__(self, prior: Prior, features: int, gpus: int) -> None:
        self._prior = prior
        self._features = features
        self._width = 1 + 2 * features + gpus
        self._beside_variance = (
            prior.suffer_spread**2
            + prior.disturb_spread**2
            + prior.slowdown_spread**2
            + prior.local_spread**2
        )
        self._jobs: list[_Summary] = []
        self._used: list[tuple[int, ...]] = []  # GPU types of each job type
        self._stacked: _Summary | None = None

    def update(self, job: int, weighted: Array, gpus: tuple[int, ...]) -> None:
        """Replaces the products of a job type; job types come in the order of their numbers."""
        if job < MOST_JOB_TYPES:
            self._jobs[job : job + 1] = [self._summary(weighted, gpus)]
            self._used[job : job + 1] = [gpus]
            self._put(job)

    def likeliest(self) -> Spreads:
        """Returns the spreads that are most likely after all that was seen."""
        start = Spreads.expected(self._prior)
        if self._stacked is None:
            return start
        pair = self._pair(start)
        job, gpu = self._job_and_gpu(pair, start)
        feature = self._feature(pair, job, gpu) if self._features else start.feature
        return Spreads(float(PAIRS[pair]), job, gpu, feature, self._usual(pair))

    def _summary(self, weighted: Array, gpus: tuple[int, ...]) -> _Summary:
        size = 2 + 2 * self._features
        if weighted.shape[1] > size:
            weighted = integrated(weighted, size, self._beside_variance)
        own = weighted[:, 1, 1]
        share = 1.0 / (own + PAIRS[:, None] ** -2)
        column = weighted[:, :, 1]
        whole = weighted.sum(axis=0) - np.einsum("kg,gi,gj->kij", share, column, column)
        # The rows of GPU types: what is left of their column after the pair's effect.
        rows = column[None] * (1.0 - share * own)[:, :, None]
        place = [1 + 2 * self._features + gpu for gpu in gpus]
        count, inner = len(PAIRS), size - 1
        precision = np.zeros((count, self._width, self._width))
        precision[:, :inner, :inner] = whole[:, 1:, 1:]
        precision[:, :inner, place] = rows[:, :, 1:].transpose(0, 2, 1)
        precision[:, place, :inner] = rows[:, :, 1:]
        precision[:, place, place] = rows[:, :, 1]
        shift = np.zeros((count, self._width))
        shift[:, :inner], shift[:, place] = whole[:, 0, 1:], rows[:, :, 0]
        fit = -0.5 * np.log1p(PAIRS[:, None] ** 2 * own).sum(axis=1) - 0.5 * whole[:, 0, 0]
        return _Summary(
            precision, shift, fit, precision[:, 0].copy(), whole[:, 1, 1], whole[:, 0, 1]
        )

    def _put(self, job: int) -> None:
        made = self._jobs[job]
        if self._stacked is None or job >= len(self._stacked.fit):
            size = (max(2 * job, 8), len(PAIRS))
            width = self._width
            grown = _Summary(
                np.zeros((*size, width, width)), np.zeros((*size, width)), np.zeros(size),
                np.zeros((*size, width)), np.zeros(size), np.zeros(size),
            )  # fmt: skip
            self._stacked = grown
            for at, each in enumerate(self._jobs):
                _store(grown, at, each)
        _store(self._stacked, job, made)

    def _pair(self, start: Spreads) -> int:
        known = self._known()
        share = 1.0 / (known.weight + start.job**-2)
        precision = known.precision.sum(axis=0)
        precision -= np.einsum("nk,nki,nkj->kij", share, known.pull, known.pull)
        shift = known.shift.sum(axis=0)
        shift -= np.einsum("nk,nki->ki", share * known.target, known.pull)
        fit = (known.fit + _job_fit(known.weight, known.target, start.job)).sum(axis=0)
        spreads = self._shared(start.gpu, start.feature)[None]
        fit = fit + _gain(precision, shift, spreads)
        return int(np.argmax(fit + _expected(PAIRS, start.pair)))

    def _job_and_gpu(self, pair: int, start: Spreads) -> tuple[float, float]:
        precision, shift, fit = self._with_jobs(pair, JOBS)
        spreads = np.array([self._shared(gpu, start.feature) for gpu in GPUS])
        count = (len(JOBS), len(GPUS))
        precision = np.broadcast_to(precision[:, None], (*count, *precision.shape[1:]))
        shift = np.broadcast_to(shift[:, None], (*count, shift.shape[1]))
        fits = fit[:, None] + _gain(precision, shift, spreads[None])
        fits = fits + _expected(JOBS, start.job)[:, None] + _expected(GPUS, start.gpu)
        job, gpu = np.unravel_index(np.argmax(fits), count)
        return float(JOBS[job]), float(GPUS[gpu])

    def _usual(self, pair: int) -> float | None:
        """Returns the median of job types, in steps, as each changes all that is known."""
        known = self._known()
        if len(known.fit) < FEWEST_JOB_TYPES:
            return None
        means = known.target[:, pair] / np.maximum(known.weight[:, pair], 1e-9)
        return STEP * round(float(np.median(means)) / STEP)

    def _feature(self, pair: int, job: float, gpu: float) -> float:
        precision, shift, _ = self._with_jobs(pair, np.array([job]))
        spreads = np.array([self._shared(gpu, each) for each in FEATURES])
        count = len(FEATURES)
        fits = _gain(
            np.broadcast_to(precision[0], (count, *precision.shape[1:])),
            np.broadcast_to(shift[0], (count, shift.shape[1])),
            spreads,
        )
        expected = _expected(FEATURES, self._prior.feature_spread)
        return float(FEATURES[np.argmax(fits + expected)])

    def _with_jobs(self, pair: int, jobs: Array) -> tuple[Array, Array, Array]:
        known = self._known(self._telling())
        pull, weight, target = known.pull[:, pair], known.weight[:, pair], known.target[:, pair]
        share = 1.0 / (weight + jobs[:, None] ** -2)
        precision = known.precision[:, pair].sum(axis=0)
        precision = precision - np.matmul(pull.T[None] * share[:, None, :], pull)
        shift = known.shift[:, pair].sum(axis=0) - (share * target) @ pull
        fit = _job_fit(weight, target, jobs[:, None]).sum(axis=1)
        return precision, shift, fit

    def _telling(self) -> list[int] | slice:
        """Lists the job types that tell job from GPU type.

        One that ran on a single GPU type, which nobody else used, may be far from all others
        because of either.
        """
        users = Counter(gpu for gpus in self._used for gpu in gpus)
        found = [
            job
            for job, gpus in enumerate(self._used)
            if len(gpus) > 1 or (gpus and users[gpus[0]] > 1)
        ]
        return found if 0 < len(found) < len(self._used) else slice(len(self._used))

    def _known(self, jobs: list[int] | slice | None = None) -> _Summary:
        assert self._stacked is not None
        at = slice(len(self._jobs)) if jobs is None else jobs
        found = self._stacked
        return _Summary(
            found.precision[at], found.shift[at], found.fit[at],
            found.pull[at], found.weight[at], found.target[at],
        )  # fmt: skip

    def _shared(self, gpu: float, feature: float) -> Array:
        size = self._features
        found = np.full(self._width, gpu)
        found[0] = self._prior.level_spread
        found[1 : 1 + size] = feature
        found[1 + size : 1 + 2 * size] = self._prior.missing_spread
        return found


def _store(into: _Summary, job: int, made: _Summary) -> None:
    into.precision[job], into.shift[job], into.fit[job] = made.precision, made.shift, made.fit
    into.pull[job], into.weight[job], into.target[job] = made.pull, made.weight, made.target


def integrated(weighted: Array, size: int, variance: float) -> Array:
    """Integrates out what neighbours add, as though each were for itself on every GPU type."""
    outer = weighted[:, :size, size:]
    inner = weighted[:, size:, size:].copy()
    inner.reshape(len(inner), -1)[:, :: inner.shape[1] + 1] += 1.0 / variance
    taken: Array = outer @ np.linalg.solve(inner, outer.transpose(0, 2, 1))
    return weighted[:, :size, :size] - taken


def _job_fit(weight: Array, target: Array, spread: Array | float) -> Array:
    spread = np.asarray(spread)
    found: Array = 0.5 * target**2 / (weight + spread**-2) - 0.5 * np.log1p(spread**2 * weight)
    return found


def _gain(precision: Array, shift: Array, spreads: Array) -> Array:
    """Integrates the shared effects out: they are common to all values compared."""
    whole = precision + (spreads**-2)[..., None] * np.eye(precision.shape[-1])
    known = np.linalg.solve(whole, shift[..., None])[..., 0]
    found: Array = (
        0.5 * (shift * known).sum(axis=-1)
        - 0.5 * np.linalg.slogdet(whole).logabsdet
        - np.log(spreads).sum(axis=-1)
    )
    return found


def _expected(values: Array, center: float) -> Array:
    found: Array = -0.5 * (np.log(values / center) / DOUBT) ** 2
    return found
