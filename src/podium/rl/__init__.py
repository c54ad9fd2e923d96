"""Learns to place pods by trial: environments, and what is trained in them.

Nothing is imported before it is used; the environments need NumPy and Numba alone.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from podium.rl.environment.gym import PlacementEnv, PlacementVectorEnv
    from podium.rl.environment.placement import Placement
    from podium.rl.environment.rewards import REWARDS, Outcome
    from podium.rl.environment.world import World

__all__ = ["REWARDS", "Outcome", "Placement", "PlacementEnv", "PlacementVectorEnv", "World"]

_HOMES = {
    "REWARDS": "podium.rl.environment.rewards",
    "Outcome": "podium.rl.environment.rewards",
    "Placement": "podium.rl.environment.placement",
    "PlacementEnv": "podium.rl.environment.gym",
    "PlacementVectorEnv": "podium.rl.environment.gym",
    "World": "podium.rl.environment.world",
}

_NAME = "podium/Placement-v0"


def _register() -> None:
    """Makes the environments known to Gymnasium, where it is installed."""
    if find_spec("gymnasium") is None:
        return
    import gymnasium

    if _NAME not in gymnasium.registry:
        home = "podium.rl.environment.gym"
        gymnasium.register(
            _NAME, f"{home}:PlacementEnv", vector_entry_point=f"{home}:PlacementVectorEnv"
        )


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


_register()
