"""Turns the scores of a policy into whole points from 0 to 1000; equal scores have equal points.

A node that the policy refuses, or on which the pod does not fit, gets 0; every other gets at least
1. Which of equal nodes wins is for kube-scheduler to say: by its own scores, then by a draw.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt

Ties = Literal["equal", "order"]
Scores = npt.NDArray[np.float64]
Points = npt.NDArray[np.int64]

LEAST = 1
"""Points of the worst node that is not refused."""

MOST = 1000
"""Points of the best nodes."""


def scaled(scores: Scores, ties: Ties = "equal", most: int = MOST) -> Points:
    """Gives nodes their points; they stand in the order that breaks ties, where it does.

    The best nodes have 1000, the next 999, and so on; all from the thousandth score on have 1.
    """
    points = np.zeros(len(scores), np.int64)
    accepted = np.flatnonzero(scores > -np.inf)
    if len(accepted):
        place = _places(scores[accepted], ties)
        points[accepted] = np.maximum(most - place, LEAST)
    return points


def _places(scores: Scores, ties: Ties) -> Points:
    if ties == "equal":
        return np.unique(-scores, return_inverse=True)[1]
    place = np.empty(len(scores), np.int64)
    place[np.argsort(-scores, kind="stable")] = np.arange(len(scores))
    return place


def answered(points: Points, behind: int) -> tuple[npt.NDArray[np.int64], Points]:
    """Finds the fewest nodes that an answer must name, and what it gives them.

    Who is not named has 0. Only differences count: the nodes that can win are named with their
    points, or, where they are more, those behind the best with what they lack.

    Args:
        points: of all nodes.
        behind: points behind the best from which on no node can win.
    """
    best = int(points.max(initial=0))
    # A node that is left out falls to 0: no best node may be so low that this brings it closer.
    least = best - behind if best > behind else 0
    winners, losers = np.flatnonzero(points > least), np.flatnonzero(points < best)
    if len(winners) <= len(losers):
        return winners, points[winners]
    return losers, np.maximum(points[losers], least) - best
