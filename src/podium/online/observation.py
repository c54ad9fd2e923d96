"""Requests to the agent and observations for it, checked on the way in."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from podium.errors import UsageError

SHORTEST_S, LONGEST_S = 1e-6, 1e10
MOST_JOB_TYPES, MOST_GPU_TYPES = 10_000, 64


@dataclass(frozen=True, slots=True)
class Observation:
    """How long a job of a type ran on a GPU type, and which job types ran beside it.

    A run that failed, or that was stopped because it took too long, teaches how often that happens
    to its pair and how much time is lost, and nothing about run times.
    """

    job_type: str
    gpu_type: str
    runtime_s: float
    features: Mapping[str, float] = field(default_factory=dict)
    colocated_job_types: tuple[str, ...] = ()
    success: bool = True
    job_id: str = ""  # closes the decision of that id; empty: none

    def __post_init__(self) -> None:
        _named("job_type", self.job_type)
        _named("gpu_type", self.gpu_type)
        _beside(self.colocated_job_types)
        if not SHORTEST_S <= self.runtime_s <= LONGEST_S:
            raise UsageError(
                f"a run time of {self.runtime_s} s is out of range",
                where="measured_runtime_s",
                hint=f"use seconds from {SHORTEST_S:g} to {LONGEST_S:g}",
            )


@dataclass(frozen=True, slots=True)
class Place:
    """Where a job may run: a GPU type, or a node with it, and who runs there already."""

    gpu_type: str
    colocated_job_types: tuple[str, ...] = ()
    node: str = ""

    def __post_init__(self) -> None:
        _named("places.gpu_type", self.gpu_type)
        _beside(self.colocated_job_types)


@dataclass(frozen=True, slots=True)
class Request:
    """A job that needs one of these GPU types, beside these job types.

    Where neighbours differ from candidate to candidate, name `places` instead of GPU types.
    """

    job_type: str
    candidate_gpu_types: tuple[str, ...] = ()
    features: Mapping[str, float] = field(default_factory=dict)
    colocated_job_types: tuple[str, ...] = ()
    places: tuple[Place, ...] = ()
    job_id: str = ""  # under which the decision is in flight until it is observed; empty: unknown

    def __post_init__(self) -> None:
        _named("job_type", self.job_type)
        _beside(self.colocated_job_types)
        if not self.candidate_gpu_types and not self.places:
            raise UsageError(
                "no GPU type to choose from",
                where="candidate_gpu_types",
                hint="list at least one",
            )
        for name in self.candidate_gpu_types:
            _named("candidate_gpu_types", name)

    @property
    def candidates(self) -> tuple[Place, ...]:
        """Lists where the job may run, each place once."""
        if self.places:
            return tuple(dict.fromkeys(self.places))
        beside = self.colocated_job_types
        return tuple(Place(name, beside) for name in dict.fromkeys(self.candidate_gpu_types))


def feature_vector(
    names: tuple[str, ...], features: Mapping[str, float]
) -> tuple[float | None, ...]:
    """Returns ln(1 + value) for each name, None for one that is missing."""
    if not features:
        return (None,) * len(names)
    return tuple(_entry(name, features.get(name)) for name in names)


def too_many(most: int, what: str, where: str) -> UsageError:
    """Refuses more names than there are types: somebody names single jobs or devices."""
    hint = "use names of types, not of single jobs or devices"
    return UsageError(f"more than {most:,} {what}", where=where, hint=hint)


def _entry(name: str, value: float | None) -> float | None:
    if value is None:
        return None
    check_size(name, value)
    return math.log1p(value)


def check_size(name: str, value: float) -> None:
    """Refuses what is no size of a job."""
    if not (math.isfinite(value) and value >= 0):
        raise UsageError(
            f"{value} is not a valid size",
            where=f"features.{name}",
            hint="use a finite number that is not negative",
        )


def _named(where: str, name: str) -> None:
    if not name:
        raise UsageError("a name is empty", where=where, hint="name a type")


def _beside(names: tuple[str, ...]) -> None:
    for name in names:
        _named("colocated_job_types", name)
