"""Fits the effects that all job types share, and predicts pairs from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import astuple, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from podium.online.cell import OTHERS, Features, JobRuns, Kind
from podium.online.columns import MOST_DISTURBING, Columns
from podium.online.evidence import (
    CellGram,
    Evidence,
    Gram,
    Layout,
    evidence_of,
    job_effects,
    weighted_products,
)
from podium.online.forecast import Forecast, Known, PlainForecasts, forecast, slowdown, slowdowns
from podium.online.noise import CommonNoise, Noise, own_noise
from podium.online.oddness import PairSpreads, own_job_spread, own_pair_spread
from podium.online.parameters import Parameters
from podium.online.spread import MOST_JOB_TYPES, Spreads, SpreadSearch
from podium.online.trust import Trust, trust_in

Array = NDArray[np.float64]
_GPUS_AT_ONCE = 8
_MOST_FORECASTS = 1000
OFTEN = 64
"""Observations up to which spreads and noise are learned with each of them."""

GROWTH = 1.05
"""How much more there is to see, from then on, before they are learned again."""

STEP = 0.5
"""In which the usual value of a feature moves; of ln(1 + value)."""

BLOCK = 16
"""Job types in a block. Blocks are fixed, so that the sum depends on what is in them alone."""


class Prediction(NamedTuple):
    """Mean and variance of log run time alone and without noise, and what company adds."""

    mean: float
    variance: float
    noise: float  # its variance
    freedom: float  # observations that the noise is known from
    added: float = 0.0
    whole_variance: float | None = None  # in that company, where there is any
    beyond_usual: float = 0.0  # of the mean, for features that are not those of a usual run


class Posterior:
    """The Gaussian posterior of all effects that job types share.

    Job types and GPU types are numbered from 0. The posterior is the sum of the evidence of all job
    types with the prior, taken afresh: it depends on what is in the sums, not on how it came there.
    It is worked out when it is next asked for, so that thousands of observations in a row cost
    little.
    """

    def __init__(self, parameters: Parameters) -> None:
        self._parameters = parameters
        self._prior = parameters.prior
        self._runs: Sequence[JobRuns] = ()
        self._columns = Columns((), _GPUS_AT_ONCE, ())
        self._wanted = self._columns  # with what was seen since
        self.given = 0  # features, as bits, that some run gave
        self._disturbing: set[str] = set()
        self._stale: set[int] = set()  # job types whose runs changed
        self._unweighed: set[int] = set()  # job types whose sums changed
        self._unsearched: set[int] = set()  # the same, for the search of spreads
        self._common = CommonNoise(self._prior).known()
        self._spreads = Spreads.expected(self._prior)
        self._usual_of: dict[int, float] = {}  # features, and from where they are measured
        self._is_young, self._due = True, 0
        self._known: Known | None = None
        self._forecasts: dict[tuple[int | None, tuple[str, ...]], Forecast] = {}
        # Of job types that were asked for, with what it was made of: it may still be the same.
        self._own: dict[int, tuple[Evidence, float, Evidence]] = {}
        self._own_pairs: dict[int, float] = {}  # spreads, of job types that are not plain
        self._slowdowns: dict[int, dict[str, tuple[float, float]]] = {}
        self._begin()

    @property
    def spreads(self) -> Spreads:
        """Returns how far effects differ, as learned from all that was seen."""
        self._fitted()
        return self._spreads

    @property
    def columns(self) -> Columns:
        """Returns the shared effects."""
        self._fitted()
        return self._columns

    @property
    def usual(self) -> dict[int, float]:
        """Returns from where each feature that was given is measured."""
        self._fitted()
        return dict(zip(self._columns.features, self._usual, strict=True))

    def update(self, runs: Sequence[JobRuns], job: int, gpus: int, given: int) -> None:
        """Notes that the runs of a job type changed; given are the features of the new ones."""
        self._runs = runs
        self._stale.add(job)
        self._known = None
        if given & ~self.given:
            self._due = 0  # what is usual of a new feature is learned at once
        self.given |= given
        count = -(-gpus // _GPUS_AT_ONCE) * _GPUS_AT_ONCE
        neighbours = runs[job].neighbours
        if not self._disturbing.issuperset(neighbours):
            self._disturbing.update(neighbours)
        elif count <= self._wanted.gpus and given == given & self._active:
            return
        self._want(max(count, self._wanted.gpus), neighbours)

    def count(self, observations: int) -> None:
        """Learns spreads and the common noise again when there is enough new to see.

        That is fixed by the number of observations, so that all who see them in the same order
        know the same, whenever they are asked.
        """
        self._is_young = observations <= OFTEN
        if not self._is_young and observations >= self._due:
            self.learn_common(observations)

    def learn_common(self, observations: int) -> None:
        """Learns spreads and the common noise from all that was seen."""
        self._is_young = observations <= OFTEN
        self._due = max(observations + 1, round(observations * GROWTH))
        self._refresh(MOST_JOB_TYPES)
        self._learn_usual(MOST_JOB_TYPES)
        self._learn_common()

    def as_object(self) -> dict[str, Any]:
        """Returns as JSON types what cannot be told from the sums."""
        if self._is_young:
            return {}
        return {
            "due": self._due,
            "noise": [*self._common.variance, *self._common.freedom, self._common.weight],
            "spreads": astuple(self._spreads),
            "usual": list(self._usual),
        }

    def restore(self, data: Mapping[str, Any]) -> None:
        """Reads back what was learned of spreads and noise."""
        if not data:
            return
        self._refresh()
        self._measure_from(data["usual"])
        complete, partial, freedom, other, weight = data["noise"]
        self._is_young, self._due = False, int(data["due"])
        noise = Noise((complete, partial), (freedom, other), weight)
        self._follow(noise, Spreads(*data["spreads"]))

    def noise(self, job: int | None) -> Noise:
        """Returns the noise of single runs of a job type; the common one where there is none."""
        self._fitted()
        return self._common if job is None else self._noises[job]

    def job_spread(self, job: int | None) -> float:
        """Returns the spread that a job type is taken from."""
        self._fitted()
        if job is None:
            return self._spreads.job
        return own_job_spread(self._grams[job], self._noises[job], self._spreads)

    def predict(
        self, job: int | None, gpus: Sequence[int | None], features: Features, beside: Sequence[str]
    ) -> list[Prediction]:
        """Predicts the log run time of a job; None is a type never seen."""
        known = self._fitted()
        if beside and job is not None:
            beside = self._runs[job].columns_of(beside)
        made = self._forecast(job, tuple(sorted(beside)), known)
        places = [known.columns.gpus if gpu is None else gpu for gpu in gpus]
        noise = self._common if job is None else self._noises[job]
        if not beside and not known.columns.features:
            rest = noise.variance[0], noise.freedom[0]
            return [Prediction(*own, *rest) for own in made.at(places, (1.0,))]
        row, is_partial = self._row(job, features)
        beyond = made.added(places, self._beyond_usual(job, features))
        rest = noise.variance[is_partial], noise.freedom[is_partial]
        return _predictions(made, places, row, beyond, rest, is_beside=bool(beside))

    def slowdowns(self, job: int) -> dict[str, tuple[float, float]]:
        """Predicts mean and variance of what each neighbour adds to the log run time, anywhere."""
        neighbours = self._runs[job].neighbours
        if not neighbours:
            return {}
        known = self._fitted()
        made = self._slowdowns.get(job)
        if made is None:
            made = slowdowns(self._evidence[job], neighbours, known)
            made.pop(OTHERS, None)  # nobody in particular
            self._slowdowns[job] = made
        return made

    def may_disturb(self, job_type: str) -> bool:
        """Tests whether some job type may have met this one; where not, it surely has not."""
        return job_type in self._disturbing

    def slowdown(self, job: int, neighbour: str) -> tuple[float, float]:
        """Predicts the same for one neighbour, which takes less time than for all of them."""
        known = self._fitted()
        at = self._runs[job].neighbours.index(neighbour)
        return slowdown(self._evidence[job], at, neighbour, known)

    def _want(self, gpus: int, neighbours: Sequence[str]) -> None:
        active = tuple(
            each for each in range(len(self._parameters.features)) if self.given >> each & 1
        )
        # The first of all are among the first so far and those that came; to sort all of them
        # with each that comes would take seconds for thousands of job types.
        seen = {*self._wanted.disturbing, *neighbours} - {OTHERS}
        disturbing = tuple(sorted(seen)[:MOST_DISTURBING])
        self._wanted = Columns(active, gpus, disturbing)
        self._active = sum(1 << each for each in active)

    def _begin(self) -> None:
        """Starts over with other columns; spreads and noise stay as they were learned."""
        self._columns = self._wanted
        self._active = sum(1 << each for each in self._columns.features)
        self._usual = tuple(self._usual_of.get(each, 0.0) for each in self._columns.features)
        self._cells: list[dict[int, tuple[object, CellGram]]] = []
        self._grams: list[Gram] = []
        self._noises: list[Noise] = []
        self._own_spreads: list[Spreads] = []
        self._evidence: list[Evidence] = []
        self._pair_spreads = PairSpreads(self._columns)
        self._own.clear()
        self._plain = PlainForecasts(self._columns)
        self._commons = CommonNoise(self._prior)
        self._search = SpreadSearch(self._prior, len(self._columns.features), self._columns.gpus)
        self._totals = Totals(self._columns.width)
        self._least: Array | None = None  # precision of the shared effects before data
        self._unseen = self._nothing()
        self._stale.update(range(len(self._runs)))

    def _nothing(self) -> Evidence:
        """Returns the evidence of a job type that was never seen."""
        size, width = self._columns.first_gpu, 0
        layout = Layout(self._columns.features, len(self._parameters.features), 0, 0, self._usual)
        of_job, variance = job_effects(layout, (), self._columns, self._spreads, self._prior)
        own = np.array([self._spreads.pair**2])
        return Evidence(
            np.zeros(width, dtype=np.intp), np.zeros((width, width)), np.zeros(width), {},
            np.zeros((0, size, 1)), np.zeros((0, 1)), np.zeros((0, 1, 1)), own,
            of_job, np.diag(variance), np.zeros(1), np.zeros((width, 1)),
        )  # fmt: skip

    def _take(self, job: int) -> None:
        """Sums up the runs of a job type afresh; cells that did not change are kept."""
        runs = self._runs[job]
        given = 0
        for cell in runs.cells.values():
            for kind, _ in cell.kinds():
                given |= kind.given
        features = self._columns.features
        all_features = len(self._parameters.features)
        layout = Layout(
            features, all_features, len(runs.neighbours), given & self._active, self._usual
        )
        trust = trust_in(runs)
        if job == len(self._cells):
            self._cells.append({})
        kept, made = self._cells[job], dict[int, CellGram]()
        for gpu, cell in runs.cells.items():
            own = _of_gpu(trust, gpu) if trust else {}
            key = (cell.version, layout, own)
            if gpu not in kept or kept[gpu][0] != key:
                kept[gpu] = key, CellGram.of(cell, layout, self._parameters.level, own)
            made[gpu] = kept[gpu][1]
        gram = Gram.of(made, layout, runs, self._prior)
        self._grams[job : job + 1] = [gram]
        if job < MOST_JOB_TYPES:
            self._commons.put(job, gram.squares, gram.freedom)

    def _refresh(self, most: int | None = None) -> None:
        """Sums up all runs that came since, of all job types or the first so many."""
        if self._wanted != self._columns:
            self._begin()
        stale = {job for job in self._stale if most is None or job < most}
        for job in sorted(stale):
            self._take(job)
            self._unweighed.add(job)
            if job < MOST_JOB_TYPES:
                self._unsearched.add(job)
        self._stale -= stale

    def _learn_usual(self, most: int | None = None) -> None:
        """Learns from where features are measured; it moves in steps, as each changes all sums."""
        usual = tuple(
            STEP * round(self._center(at) / STEP) for at in range(len(self._columns.features))
        )
        if usual != self._usual:
            self._measure_from(usual)
            self._refresh(most)

    def _measure_from(self, usual: Sequence[float]) -> None:
        self._usual = tuple(usual)
        self._usual_of = dict(zip(self._columns.features, usual, strict=True))
        self._stale.update(range(len(self._runs)))

    def _learn_common(self) -> None:
        common = self._commons.known()
        if _differ(common, self._common):
            self._unsearched = set(range(min(len(self._grams), MOST_JOB_TYPES)))
        for job in sorted(self._unsearched):
            gram = self._grams[job]
            noise = own_noise(common, gram.squares, gram.freedom)
            self._search.update(job, weighted_products(gram, noise), gram.gpus)
        self._unsearched.clear()
        self._follow(common, self._search.likeliest())

    def _follow(self, common: Noise, spreads: Spreads) -> None:
        """Takes over spreads and noise; what changes them changes what is known of everything."""
        if common != self._common or spreads != self._spreads:
            self._unweighed = set(range(len(self._grams)))
        if spreads != self._spreads:
            self._least = None
        self._common, self._spreads = common, spreads
        self._unseen = self._nothing()
        self._known = None

    def _weigh(self) -> None:
        """Turns sums into evidence."""
        for job in sorted(self._unweighed):
            gram = self._grams[job]
            noise = own_noise(self._common, gram.squares, gram.freedom)
            self._noises[job : job + 1] = [noise]
            spreads = self._spreads_of(gram, noise)
            self._own_spreads[job : job + 1] = [spreads]
            made = evidence_of(
                gram, noise, self._columns, self._runs[job].neighbours, spreads, self._prior
            )
            self._evidence[job : job + 1] = [made]
            self._totals.put(job, made)
        self._unweighed.clear()

    def _spreads_of(self, gram: Gram, noise: Noise) -> Spreads:
        """Returns the spreads from which a job type is taken, which may be far from all others."""
        job = own_job_spread(gram, noise, self._spreads)
        return self._spreads if job == self._spreads.job else replace(self._spreads, job=job)

    def _fitted(self) -> Known:
        if self._known is not None:
            return self._known
        self._refresh()
        if self._is_young:
            self._learn_usual()
            self._learn_common()
        self._weigh()
        precision, shift = self._totals.sums()
        if self._least is None:
            spreads = self._columns.spreads(self._prior, self._spreads.gpu, self._spreads.feature)
            self._least = np.diag(spreads**-2)
        covariance = np.asarray(np.linalg.inv(precision + self._least), dtype=np.float64)
        self._known = Known(
            covariance @ shift, covariance, self._columns, self._spreads, self._prior,
            self._parameters.level,
        )  # fmt: skip
        self._forecasts.clear()
        self._own_pairs.clear()
        self._slowdowns.clear()
        return self._known

    def _forecast(self, job: int | None, beside: tuple[str, ...], known: Known) -> Forecast:
        made = self._forecasts.get((job, beside))
        if made is None:
            if len(self._forecasts) >= _MOST_FORECASTS:
                self._forecasts.clear()
            evidence = self._unseen if job is None else self._own_evidence(job, known)
            if len(evidence.of_job) == 1 and not beside:
                made = self._plain.of(job, evidence, known)
            else:
                neighbours = () if job is None else self._runs[job].neighbours
                made = forecast(evidence, neighbours, beside, known)
            self._forecasts[job, beside] = made
        return made

    def _own_evidence(self, job: int, known: Known) -> Evidence:
        """Returns what is known of a job type, which may differ from others more than they do."""
        evidence, spreads = self._evidence[job], self._own_spreads[job]
        pair = self._pair_spread(job, known)
        if pair == spreads.pair:
            return evidence
        found = self._own.get(job)
        if found is None or found[0] is not evidence or found[1] != pair:
            made = evidence_of(
                self._grams[job], self._noises[job], self._columns, self._runs[job].neighbours,
                replace(spreads, pair=pair), self._prior,
            )  # fmt: skip
            found = self._own[job] = evidence, pair, made
        return found[2]

    def _pair_spread(self, job: int, known: Known) -> float:
        gram = self._grams[job]
        if gram.layout.is_plain:
            return self._pair_spreads.of(job, self._evidence, known)
        found = self._own_pairs.get(job)
        if found is None:  # in whatever company it is asked for
            noise, neighbours = self._noises[job], self._runs[job].neighbours
            found = own_pair_spread(gram, noise, self._columns, neighbours, known)
            self._own_pairs[job] = found
        return found

    def _row(self, job: int | None, features: Features) -> tuple[list[float], bool]:
        """Returns the columns of a request, and whether it lacks what its job type mostly gives.

        A feature that no run of the job type gave says nothing about how this run differs from
        those; one that all gave is taken to be as usual where it is missing.
        """
        active = self._columns.features
        given, missing = [0.0] * len(active), [0.0] * len(active)
        is_partial = False
        gram = None if job is None else self._grams[job]
        for at, each in enumerate(active):
            value = features[each]
            is_usual = gram is None or bool(gram.layout.given >> each & 1)
            if value is not None and is_usual:
                given[at] = value - self._usual[at]
            elif gram is None:
                given[at] = self._center(at) - self._usual[at]
            elif not is_usual or gram.is_mixed[at]:
                missing[at] = 1.0
                is_partial = is_partial or is_usual
            else:
                given[at] = float(gram.center[at]) - self._usual[at]
        return [1.0, *given, *missing], is_partial

    def _beyond_usual(self, job: int | None, features: Features) -> list[float]:
        """Returns how far the features of a request are from those of its job type's usual run."""
        if job is None or not self._columns.features:
            return []
        gram, found = self._grams[job], []
        for at, each in enumerate(self._columns.features):
            value, is_known = features[each], bool(gram.layout.given >> each & 1)
            found.append(0.0 if value is None or not is_known else value - float(gram.center[at]))
        return found

    def _center(self, at: int) -> float:
        """Returns the usual value of a feature, over job types that give it."""
        each = self._columns.features[at]
        grams = self._grams[:MOST_JOB_TYPES]
        found = [gram.center[at] for gram in grams if gram.layout.given >> each & 1]
        return float(np.mean(found)) if found else 0.0


def _predictions(
    made: Forecast, places: Sequence[int], row: list[float], beyond: list[float],
    noise: tuple[float, float], *, is_beside: bool,
) -> list[Prediction]:  # fmt: skip
    alone = made.at(places, row)
    if not is_beside:
        return [
            Prediction(*own, *noise, beyond_usual=more)
            for own, more in zip(alone, beyond, strict=True)
        ]
    return [
        Prediction(*own, *noise, mean - own[0], spread, more)
        for own, (mean, spread), more in zip(
            alone, made.at(places, [*row, 1.0]), beyond, strict=True
        )
    ]


def _of_gpu(trust: Trust, gpu: int) -> dict[Kind, float]:
    return {kind: weight for (at, kind), weight in trust.items() if at == gpu}


def _differ(one: Noise, other: Noise) -> bool:
    """Returns whether products are weighed otherwise: what noise is known from plays no part."""
    return (one.variance, one.weight) != (other.variance, other.weight)


class Totals:
    """Sums the evidence of all job types; where one changes, only its block is summed again."""

    def __init__(self, width: int) -> None:
        self._width = width
        self._jobs: list[Evidence] = []
        self._flat: list[NDArray[np.intp]] = []
        self._precision = np.zeros((0, width * width))
        self._shift = np.zeros((0, width))
        self._stale: set[int] = set()

    def put(self, job: int, evidence: Evidence) -> None:
        """Replaces the evidence of a job type; job types come in the order of their numbers."""
        index = evidence.index
        is_known = job < len(self._jobs) and self._jobs[job].index is index
        if not is_known:
            self._flat[job : job + 1] = [(index[:, None] * self._width + index).ravel()]
        self._jobs[job : job + 1] = [evidence]
        block = job // BLOCK
        if block >= len(self._precision):
            more = max(block + 1 - len(self._precision), len(self._precision) // 2)
            self._precision = _longer(self._precision, more)
            self._shift = _longer(self._shift, more)
        self._stale.add(block)

    def sums(self) -> tuple[Array, Array]:
        """Returns precision and shift over all job types."""
        for block in self._stale:
            jobs = slice(block * BLOCK, (block + 1) * BLOCK)
            made = self._jobs[jobs]
            # Adds in the order of job types, as a loop over them would, but in one call.
            self._precision[block] = np.bincount(
                np.concatenate(self._flat[jobs]),
                np.concatenate([each.precision.ravel() for each in made]),
                self._width**2,
            )
            self._shift[block] = np.bincount(
                np.concatenate([each.index for each in made]),
                np.concatenate([each.shift for each in made]),
                self._width,
            )
        self._stale.clear()
        whole = self._precision.sum(axis=0).reshape(self._width, self._width)
        return whole, self._shift.sum(axis=0)


def _longer(array: Array, more: int) -> Array:
    return np.concatenate([array, np.zeros((more, *array.shape[1:]))])
