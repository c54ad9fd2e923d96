"""Strategies that decide where jobs run: the agent and its baselines."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from podium.errors import UnknownName
from podium.online.agent import Agent
from podium.online.exploration import EXPLOITATION, EXPLORATION, FORCED, ExplorationCap
from podium.online.observation import Request

EPSILON = 0.1
STRATEGIES = {
    "oracle": "knows the hidden run times",
    "capped-oracle": "knows them too, but starts without observations and keeps to the cap",
    "online": "the agent",
    "never-explore": "the agent without exploration: the best that it has seen",
    "epsilon": "the same, with one job in ten sent to a random GPU type",
}


@dataclass(frozen=True, slots=True)
class Stage:
    """What a strategy may look at: its agent, the hidden run times, the cap, and random numbers."""

    agent: Agent
    expected_s: NDArray[np.float64]  # by job and GPU type
    gpu_types: list[str]
    cap: ExplorationCap
    rng: np.random.Generator

    def fastest(self, number: int) -> str:
        """Names the GPU type where a job is expected to run fastest."""
        return self.gpu_types[int(self.expected_s[number].argmin())]


Strategy = Callable[[Stage, int, Request], tuple[str, str]]
"""Chooses the GPU type and the type of the decision for a job, by its number."""


def strategy_named(name: str) -> Strategy:
    """Finds a strategy by its name."""
    if name not in _STRATEGIES:
        raise UnknownName.among("strategy", name, _STRATEGIES)
    return _STRATEGIES[name]


def _know(stage: Stage, number: int, _: Request) -> tuple[str, str]:
    return stage.fastest(number), EXPLOITATION


def _know_within_cap(stage: Stage, number: int, request: Request) -> tuple[str, str]:
    answer = stage.agent.score(request)
    if answer.decision_type == FORCED:
        return answer.chosen_gpu_type, FORCED
    seen = [each.gpu_type for each in answer.candidates if each.observations]
    best = stage.fastest(number)
    is_exploring = best not in seen and stage.cap.allows()
    if best not in seen and not is_exploring:
        best = min(seen, key=lambda name: stage.expected_s[number, stage.gpu_types.index(name)])
    decision_type = EXPLORATION if is_exploring else EXPLOITATION
    stage.cap.count(decision_type)
    return best, decision_type


def _ask(stage: Stage, _: int, request: Request) -> tuple[str, str]:
    answer = stage.agent.score(request)
    return answer.chosen_gpu_type, answer.decision_type


def _ask_or_draw(stage: Stage, number: int, request: Request) -> tuple[str, str]:
    if stage.rng.random() < EPSILON:
        return stage.gpu_types[stage.rng.integers(len(stage.gpu_types))], EXPLORATION
    return _ask(stage, number, request)


_STRATEGIES: dict[str, Strategy] = {
    "oracle": _know,
    "capped-oracle": _know_within_cap,
    "online": _ask,
    "never-explore": _ask,
    "epsilon": _ask_or_draw,
}
