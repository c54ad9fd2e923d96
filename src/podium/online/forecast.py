"""Forecasts one job type on every GPU type, as a function of its features, in some company.

In the features the mean is linear and the variance quadratic. Both are worked out once, so that a
request costs a few multiplications. Company is one more column: what it adds is forecast with the
rest, and can be told apart.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from podium.online.columns import MOST_SLOPED, Columns
from podium.online.evidence import Evidence, own_places
from podium.online.parameters import Prior
from podium.online.spread import Spreads

Array = NDArray[np.float64]

_AT_ONCE = 64
"""Pairs of job types and GPU types that are forecast together."""

_MOST_ENTRIES = 1_000_000
"""Numbers in all parts of forecasts that are kept, 8 MB."""


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of all effects: mean and covariance of the shared ones, and the spreads."""

    mean: Array
    covariance: Array
    columns: Columns
    spreads: Spreads
    prior: Prior
    level: float
    _doubts: dict[tuple[int, ...], Array] = field(default_factory=dict)

    def doubt(self, gpus: tuple[int, ...]) -> Array:
        """Returns what is not known of GPU types, without what they have in common.

        Job types mostly ran on the same GPU types, so it is kept.
        """
        found = self._doubts.get(gpus)
        if found is None:
            place = np.array([self.columns.first_gpu + gpu for gpu in gpus], dtype=np.intp)
            found = self._doubts[gpus] = _contrasts(self.covariance[place][:, place])
        return found


def _contrasts(covariance: Array) -> Array:
    """Returns what is not known of GPU types against one another; their level does not matter."""
    count = len(covariance)
    mean = np.add.reduce(covariance, axis=0) / count
    found: Array = covariance.diagonal() - 2.0 * mean + np.add.reduce(mean) / count
    return np.maximum(found, 0.0)


@dataclass(frozen=True, slots=True)
class Forecast:
    """Mean and variance of log run time by GPU type, the last being a new one, and by column."""

    means: Array
    variances: Array

    def at(self, places: Sequence[int], row: Sequence[float]) -> list[tuple[float, float]]:
        """Returns mean and variance at some places, for a row of columns."""
        if len(row) == 1:
            mean, variance = self.means.item, self.variances.item
            return [(mean(at, 0), variance(at, 0, 0)) for at in places]
        given = np.array(row)
        means = self.means[places, : len(given)] @ given
        inner = self.variances[places, : len(given), : len(given)]
        variances = (inner @ given) @ given
        return list(zip(means.tolist(), variances.tolist(), strict=True))

    def added(self, places: Sequence[int], features: Sequence[float]) -> list[float]:
        """Returns what a change of features adds to the mean at some places."""
        if not any(features):
            return [0.0] * len(places)
        found = self.means[places, 1 : 1 + len(features)] @ np.array(features)
        return [float(each) for each in found]


def forecast(
    evidence: Evidence, neighbours: Sequence[str], beside: Sequence[str], known: Known
) -> Forecast:
    """Works out every place for a job type that met these neighbours, in some company.

    One that only ran alone and without features is left to `PlainForecasts`, unless in company.
    """
    company = Counter(beside)
    size, head = len(evidence.of_job), known.columns.first_gpu
    columns = np.zeros((size, head + bool(company)))
    columns[:head, :head] = np.eye(head)
    for at, name in enumerate(neighbours):
        if company and name in company:
            columns[head + at, -1] = company[name]
    unmet = {name: count for name, count in company.items() if name not in neighbours}
    means, variances, left = _on_gpus(evidence, columns, known)
    inner = evidence.of_job.T @ left
    if unmet and evidence.of_job.shape[1] > 1:
        inner[:, 1, -1] += sum(unmet.values())
    solved = evidence.job_inverse @ inner
    # The mean of the job type's effects, where all shared effects are zero.
    means += evidence.job_mean @ inner
    variances += inner.transpose(0, 2, 1) @ solved
    shared = _shared(evidence, neighbours, left, solved, known)
    _add_unmet(unmet, evidence, shared, variances, known)
    means += known.mean @ shared
    variances += shared.transpose(0, 2, 1) @ (known.covariance @ shared)
    variances[-1, 0, 0] += known.spreads.gpu**2
    for at in range(1, 1 + len(known.columns.features)):
        variances[-1, at, at] += known.prior.slope_spread**2
    means[:, 0] += known.level
    return Forecast(means, variances)


def slowdowns(
    evidence: Evidence, neighbours: Sequence[str], known: Known
) -> dict[str, tuple[float, float]]:
    """Returns mean and variance of what each neighbour that was met adds, anywhere."""
    columns, count = known.columns, len(neighbours)
    inner = evidence.of_job[columns.first_gpu :].T
    solved = evidence.job_inverse @ inner
    shared = np.zeros((columns.width, count))
    for at, name in enumerate(neighbours):
        place = columns.places.get(name)
        if place is not None:
            shared[place, at] = 1.0
    shared[evidence.index] -= evidence.pull @ solved
    means = evidence.job_mean @ inner + known.mean @ shared
    variances = (inner * solved).sum(axis=0) + (shared * (known.covariance @ shared)).sum(axis=0)
    variances += known.prior.local_spread**2
    rows = zip(means.tolist(), variances.tolist(), strict=True)
    return dict(zip(neighbours, rows, strict=True))


def slowdown(evidence: Evidence, at: int, name: str, known: Known) -> tuple[float, float]:
    """Returns the same for one of them, the one at this place."""
    columns = known.columns
    inner = evidence.of_job[columns.first_gpu + at]
    solved = evidence.job_inverse @ inner
    shared = np.zeros(columns.width)
    place = columns.places.get(name)
    if place is not None:
        shared[place] = 1.0
    shared[evidence.index] -= evidence.pull @ solved
    mean = evidence.job_mean @ inner + known.mean @ shared
    variance = inner @ solved + shared @ (known.covariance @ shared)
    return float(mean), float(variance) + known.prior.local_spread**2


class PlainForecasts:
    """Forecasts job types that only ran alone and without features, where matrices are numbers.

    Those that were asked for are forecast together, in blocks: that takes little longer than for
    one of them. What a job type says itself stays until its own evidence changes.
    """

    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        self._size = max(_AT_ONCE // columns.gpus, 1)
        self._most = max(_MOST_ENTRIES // ((columns.gpus + 1) * columns.width), 1)
        self._slots: dict[int | None, int] = {}
        self._blocks: list[_PlainBlock] = []

    def of(self, job: int | None, evidence: Evidence, known: Known) -> Forecast:
        """Returns the forecast of a job type; None is one that was never seen."""
        slot = self._slots.get(job)
        if slot is None:
            if len(self._slots) >= self._most:
                self._slots.clear()
                self._blocks.clear()
            slot = self._slots[job] = len(self._slots)
            if slot // self._size == len(self._blocks):
                self._blocks.append(_PlainBlock(self._size, self._columns))
        number, place = divmod(slot, self._size)
        return self._blocks[number].forecast(place, evidence, known)


class _PlainBlock:
    """Parts of forecasts, by job type and GPU type, the last being a new one."""

    def __init__(self, size: int, columns: Columns) -> None:
        shape = (size, columns.gpus + 1)
        self._columns = columns
        self._taken: list[Evidence] = []
        self._own = np.zeros(shape), np.zeros(shape)  # means and variances of the job type itself
        self._shared = np.zeros((*shape, columns.width))  # how the shared effects enter
        self._known: Known | None = None
        self._means = self._variances = np.zeros(shape)

    def forecast(self, at: int, evidence: Evidence, known: Known) -> Forecast:
        """Returns one of them, of this evidence."""
        is_new = at == len(self._taken)
        if is_new or self._taken[at] is not evidence:
            self._taken[at : at + 1] = [evidence]
            self._take(at, evidence)
            if self._known is known:
                means, variances = self._whole(slice(at, at + 1), known)
                self._means[at], self._variances[at] = means[0], variances[0]
        if self._known is not known:
            self._known = known
            self._means, self._variances = self._whole(slice(None), known)
        return Forecast(self._means[at, :, None], self._variances[at, :, None, None])

    def _take(self, at: int, evidence: Evidence) -> None:
        """Works out what a job type says itself."""
        columns, index = self._columns, evidence.index
        first, width = columns.first_gpu, columns.width
        means, variances, left = self._own[0][at], self._own[1][at], np.ones(columns.gpus + 1)
        means.fill(0.0)
        variances.fill(evidence.own_variance.item(0))
        if evidence.gpus:
            rows, inverse = index[1:] - first, evidence.inverse[:, 0, 0]
            variances[rows] = inverse
            left[rows] = 1.0 - evidence.products[:, 0, 0] * inverse
            means[rows] = evidence.targets[:, 0] * inverse
        solved = left * evidence.job_inverse.item(0)
        means += left * evidence.job_mean.item(0)
        variances += left * solved
        shared = self._shared[at]
        shared.fill(0.0)
        shared[:, 0] = left
        # One entry in each row but the last: the column of the row's GPU type.
        shared.ravel()[first : first + columns.gpus * (width + 1) : width + 1] = left[:-1]
        shared[:, index] -= solved[:, None] * evidence.pull[:, 0]

    def _whole(self, rows: slice, known: Known) -> tuple[Array, Array]:
        """Adds what is known of the shared effects."""
        shared = self._shared[rows]
        means = shared @ known.mean
        means += known.level
        means += self._own[0][rows]
        variances = np.add.reduce((shared @ known.covariance) * shared, axis=2)
        variances += self._own[1][rows]
        variances[:, -1] += known.spreads.gpu**2
        return means, variances


def _on_gpus(evidence: Evidence, columns: Array, known: Known) -> tuple[Array, Array, Array]:
    """Returns what the effects on each GPU type say, and the columns that they leave."""
    places, size = known.columns.gpus + 1, len(columns)
    inner = columns[own_places(size, size - known.columns.first_gpu)]
    before = inner * evidence.own_variance[:, None]
    solved = np.repeat(before[None], places, axis=0)
    left = np.repeat(columns[None], places, axis=0)
    means = np.zeros((places, columns.shape[1]))
    if evidence.gpus:
        rows = list(evidence.gpus)
        solved[rows] = evidence.inverse @ inner
        left[rows] -= evidence.products @ solved[rows]
        means[rows] = (evidence.targets[:, None, :] @ solved[rows])[:, 0, :]
    return means, inner.T @ solved, left


def _shared(
    evidence: Evidence, neighbours: Sequence[str], left: Array, solved: Array, known: Known
) -> Array:
    """Returns how the shared effects enter."""
    columns = known.columns
    made = np.zeros((columns.gpus + 1, columns.width, left.shape[2]))
    common = columns.index(neighbours, ())
    if len(common) and common.min() < 0:
        kept = np.flatnonzero(common >= 0)
        made[:, common[kept]] = left[:, kept]
    else:
        made[:, common] = left
    gpus = np.arange(columns.gpus)
    made[gpus, columns.first_gpu + gpus] = left[:-1, 0]
    size = len(columns.features)
    for at in range(size):
        sloped = gpus[:MOST_SLOPED]
        made[sloped, columns.first_slope + sloped * size + at] = left[sloped, 1 + at]
    made[:, evidence.index] -= evidence.pull @ solved
    return made


def _add_unmet(
    unmet: dict[str, int], evidence: Evidence, shared: Array, variances: Array, known: Known
) -> None:
    """Adds neighbours that the job type never met, of which only the parts are known."""
    prior = known.prior
    if unmet and evidence.of_job.shape[1] == 1:
        variances[:, -1, -1] += (prior.suffer_spread * sum(unmet.values())) ** 2
    for name, count in unmet.items():
        variance = prior.slowdown_spread**2 + prior.local_spread**2
        place = known.columns.places.get(name)
        if place is None:
            variance += prior.disturb_spread**2
        else:
            shared[:, place, -1] += count
        variances[:, -1, -1] += count**2 * variance
