"""Imitation: the net learns to rank first, among the places for a pod, the one a teacher takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from podium.evaluation.cases import Case
from podium.model.records import GPU_MILLI
from podium.policies import HOLD, Policy
from podium.policies.networks.mlp import NUM_FEATURES, table_of
from podium.rl.mlp.candidates import Places
from podium.rl.mlp.parameters import Arrays
from podium.sim import Setup
from podium.sim.stepping import Episode, Offer

MOST_CANDIDATES = 64
"""Places for a pod that a decision is recorded with."""


@dataclass(frozen=True, slots=True, eq=False)
class Decisions:
    """Recorded decisions: the places for a pod as the net sees them; the first was taken."""

    seen: npt.NDArray[np.float32]  # (decisions, MOST_CANDIDATES, features)
    mask: npt.NDArray[np.bool_]  # (decisions, MOST_CANDIDATES) where there is a place


def record(
    teacher: Policy, cases: Sequence[Case], arrays: Arrays, every: int, rng: np.random.Generator
) -> Decisions:
    """Lets a teacher place the pods of cases, and records every so many of its decisions.

    The places for a pod are described as a net with these arrays sees them. Where so few pods have
    a choice that none would be recorded, all decisions are; there may be none at all.
    """
    rows = [row for case in cases for row in _recorded(teacher, case, arrays, every, rng)]
    if not rows and every > 1:
        return record(teacher, cases, arrays, 1, rng)
    seen = np.zeros((len(rows), MOST_CANDIDATES, NUM_FEATURES), np.float32)
    mask = np.zeros((len(rows), MOST_CANDIDATES), np.bool_)
    for i, row in enumerate(rows):
        seen[i], mask[i] = row
    return Decisions(seen, mask)


def _recorded(
    policy: Policy, case: Case, arrays: Arrays, every: int, rng: np.random.Generator
) -> list[Any]:
    plan = case.plan(policy)
    shapes = plan.trace.shapes()
    session, table = policy.session(shapes, seed=case.seed), table_of(arrays, shapes)
    episode = Episode.of(plan.cluster, plan.trace, plan.protocol, Setup(case.seed))
    places = Places(table)
    is_shared = plan.trace.gpu_shares is not None
    rows, step = [], 0
    while episode.offer is not None:
        offer = episode.offer
        found = session.scores(offer.pod, offer.nodes)
        # A session looks at CPU, memory and GPUs; taints, selectors and shared GPUs are not seen.
        scores = np.where(offer.feasible, found.scores, HOLD)
        node = int(np.argmax(scores if scores.max() > HOLD else offer.feasible))
        is_share = 0 < offer.pod.gpu_milli < GPU_MILLI
        if scores[node] == HOLD or (is_share and is_shared):
            episode.apply(node)  # what the pod is there, its record does not say
            continue
        slot = _slot(offer, node, int(found.gpu_slots[node]))
        step += 1
        if step % every == 0:
            row = _row(places.all(offer), places.one(offer, node, slot), rng)
            rows += [row] if row is not None else []
        episode.apply(node, slot)
    return rows


def _slot(offer: Offer, node: int, given: int) -> int:
    """Finds the GPU of a share pod: the teacher's, or the tightest that fits, as the core does."""
    if given >= 0 or not 0 < offer.pod.gpu_milli < GPU_MILLI:
        return given
    left = np.asarray(offer.nodes[node]["gpu_milli_left"])
    return int(np.argmin(np.where(left >= offer.pod.gpu_milli, left, GPU_MILLI + 1)))


def _row(
    places: npt.NDArray[np.float32], taken: npt.NDArray[np.float32], rng: np.random.Generator
) -> Any:
    """Keeps what was taken and some of the other places; nothing where there is no other."""
    others = places[(places != taken).any(axis=1)]
    if len(others) == 0:
        return None
    others = others[rng.permutation(len(others))[: MOST_CANDIDATES - 1]]
    kept = np.zeros((MOST_CANDIDATES, NUM_FEATURES), np.float32)
    kept[0], kept[1 : 1 + len(others)] = taken, others
    return kept, np.arange(MOST_CANDIDATES) <= len(others)
