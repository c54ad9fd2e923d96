"""Counts how often the agent's intervals contain the truth; see `online.py`.

Pairs are observed 0, 1, 3, 10 or 100 times whatever the agent would choose, so that what it says is
judged and not what it does.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from online_worlds import FAMILIES, Plan, draw

from podium.online import Agent, Observation, Request

SHARES = (0.5, 0.9)
_Z = {0.5: 0.67449, 0.9: 1.64485}
_PLAIN = FAMILIES["mixed"]
DESIGNS: dict[str, tuple[Plan, tuple[int, ...]]] = {
    **{
        f"noise{percent}{suffix}": (replace(_PLAIN, noise=(percent / 100,)), counts)
        for suffix, counts in (("", (0, 1, 3, 10, 100)), (" sparse", (0, 1, 3)))
        for percent in (5, 20, 50)
    },
    "hetnoise": (FAMILIES["hetnoise"], (0, 1, 3, 10, 100)),
    "additive": (FAMILIES["additive"], (0, 1, 3, 10, 100)),
    "independent": (FAMILIES["independent"], (0, 1, 3, 10, 100)),
    "clustered": (FAMILIES["clustered"], (0, 1, 3, 10, 100)),
}
"""Worlds, and how often their pairs are observed."""


@dataclass(frozen=True, slots=True)
class Coverage:
    """How often intervals contained the truth, by observations of the pair."""

    design: str
    count: int
    pairs: int
    mean: dict[float, float]  # by the share that they should contain
    next_run: dict[float, float]


def coverage(design: str, seeds: Sequence[int]) -> list[Coverage]:
    """Judges the agent in the worlds of these seeds of a design."""
    plan, counts = DESIGNS[design]
    hits: dict[int, list[tuple[bool, ...]]] = defaultdict(list)
    for seed in seeds:
        for count, row in _world_hits(plan, counts, seed):
            hits[count].append(row)
    return [_summed(design, count, rows) for count, rows in sorted(hits.items())]


def _summed(design: str, count: int, rows: Sequence[tuple[bool, ...]]) -> Coverage:
    found = np.array(rows, dtype=float).mean(axis=0).tolist()
    half = len(SHARES)
    mean, next_run = (dict(zip(SHARES, part, strict=True)) for part in (found[:half], found[half:]))
    return Coverage(design, count, len(rows), mean, next_run)


def _world_hits(
    plan: Plan, counts: tuple[int, ...], seed: int
) -> list[tuple[int, tuple[bool, ...]]]:
    rng = np.random.default_rng([seed, 18])
    world = draw(replace(plan, decisions=50 * plan.job_types), seed)
    truth_s = np.array(
        [world.expected_s[world.job_type == job][0] for job in range(plan.job_types)]
    )
    noise = np.resize(plan.noise, plan.job_types)
    told = rng.choice(counts, size=truth_s.shape)
    agent = Agent()
    pairs = [(job, gpu) for job, gpu in np.ndindex(*told.shape) for _ in range(told[job, gpu])]
    for job, gpu in rng.permutation(pairs).tolist() if pairs else ():
        agent.observe(
            Observation(f"job-{job}", f"gpu-{gpu}", _run_s(truth_s[job, gpu], noise[job], rng))
        )
    return [
        (int(told[job, gpu]), _hits(agent, (job, gpu), truth_s[job, gpu], noise[job], rng))
        for job, gpu in np.ndindex(*told.shape)
        if told[job].any()  # of a job type that was never seen, nobody can know the scale
    ]


def _run_s(expected_s: float, noise: float, rng: np.random.Generator) -> float:
    return float(expected_s * np.exp(rng.normal() * noise - 0.5 * noise**2))


def _hits(
    agent: Agent, pair: tuple[int, int], truth_s: float, noise: float, rng: np.random.Generator
) -> tuple[bool, ...]:
    """Tests the intervals of the mean, then those of the next run."""
    job, gpu = pair
    (known,) = agent.candidates(Request(f"job-{job}", (f"gpu-{gpu}",)))
    run_s = _run_s(truth_s, noise, rng)
    return (
        *(_is_inside(truth_s, known.mean_interval_s, share) for share in SHARES),
        *(_is_inside(run_s, known.run_interval_s, share) for share in SHARES),
    )


def _is_inside(value_s: float, interval_s: tuple[float, float], share: float) -> bool:
    """Tests the interval of a share; that of 50 % is taken to be as Gaussian as that of 90 %."""
    low, high = np.log(interval_s)
    half = 0.5 * (high - low) * _Z[share] / _Z[0.9]
    return bool(abs(np.log(value_s) - 0.5 * (low + high)) <= half)
