"""Sums the evidence of all job types; where one changes, only its block is summed again."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from podium.online.evidence import Evidence

BLOCK = 64
"""Job types in a block. Blocks are fixed, so that the sum depends on what is in them alone."""


class Totals:
    """Holds the precision and the shift that each job type adds."""

    def __init__(self, width: int) -> None:
        self._precision = np.zeros((0, BLOCK, width, width))
        self._shift = np.zeros((0, BLOCK, width))
        self._block_precision = np.zeros((0, width, width))
        self._block_shift = np.zeros((0, width))
        self._stale: set[int] = set()

    def put(self, job: int, evidence: Evidence) -> None:
        """Takes the evidence of a job type, in place of what it said before."""
        block, place = divmod(job, BLOCK)
        if block >= len(self._precision):
            self._grow(block + 1 - len(self._precision))
        self._precision[block, place] = evidence.precision
        self._shift[block, place] = evidence.shift
        self._stale.add(block)

    def sums(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Gives precision and shift over all job types."""
        for block in self._stale:
            self._block_precision[block] = self._precision[block].sum(axis=0)
            self._block_shift[block] = self._shift[block].sum(axis=0)
        self._stale.clear()
        return self._block_precision.sum(axis=0), self._block_shift.sum(axis=0)

    def _grow(self, least: int) -> None:
        more = max(least, len(self._precision) // 2)
        self._precision = _longer(self._precision, more)
        self._shift = _longer(self._shift, more)
        self._block_precision = _longer(self._block_precision, more)
        self._block_shift = _longer(self._block_shift, more)


def _longer(array: NDArray[np.float64], more: int) -> NDArray[np.float64]:
    return np.concatenate([array, np.zeros((more, *array.shape[1:]))])
