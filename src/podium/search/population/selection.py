"""Chooses parents: by fitness, by being best at something, or by being unlike the others."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from podium.search.population.island import Island
from podium.search.population.member import Member

STEEPNESS = 4.0
"""How sharply fitness counts: sigmoid of so many deviations from the median."""

BY_CASE, BY_NOVELTY = 0.3, 0.15
"""Shares of parents that are chosen by case and by novelty; the others by fitness."""

NEIGHBOURS = 5


def choose_parents(rng: np.random.Generator, island: Island, count: int) -> list[Member]:
    """Draws a main parent and others, all of this island and different from each other."""
    members = island.members
    if not members:
        return []
    draw = rng.random()
    if draw < BY_CASE:
        first = by_case(rng, members)
    elif draw < BY_CASE + BY_NOVELTY:
        first = _drawn(rng, members, novelty(members))
    else:
        first = _drawn(rng, members, fitness_weights(island))
    others = [each for each in members if each is not first]
    weights = fitness_weights(island)
    rest = [weight for each, weight in zip(members, weights, strict=True) if each is not first]
    chosen = [first]
    while others and len(chosen) < count:
        index = _index(rng, rest)
        chosen.append(others.pop(index))
        rest.pop(index)
    return chosen


def fitness_weights(island: Island) -> list[float]:
    """Weighs members by how far they are above the median, and by how few children they had.

    Free of scale, as in ShinkaEvolve: sigmoid((fitness - median) / deviation) / (1 + children).
    """
    worth = np.array([member.worth(island.emphasis) for member in island.members])
    median = float(np.median(worth))
    deviation = float(np.median(np.abs(worth - median))) or 1.0
    found = []
    for member, value in zip(island.members, worth.tolist(), strict=True):
        above = max(-50.0, min(50.0, STEEPNESS * (value - median) / deviation))
        children = island.children.get(member.number, 0)
        found.append(1 / (1 + math.exp(-above)) / (1 + children))
    return found


def by_case(rng: np.random.Generator, members: Sequence[Member]) -> Member:
    """Draws by epsilon-lexicase: cases in random order, each keeping those nearly best at it."""
    left = list(members)
    for case in rng.permutation(len(left[0].case_scores)).tolist():
        scores = np.array([member.case_scores[case] for member in left])
        spread = float(np.median(np.abs(scores - np.median(scores))))
        least = float(scores.max()) - spread
        left = [member for member, score in zip(left, scores, strict=True) if score >= least]
        if len(left) == 1:
            break
    return left[int(rng.random() * len(left))]


def novelty(members: Sequence[Member]) -> list[float]:
    """Measures how unlike its nearest neighbours each member behaves."""
    points = np.array([member.behaviour for member in members])
    apart = np.sqrt(((points[:, None] - points[None]) ** 2).sum(axis=2))
    nearest = np.sort(apart, axis=1)[:, 1 : 1 + NEIGHBOURS]
    if nearest.shape[1] == 0:
        return [1.0] * len(members)
    return [float(each) + 1e-6 for each in nearest.mean(axis=1)]


def _drawn(rng: np.random.Generator, members: Sequence[Member], weights: list[float]) -> Member:
    return members[_index(rng, weights)]


def _index(rng: np.random.Generator, weights: list[float]) -> int:
    left = rng.random() * sum(weights)
    for index, weight in enumerate(weights):
        left -= weight
        if left < 0:
            return index
    return len(weights) - 1
