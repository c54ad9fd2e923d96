"""The columns of the regression: which effects all job types share, and where each stands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from podium.online.parameters import Prior

MOST_SLOPED = 16
"""GPU types with feature weights of their own; the others have the common ones."""

MOST_DISTURBING = 64
"""Job types whose effect on all neighbours is learned as one."""

_MOST_INDICES = 1000


@dataclass(frozen=True)
class Columns:
    """Numbers the shared effects: level, features, missing features, GPU types, slopes, neighbours.

    A feature that nobody gives has no columns.
    """

    features: tuple[int, ...]  # that were given at least once
    gpus: int  # with room for more
    disturbing: tuple[str, ...]  # job types that ran beside others

    @cached_property
    def first_gpu(self) -> int:
        """Returns the column of the first GPU type."""
        return 1 + 2 * len(self.features)

    @cached_property
    def first_slope(self) -> int:
        """Returns the column of the first feature's weight on the first GPU type."""
        return self.first_gpu + self.gpus

    @cached_property
    def first_disturbing(self) -> int:
        """Returns the column of the first job type that disturbs others."""
        return self.first_slope + min(self.gpus, MOST_SLOPED) * len(self.features)

    @cached_property
    def width(self) -> int:
        """Counts the shared effects."""
        return self.first_disturbing + len(self.disturbing)

    @cached_property
    def places(self) -> dict[str, int]:
        """Returns the column of each job type that disturbs others."""
        return {name: self.first_disturbing + at for at, name in enumerate(self.disturbing)}

    def common(self, neighbours: Sequence[str]) -> list[int]:
        """Lists the columns of level, features and neighbours; -1 where there is none."""
        return [*range(self.first_gpu), *(self.places.get(name, -1) for name in neighbours)]

    def of_gpu(self, gpu: int) -> list[int]:
        """Lists the columns of a GPU type and of its slopes; -1 where there is none."""
        size = len(self.features)
        if gpu >= MOST_SLOPED:
            return [self.first_gpu + gpu, *(-1 for _ in range(size))]
        first = self.first_slope + gpu * size
        return [self.first_gpu + gpu, *range(first, first + size)]

    def index(self, neighbours: Sequence[str], gpus: Sequence[int]) -> NDArray[np.intp]:
        """Returns all of those as one index, which is the same object for the same names."""
        key = tuple(neighbours), tuple(gpus)
        found = self._indices.get(key)
        if found is None:
            if len(self._indices) >= _MOST_INDICES:
                self._indices.clear()
            rows = (at for gpu in gpus for at in self.of_gpu(gpu))
            found = np.array([*self.common(neighbours), *rows], dtype=np.intp)
            self._indices[key] = found
        return found

    @cached_property
    def _indices(self) -> dict[tuple[tuple[str, ...], tuple[int, ...]], NDArray[np.intp]]:
        return {}

    def spreads(self, prior: Prior, gpu: float, feature: float) -> NDArray[np.float64]:
        """Returns the spread of each effect before data."""
        size = len(self.features)
        found = np.full(self.width, gpu)
        found[0] = prior.level_spread
        found[1 : 1 + size] = feature
        found[1 + size : 1 + 2 * size] = prior.missing_spread
        found[self.first_slope : self.first_disturbing] = prior.slope_spread
        found[self.first_disturbing :] = prior.disturb_spread
        return found
