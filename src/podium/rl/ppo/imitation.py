"""Collects lessons for a warm start: where a teacher would place the pods that are offered."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from podium.policies import load
from podium.rl.environment.placement import Placement
from podium.rl.ppo.network import Observations
from podium.rl.ppo.update import Lessons

HELD = 0.2
"""Share of the offers that are held by chance, so that lessons are about more than one order."""


def lessons_of(
    environment: Placement, teacher: str, steps: int, rng: np.random.Generator
) -> Lessons:
    """Plays the teacher's placements, with some pods held by chance, and notes them."""
    # One table for all: what pods ask for differs little from episode to episode.
    session = load(teacher).session(environment.plan(0).trace.shapes())
    rows: list[Observations] = []
    choices: list[npt.NDArray[np.int64]] = []
    for _ in range(steps):
        chosen = np.array([_choice(environment, session, i) for i in range(len(environment))])
        shown = (environment.nodes, environment.pods, environment.context, environment.mask)
        rows.append(Observations(*(each.copy() for each in shown)))
        choices.append(chosen)
        is_held = (rng.random(len(chosen)) < HELD) & environment.mask[:, -1]
        environment.step(np.where(is_held, environment.num_nodes, chosen))
    seen = Observations(*(jnp.asarray(np.concatenate(each)) for each in zip(*rows, strict=True)))
    return Lessons(seen, jnp.asarray(np.concatenate(choices)))


def _choice(environment: Placement, session: Any, i: int) -> int:
    offer = environment.offer(i)
    scores = session.scores(offer.pod, offer.nodes).scores
    return int(np.where(offer.feasible, scores, -np.inf).argmax())
