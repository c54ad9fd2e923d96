"""Decides how long pods run: as they say, as finished ones did, or as somebody asks."""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import Protocol

from podium.errors import UsageError
from podium.model.workload import PodSpec
from podium.traces.kubernetes.standing import Standing
from podium.traces.notes import NO_DURATIONS, counted

_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_PERIOD = re.compile(r"(?:[0-9]+(?:\.[0-9]+)?[smhd])+")
_STEP = re.compile(r"([0-9.]+)([smhd])")
_SECONDS = re.compile(r"[0-9]+(?:\.[0-9]+)?")
_NUMBERED = re.compile(r"-[0-9]+$")
_HINT = "give 90m, 2h or seconds, exponential:MEAN, or lognormal:MEDIAN:SIGMA"
_NORMAL = NormalDist()

DRAWN = "run times are drawn from"
AGAIN = "assumed to run as long again as they already have"


class Distribution(Protocol):
    """Gives run times by their rank among all of those that are longer than an age."""

    def total_s(self, rank: float, age_s: float) -> float | None:
        """Gives the run time at a rank from 0 to 1; None where none is longer than the age."""


@dataclass(frozen=True, slots=True)
class Constant:
    """Lets every pod run for the same time."""

    run_time_s: float

    def total_s(self, rank: float, age_s: float) -> float | None:
        """Gives the one time there is."""
        del rank
        return self.run_time_s if self.run_time_s > age_s else None


@dataclass(frozen=True, slots=True)
class Observed:
    """Draws among the times that finished pods ran."""

    sorted_s: tuple[float, ...]

    def total_s(self, rank: float, age_s: float) -> float | None:
        """Picks among the longer ones."""
        first = bisect_right(self.sorted_s, age_s)
        longer = len(self.sorted_s) - first
        return self.sorted_s[first + min(longer - 1, int(rank * longer))] if longer else None


@dataclass(frozen=True, slots=True)
class Exponential:
    """Has no memory: whatever its age, a pod runs for the mean time longer."""

    mean_s: float

    def total_s(self, rank: float, age_s: float) -> float | None:
        """Adds to the age."""
        return max(age_s, 0.0) - self.mean_s * math.log1p(-min(rank, 1 - 1e-12))


@dataclass(frozen=True, slots=True)
class Lognormal:
    """Lets most pods run for a short time and few for very long, as in most clusters."""

    median_s: float
    sigma: float

    def total_s(self, rank: float, age_s: float) -> float | None:
        """Inverts the distribution above the age."""
        below = _NORMAL.cdf(math.log(age_s / self.median_s) / self.sigma) if age_s > 0 else 0.0
        share = min(max(below + rank * (1 - below), 1e-12), 1 - 1e-12)
        total_s = self.median_s * math.exp(self.sigma * _NORMAL.inv_cdf(share))
        return total_s if total_s > age_s else None


def without_times(notes: Iterable[str]) -> Iterator[str]:
    """Leaves out what is said about run times: while pods are only placed, nobody leaves."""
    return (note for note in notes if not note.startswith((AGAIN, DRAWN, NO_DURATIONS)))


def parse_run_time(text: str) -> Distribution:
    """Reads what `--duration` says: a time, or a distribution with its parameters."""
    name, *parameters = text.strip().split(":")
    try:
        if name == "exponential" and len(parameters) == 1:
            return Exponential(_period_s(parameters[0]))
        if name == "lognormal" and len(parameters) == 2:
            return Lognormal(_period_s(parameters[0]), _positive(parameters[1]))
        if not parameters:
            return Constant(_period_s(name))
    except ValueError:
        pass
    raise UsageError(f'"{text}" is not a run time', hint=_HINT)


def _period_s(text: str) -> float:
    """Reads a time such as 2h, 1h30m or 90, in seconds.

    >>> _period_s("1h30m"), _period_s("90")
    (5400.0, 90.0)
    """
    if _SECONDS.fullmatch(text):
        return _positive(text)
    if not _PERIOD.fullmatch(text):
        raise ValueError(text)
    return _positive(sum(float(number) * _UNITS[unit] for number, unit in _STEP.findall(text)))


def _positive(value: str | float) -> float:
    number = float(value)
    if not (math.isfinite(number) and number > 0):
        raise ValueError(value)
    return number


@dataclass(slots=True)
class History:
    """Collects the run times of finished pods, by controller and by GPUs."""

    times_s: dict[tuple[str, ...], list[float]] = field(default_factory=lambda: defaultdict(list))
    _observed: dict[tuple[str, ...], Observed] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.times_s[()]) if () in self.times_s else 0

    def add(self, pod: PodSpec, standing: Standing) -> None:
        """Notes how long a pod ran."""
        if standing.run_time_s is None or standing.stays:
            return
        for pool in _pools(pod, standing):
            self.times_s[pool].append(standing.run_time_s)

    def like(self, pod: PodSpec, standing: Standing) -> Distribution | None:
        """Gives the times of the pods most like it: of its controller, of its GPUs, or of all."""
        for pool in _pools(pod, standing):
            if pool in self.times_s:
                if pool not in self._observed:
                    self._observed[pool] = Observed(tuple(sorted(self.times_s[pool])))
                return self._observed[pool]
        return None


def owner_stem(owner: str) -> str:
    """Takes the number off the name of a controller.

    A CronJob numbers its Jobs, and people number theirs: they are runs of one thing.
    """
    return _NUMBERED.sub("", owner)


def _pools(pod: PodSpec, standing: Standing) -> list[tuple[str, ...]]:
    """Names the pools of a pod, the closest first."""
    owner = owner_stem(standing.owner)
    owned = [("owner", pod.namespace, owner)] if owner else []
    return [*owned, ("gpus", str(pod.gpu_count), str(pod.gpu_milli)), ()]


@dataclass(slots=True)
class RunTimes:
    """Gives every pod its run time, and counts where the times came from."""

    asked: str | None  # what somebody wants, as written
    history: History
    now_s: float | None
    drawn: int = 0
    again: int = 0
    _wanted: Distribution | None = field(init=False)

    def __post_init__(self) -> None:
        self._wanted = None if self.asked is None else parse_run_time(self.asked)

    def total_s(self, pod: PodSpec, standing: Standing, rank: float) -> float | None:
        """Gives the time from a pod's start to its end, None where nothing tells."""
        # A pod that is placed anew runs as somebody asks, however long it has run before.
        is_anew = self._wanted is not None and not pod.node
        age_s = 0.0 if is_anew else self.age_s(standing)
        longer_than = age_s if age_s > 0 else -1.0
        is_own = self._wanted is None and pod.duration_s is not None
        distribution = self._wanted or (
            self.history.like(pod, standing) if pod.duration_s is None else Constant(pod.duration_s)
        )
        total_s = None if distribution is None else distribution.total_s(rank, longer_than)
        if total_s is not None:
            self.drawn += not is_own and self._wanted is None
            return total_s
        if age_s > 0:
            self.again += 1
            return 2 * age_s
        return None

    def age_s(self, standing: Standing) -> float:
        """Tells how long a bound pod has run."""
        if not standing.node or standing.started_s is None or self.now_s is None:
            return 0.0
        return max(0.0, self.now_s - standing.started_s)

    def notes(self) -> Iterator[str]:
        """Says where run times came from that the pods do not tell themselves."""
        if self.asked is not None:
            yield f"run times are those asked for: {self.asked}"
        if self.drawn:
            finished = counted(len(self.history), "finished pod")
            yield f"{DRAWN} {finished}: {counted(self.drawn, 'pod')}"
        if self.again:
            pods = counted(self.again, "pod")
            yield f"{AGAIN}: {pods}"
