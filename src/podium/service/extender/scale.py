"""Turns the scores of a policy into whole points from 0 to 1000, the best node alone on top.

A node that the policy refuses, or on which the pod does not fit, gets 0; every other gets at least
1. Policies compare nodes by order alone, and ties are theirs to leave: in a simulation the node of
the lower rank wins, whereas kube-scheduler draws lots among equal totals.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np
import numpy.typing as npt

Scale = Literal["rank", "linear"]
Ties = Literal["order", "equal"]
Scores = npt.NDArray[np.float64]
Points = npt.NDArray[np.int64]

LEAST = 1
"""Points of the worst node that is not refused."""

MOST = 1000
"""Points of the best node."""

FOREMOST = 128
"""Points behind the best node from which on no node can win: a point is worth at least 10 of the
1,200 that kube-scheduler's own plugins give."""


def scaled(scores: Scores, scale: Scale = "rank", ties: Ties = "order", most: int = MOST) -> Points:
    """Gives nodes their points; they stand in the order that breaks ties.

    By rank, the best node has 1000, the next one 999, and so on; all from the thousandth on have 1.
    Linear, a node halfway between the worst and the best has about 500. A node with a higher score
    never has fewer points. Where ties are left equal, equal scores have equal points.
    """
    points = np.zeros(len(scores), np.int64)
    accepted = np.flatnonzero(scores > -np.inf)
    if len(accepted):
        points[accepted] = _SCALES[scale](scores[accepted], ties == "equal", most)
    return points


def foremost(points: Points) -> npt.NDArray[np.int64]:
    """Finds the nodes that can still win, however many have equal points.

    A node that is left out has 0 points instead of its own, so that a best node with few points
    leaves out none.
    """
    if len(points) <= FOREMOST:
        return np.arange(len(points))
    best = int(points.max())
    if best < FOREMOST:
        return np.arange(len(points))
    return np.flatnonzero(points > best - FOREMOST)


def _ranked(scores: Scores, is_equal: bool, most: int) -> Points:
    if is_equal:
        place = np.unique(-scores, return_inverse=True)[1]
    else:
        place = np.empty(len(scores), np.int64)
        place[np.argsort(-scores, kind="stable")] = np.arange(len(scores))
    points: Points = np.maximum(most - place, LEAST)
    return points


def _linear(scores: Scores, is_equal: bool, most: int) -> Points:
    best, worst = scores.max(), scores.min()
    # Divided before they are subtracted: the difference of two finite numbers may be infinite.
    spread = best / 2 - worst / 2
    share = (scores / 2 - worst / 2) / spread if spread else np.ones(len(scores))
    points = LEAST + np.floor(share * (most - 1 - LEAST)).astype(np.int64)
    top = np.flatnonzero(scores == best)
    points[top if is_equal else top[:1]] = most
    return points


_SCALES: dict[Scale, Callable[[Scores, bool, int], Points]] = {"rank": _ranked, "linear": _linear}
