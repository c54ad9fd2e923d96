"""Compares what the agent has learned with what was hidden from it."""

from __future__ import annotations

from typing import Any

import numpy as np

from podium.online.agent import Agent
from podium.online.observation import Request
from podium.online.world import Jobs, World

_MOST_JOB_TYPES = 4
_MOST_SLOWDOWNS = 4


def recovered_run_times(world: World, agent: Agent) -> list[dict[str, Any]]:
    """Compares estimates and truth for the first job types: on their best and worst GPU type."""
    found = []
    for job, name in enumerate(world.job_types[:_MOST_JOB_TYPES]):
        known = agent.candidates(Request(name, tuple(world.gpu_types)))
        hidden = world.runtime_s[job]
        for gpu in dict.fromkeys((int(hidden.argmin()), int(hidden.argmax()))):
            each = known[gpu]
            found.append(
                {
                    "job_type": name,
                    "gpu_type": each.gpu_type,
                    "observations": each.observations,
                    "true_s": float(hidden[gpu]),
                    "mu_s": each.mu,
                    "sigma_s": each.sigma,
                }
            )
    return found


def recovered_slowdowns(world: World, jobs: Jobs, agent: Agent) -> list[dict[str, Any]]:
    """Compares slowdowns and truth for the pairs of job types that met most often."""
    size = len(world.job_types)
    meetings = np.zeros((size, size), dtype=np.intp)
    is_beside = jobs.neighbour >= 0
    np.add.at(meetings, (jobs.job_type[is_beside], jobs.neighbour[is_beside]), 1)
    often = np.argsort(-meetings, axis=None, kind="stable")[:_MOST_SLOWDOWNS]
    found = []
    for job, beside in zip(*np.unravel_index(often, meetings.shape), strict=True):
        if not meetings[job, beside]:
            continue
        names = world.job_types[job], world.job_types[beside]
        weighed = agent.candidates(Request(names[0], tuple(world.gpu_types), {}, names[1:]))[0]
        found.append(
            {
                "job_type": names[0],
                "beside": names[1],
                "jobs": int(meetings[job, beside]),
                "true_slowdown": float(world.slowdown[job, beside] - 1.0),
                "slowdown": weighed.penalty / weighed.mu,
            }
        )
    return found
