"""Draws from short lists, fast: NumPy's own choice costs more than the rest of an offspring."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

import numpy as np

T = TypeVar("T")


def pick(rng: np.random.Generator, options: Sequence[T]) -> T:
    """Draws one option."""
    return options[int(rng.random() * len(options))]


def chance(rng: np.random.Generator, probability: float) -> bool:
    """Draws whether an event of the given probability happens."""
    return bool(rng.random() < probability)


def weighted(rng: np.random.Generator, weights: Mapping[T, float]) -> T:
    """Draws a key by its weight."""
    left = rng.random() * sum(weights.values())
    for key, weight in weights.items():
        left -= weight
        if left < 0:
            return key
    return key
