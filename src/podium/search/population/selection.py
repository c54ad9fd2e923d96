"""Chooses parents: by fitness, by being best at something, or by being unlike the others."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from podium.search.population.island import Island
from podium.search.population.member import Member

STEEPNESS = 4.0
"""How sharply fitness counts: sigmoid of so many deviations from the median."""

BY_RANK, BY_CASE, BY_NOVELTY = 0.8, 0.1, 0.03
"""Shares of parents that are chosen by rank, by case and by novelty; the others by fitness."""

NEXT = 0.75
"""How likely the next member by rank is, beside the one before it."""

STOPPED = 0.3
"""The weight of members that were stopped before the last stage that others were run on."""

NEIGHBOURS = 5


def choose_parents(rng: np.random.Generator, island: Island, count: int) -> list[Member]:
    """Draws a main parent and others, all of this island and different from each other."""
    members = island.members
    if not members:
        return []
    draw = rng.random()
    if draw < BY_RANK:
        ranked = sorted(members, key=island.key, reverse=True)
        first = _drawn(rng, ranked, [NEXT**rank for rank in range(len(ranked))])
    elif draw < BY_RANK + BY_CASE:
        first = by_case(rng, members, island.first_counted)
    elif draw < BY_RANK + BY_CASE + BY_NOVELTY:
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
    above: dict[int, float] = {}
    for group in _alike(island.members).values():
        worth = np.array([member.worth(island.emphasis) for member in group])
        median = float(np.median(worth))
        deviation = float(np.median(np.abs(worth - median))) or 1.0
        lifted = (worth - median) / deviation
        above |= {each.number: float(z) for each, z in zip(group, lifted, strict=True)}
    most = max(len(each.case_scores) for each in island.members)
    found = []
    for member in island.members:
        bounded = max(-50.0, min(50.0, STEEPNESS * above[member.number]))
        weight = 1 / (1 + math.exp(-bounded)) / (1 + island.children.get(member.number, 0))
        found.append(weight * (1.0 if len(member.case_scores) == most else STOPPED))
    return found


def _alike(members: Sequence[Member]) -> dict[int, list[Member]]:
    """Groups members by how many cases they were run on: only these compare by fitness."""
    groups: dict[int, list[Member]] = {}
    for member in members:
        groups.setdefault(len(member.case_scores), []).append(member)
    return groups


def by_case(rng: np.random.Generator, members: Sequence[Member], first: int = 0) -> Member:
    """Draws by epsilon-lexicase: cases in random order, each keeping those nearly best at it.

    Of those that are left the simplest is taken. Members that were stopped early take no part, and
    cases before the first that counts only where nobody came further.
    """
    groups = _alike(members)
    left = groups[max(groups)]
    skipped = first if len(left[0].case_scores) > first else 0
    for case in rng.permutation(len(left[0].case_scores) - skipped).tolist():
        scores = np.array([member.case_scores[skipped + case] for member in left])
        spread = float(np.median(np.abs(scores - np.median(scores))))
        least = float(scores.max()) - spread
        left = [member for member, score in zip(left, scores, strict=True) if score >= least]
        if len(left) == 1:
            break
    least_parts = min(member.complexity for member in left)
    simplest = [member for member in left if member.complexity == least_parts]
    return simplest[int(rng.random() * len(simplest))]


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
