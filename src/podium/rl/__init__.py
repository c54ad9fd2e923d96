"""Learns to place pods by trial: environments, and what is trained in them.

Nothing is imported before it is used; the environments need NumPy and Numba alone.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from podium.rl.environment.placement import Placement
    from podium.rl.environment.rewards import REWARDS, Outcome
    from podium.rl.environment.world import World

__all__ = ["REWARDS", "Outcome", "Placement", "World"]

_HOMES = {
    "REWARDS": "podium.rl.environment.rewards",
    "Outcome": "podium.rl.environment.rewards",
    "Placement": "podium.rl.environment.placement",
    "World": "podium.rl.environment.world",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
