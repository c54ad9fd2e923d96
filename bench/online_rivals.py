"""Rules for placing jobs that are compared with Podium's agent; see `online.py`.

None of them was tuned. They see job types, GPU types and run times; neighbours and features are
not for them. A run that failed counts as one of ten times the time it took.
"""

from __future__ import annotations

import itertools
from collections import deque
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from online_worlds import RUNTIME_S, Array, World

FAILED = 10.0
"""Times that a failed run counts as having taken."""


class Rule(Protocol):
    """Places jobs one by one, and is told how long they ran."""

    def choose(self, number: int) -> int:
        """Returns the GPU type of a job of the world."""

    def learn(self, number: int, gpu: int) -> None:
        """Learns how a job went on a GPU type."""


class Cap:
    """Lets at most a share of any so many decisions explore, evenly spread."""

    def __init__(self, share: float = 0.25, window: int = 100) -> None:
        self._share, self._window = share, window
        self._recent: deque[bool] = deque(maxlen=window)
        self._since = 0  # decisions since the last one that explored

    def allows(self) -> bool:
        """Tests whether the next decision may explore."""
        is_full = len(self._recent) == self._window
        inside = sum(self._recent) - (is_full and self._recent[0])
        size = min(len(self._recent) + 1, self._window)
        is_spread = (self._since + 1) * self._share >= 1.0 - 1e-9
        return is_spread and inside + 1 <= self._share * size + 1e-9

    def count(self, is_exploring: bool) -> None:
        """Counts a decision that had a choice."""
        self._recent.append(is_exploring)
        self._since = 0 if is_exploring else self._since + 1


class Pairs:
    """What was seen of each pair of job type and GPU type, in logarithms."""

    def __init__(self, world: World) -> None:
        shape = (world.plan.job_types, world.plan.gpu_types)
        self.count, self._sum, self._squares = np.zeros(shape), np.zeros(shape), np.zeros(shape)

    @property
    def mean(self) -> Array:
        """Returns the mean of each pair."""
        return np.asarray(self._sum / np.maximum(self.count, 1.0))

    @property
    def noise(self) -> float:
        """Returns the standard deviation within pairs; 0.2 counts as two runs."""
        inner = float((self._squares - self._sum**2 / np.maximum(self.count, 1.0)).sum())
        freedom = float(np.maximum(self.count - 1.0, 0.0).sum())
        return float(np.sqrt((2.0 * 0.04 + max(inner, 0.0)) / (2.0 + freedom)))

    def add(self, job: int, gpu: int, value: float) -> None:
        """Adds a run."""
        self.count[job, gpu] += 1.0
        self._sum[job, gpu] += value
        self._squares[job, gpu] += value * value


class Rival:
    """A rule that keeps pairs and, where it has one, to a cap."""

    def __init__(self, world: World, seed: int, cap: Cap | None = None) -> None:
        self._world = world
        self._cap = cap
        self._rng = np.random.default_rng([seed, 17])
        self._pairs = Pairs(world)

    def choose(self, number: int) -> int:
        """Returns what the rule wants, unless the cap is reached: then the best by its beliefs."""
        job = int(self._world.job_type[number])
        wanted = self._wanted(job, number)
        if self._cap is None or not self._pairs.count[job].any():
            return wanted
        judged = self._judged(job)
        known = int(judged[self._believed(job, number)[judged].argmin()])
        is_exploring = wanted != known and self._cap.allows()
        self._cap.count(is_exploring)
        return wanted if is_exploring else known

    def learn(self, number: int, gpu: int) -> None:
        """Adds a run."""
        world = self._world
        value = float(np.log(world.observed_s[number, gpu] / RUNTIME_S))
        if world.fails[number, gpu]:
            value += float(np.log(FAILED))
        self._learn(int(world.job_type[number]), gpu, value)

    def _learn(self, job: int, gpu: int, value: float) -> None:
        self._pairs.add(job, gpu, value)

    def _wanted(self, job: int, number: int) -> int:
        raise NotImplementedError

    def _judged(self, job: int) -> NDArray[np.intp]:
        """Lists the GPU types of which something is believed: those where the job type ran."""
        return np.flatnonzero(self._pairs.count[job])

    def _believed(self, job: int, number: int) -> Array:
        """Returns how long a job is believed to run, in logarithms."""
        del number
        return np.asarray(self._pairs.mean[job])


class Random(Rival):
    """Draws the GPU type."""

    def _wanted(self, job: int, number: int) -> int:
        del job, number
        return int(self._rng.integers(self._world.plan.gpu_types))


class Oracle(Rival):
    """Knows the run times, but has to begin somewhere and keeps to the cap."""

    def _wanted(self, job: int, number: int) -> int:
        if not self._pairs.count[job].any():
            # Of a type that never ran it may know no more than how GPU types compare.
            weight = self._pairs.count + 1e-9
            return int(((self._pairs.mean * weight).sum(axis=0) / weight.sum(axis=0)).argmin())
        return int(self._world.expected_s[number].argmin())

    def _believed(self, job: int, number: int) -> Array:
        del job
        return np.asarray(np.log(self._world.expected_s[number]))


class FlatThompson(Rival):
    """Thompson sampling, each pair for itself."""

    def _wanted(self, job: int, number: int) -> int:
        del number
        count, noise = self._pairs.count[job], self._pairs.noise
        if not count.any():
            return int(self._rng.integers(len(count)))
        middle = float((self._pairs.mean[job] * count).sum() / count.sum())
        precision = 1.0 + count / noise**2  # before data: as its other pairs, give or take 1
        mean = (middle + self._pairs.mean[job] * count / noise**2) / precision
        return int((mean + self._rng.normal(size=len(count)) / np.sqrt(precision)).argmin())


class Ucb1(Rival):
    """UCB1 of Auer, Cesa-Bianchi and Fischer (2002) in units of the noise."""

    def _wanted(self, job: int, number: int) -> int:
        del number
        count = self._pairs.count[job]
        if not count.all():
            return int(self._rng.choice(np.flatnonzero(count == 0.0)))
        bonus = self._pairs.noise * np.sqrt(2.0 * np.log(count.sum()) / count)
        return int((self._pairs.mean[job] - bonus).argmin())


class ExploreThenCommit(Rival):
    """Tries every GPU type once with each job type, then stays with the fastest."""

    def _wanted(self, job: int, number: int) -> int:
        del number
        untried = np.flatnonzero(self._pairs.count[job] == 0.0)
        return int(untried[0]) if len(untried) else int(self._pairs.mean[job].argmin())


class Pooled(Rival):
    """Level, job, GPU and pair effects with unknown noise: normal and inverse gamma.

    Eight settings of the spreads, in units of the noise, are weighed by how likely they make what
    was seen. The state is the joint posterior of the log run times of all pairs.
    """

    def __init__(self, world: World, seed: int, cap: Cap | None = None) -> None:
        super().__init__(world, seed, cap)
        jobs, gpus = world.plan.job_types, world.plan.gpu_types
        same_job = np.kron(np.eye(jobs), np.ones((gpus, gpus)))
        same_gpu = np.kron(np.ones((jobs, jobs)), np.eye(gpus))
        settings = itertools.product((0.1, 0.3, 0.7, 1.5), (0.1, 0.6))
        self._covariance = (
            np.array(
                [
                    10.0**2 + 1.5**2 * same_job + gpu**2 * same_gpu + pair**2 * np.eye(jobs * gpus)
                    for pair, gpu in settings
                ]
            )
            / 0.2**2
        )
        self._mean = np.zeros(self._covariance.shape[:2])
        self._shape, self._scale = 2.0, np.full(len(self._mean), 2.0 * 0.2**2)
        self._evidence = np.zeros(len(self._mean))

    def _learn(self, job: int, gpu: int, value: float) -> None:
        super()._learn(job, gpu, value)
        place = job * self._world.plan.gpu_types + gpu
        column = self._covariance[:, :, place].copy()
        spread = column[:, place] + 1.0
        error = value - self._mean[:, place]
        # Student's t of what was seen, up to what all settings share.
        scaled = error**2 / (2.0 * self._scale * spread)
        self._evidence -= 0.5 * np.log(self._scale * spread)
        self._evidence -= (self._shape + 0.5) * np.log1p(scaled)
        self._mean += column * (error / spread)[:, None]
        self._covariance -= column[:, :, None] * (column / spread[:, None])[:, None, :]
        self._shape += 0.5
        self._scale += 0.5 * error**2 / spread

    @property
    def _weights(self) -> Array:
        weights = np.exp(self._evidence - self._evidence.max())
        return np.asarray(weights / weights.sum())

    def _cells(self, job: int) -> slice:
        gpus = self._world.plan.gpu_types
        return slice(job * gpus, (job + 1) * gpus)

    def _judged(self, job: int) -> NDArray[np.intp]:
        """Lists all GPU types: as for the agent, the best by the model is free, though new."""
        return np.arange(len(self._pairs.count[job]))

    def _believed(self, job: int, number: int) -> Array:
        del number
        return np.asarray(self._weights @ self._mean[:, self._cells(job)])


class PooledThompson(Pooled):
    """Thompson sampling from the pooled model."""

    def _wanted(self, job: int, number: int) -> int:
        del number
        cells = self._cells(job)
        setting = int(self._rng.choice(len(self._mean), p=self._weights))
        variance = self._scale[setting] / self._rng.gamma(self._shape)
        covariance: NDArray[np.float64] = self._covariance[setting, cells, cells] * variance
        values, vectors = np.linalg.eigh(covariance)
        drawn = vectors @ (np.sqrt(np.maximum(values, 0.0)) * self._rng.normal(size=len(values)))
        return int((self._mean[setting, cells] + drawn).argmin())


class PooledBound(Pooled):
    """The lower bound of one standard deviation, from the pooled model."""

    def _wanted(self, job: int, number: int) -> int:
        cells, weights = self._cells(job), self._weights
        mean = self._believed(job, number)
        noise = self._scale / max(self._shape - 1.0, 0.5)
        inner = np.diagonal(self._covariance[:, cells, cells], axis1=1, axis2=2) * noise[:, None]
        variance = weights @ (inner + (self._mean[:, cells] - mean) ** 2)
        return int((mean - np.sqrt(np.maximum(variance, 0.0))).argmin())


RIVALS: dict[str, tuple[type[Rival], bool]] = {
    "pooled-thompson": (PooledThompson, True),
    "flat-thompson": (FlatThompson, True),
    "pooled-bound": (PooledBound, True),
    "ucb1": (Ucb1, True),
    "explore-then-commit": (ExploreThenCommit, True),
    "capped-oracle": (Oracle, True),
    "random": (Random, False),
}
"""Rivals by name, and whether they keep to the cap."""


def rival(name: str, world: World, seed: int) -> Rule:
    """Makes a rival for a world."""
    make, is_capped = RIVALS[name]
    return make(world, seed, Cap() if is_capped else None)
