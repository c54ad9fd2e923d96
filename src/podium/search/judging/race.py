"""Decides whether a candidate trails the incumbent by more than chance, case by case."""

from __future__ import annotations

import math
from collections.abc import Sequence

from podium.search.candidate.verdict import Rejected
from podium.search.judging.fitness import Fitness, Outcome

RACE_MARGIN = 0.5
"""Points of fitness by which a candidate may trail the incumbent and still go on."""


def check_race(found: Sequence[Outcome], incumbent: Sequence[Outcome], fitness: Fitness) -> None:
    """Refuses a candidate that trails the incumbent on the same cases, beyond what is chance."""
    apart = [
        fitness.score([own]) - fitness.score([best])
        for own, best in zip(found, incumbent, strict=False)
    ]
    if hopeful(apart) < -RACE_MARGIN:
        own, best = fitness.score(found), fitness.score(incumbent[: len(found)])
        raise Rejected(
            f"trails the incumbent after {_cases(len(found))}: fitness {own:.2f} against {best:.2f}"
        )


def hopeful(apart: Sequence[float]) -> float:
    """Returns an optimistic mean of paired differences: two standard errors above the mean.

    A single difference says little about its own error, so only a third of it counts.
    """
    mean = sum(apart) / len(apart)
    if len(apart) == 1:
        return mean / 3
    variance = sum((each - mean) ** 2 for each in apart) / (len(apart) - 1)
    return mean + 2 * math.sqrt(variance / len(apart))


def _cases(count: int) -> str:
    return "1 case" if count == 1 else f"{count} cases"
