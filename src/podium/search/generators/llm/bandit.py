"""Chooses among models by what they gained for what they cost.

UCB1 on the gain over the best parent, as in ShinkaEvolve: losses count as nothing, because one
good program is worth many bad ones.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

COST_WEIGHT = 0.5
"""How much being the dearest model counts, where being the one that gains most counts 1."""

EXPLORATION = 1.0


@dataclass(slots=True)
class Arm:
    """Counts the results of one model."""

    calls: int = 0
    gain: float = 0.0
    tokens: int = 0
    usd: float = 0.0
    is_usd_known: bool = True


LARGEST_GAIN = 1e9
"""More than any fitness can gain; sums of such gains stay finite."""


class Bandit:
    """Remembers how models did, and prefers those that gain; threads may share one bandit."""

    def __init__(self, models: Sequence[str]) -> None:
        self._arms = {model: Arm() for model in models}
        self._lock = threading.Lock()

    def choose(
        self, among: Sequence[str], rng: np.random.Generator, state: Mapping[str, Any] | None = None
    ) -> str:
        """Chooses a model; an untried one first, and by the generator where several are equal.

        An earlier `state` is chosen by in place of the present one.
        """
        with self._lock:
            known = {model: Arm(**arm) for model, arm in state.items()} if state else self._arms
            values = _values({model: known.get(model, Arm()) for model in among})
        best = max(values.values())
        equal = [model for model, value in values.items() if value == best]
        return equal[int(rng.random() * len(equal))]

    def learn(self, model: str, gain: float | None, tokens: int, usd: float | None) -> None:
        """Learns how much better than its best parent a model's program was."""
        with self._lock:
            arm = self._arms.setdefault(model, Arm())
            arm.calls += 1
            if gain is not None and math.isfinite(gain):
                arm.gain += min(max(gain, 0.0), LARGEST_GAIN)
            arm.tokens += tokens
            arm.usd += usd or 0.0
            arm.is_usd_known &= usd is not None

    def state(self) -> dict[str, Any]:
        """Returns the state of the bandit as JSON types."""
        with self._lock:
            return {model: asdict(arm) for model, arm in self._arms.items()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restores a state that `state` returned."""
        with self._lock:
            self._arms |= {model: Arm(**arm) for model, arm in state.items()}


def _values(arms: Mapping[str, Arm]) -> dict[str, float]:
    tried = [arm for arm in arms.values() if arm.calls]
    total = sum(arm.calls for arm in tried)
    in_usd = all(arm.is_usd_known for arm in tried)
    most_gain = max((arm.gain / arm.calls for arm in tried), default=0.0)
    most_cost = max((_cost(arm, in_usd) for arm in tried), default=0.0)

    def value(arm: Arm) -> float:
        if not arm.calls:
            return math.inf
        gain = arm.gain / arm.calls / most_gain if most_gain > 0 else 0.0
        cost = _cost(arm, in_usd) / most_cost if most_cost > 0 else 0.0
        return gain - COST_WEIGHT * cost + EXPLORATION * math.sqrt(math.log(total) / arm.calls)

    return {model: value(arm) for model, arm in arms.items()}


def _cost(arm: Arm, in_usd: bool) -> float:
    return (arm.usd if in_usd else arm.tokens) / arm.calls
