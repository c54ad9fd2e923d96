"""Declares constants that a search may change within bounds."""

from __future__ import annotations

import math

from podium.errors import PolicyError


def tunable(value: float, low: float, high: float) -> float:
    """Returns the value of a constant that may lie anywhere from low to high.

    >>> tunable(1, 0.0, 2.0)
    1.0
    """
    if not all(math.isfinite(number) for number in (value, low, high)):
        raise PolicyError(f"tunable({value}, {low}, {high}) is not finite", hint="give numbers")
    if not low <= value <= high:
        raise PolicyError(
            f"the tunable value {value} is not within {low} and {high}",
            hint="write tunable(value, low, high) with low <= value <= high",
        )
    return float(value)
