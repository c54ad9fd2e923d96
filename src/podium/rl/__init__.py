"""Learning by trial: environments, and what is trained in them.

Names are imported when they are used; environments need NumPy and Numba alone. Where Gymnasium is
installed, it knows `podium/Placement-v0` from here on.
"""

import importlib
import importlib.util
import typing

if typing.TYPE_CHECKING:
    from podium.rl.environment.gym import PlacementEnv as PlacementEnv
    from podium.rl.environment.gym import PlacementVectorEnv as PlacementVectorEnv
    from podium.rl.environment.placement import Placement as Placement
    from podium.rl.environment.rewards import REWARDS as REWARDS
    from podium.rl.environment.rewards import Outcome as Outcome
    from podium.rl.environment.world import World as World

_HERE = "podium.rl.environment"
_HOMES = {
    **dict.fromkeys(("PlacementEnv", "PlacementVectorEnv"), f"{_HERE}.gym"),
    **dict.fromkeys(("REWARDS", "Outcome"), f"{_HERE}.rewards"),
    **{"Placement": f"{_HERE}.placement", "World": f"{_HERE}.world"},
}

if importlib.util.find_spec("gymnasium") is not None:
    import gymnasium

    _ONE, _MANY = f"{_HERE}.gym:PlacementEnv", f"{_HERE}.gym:PlacementVectorEnv"
    gymnasium.register("podium/Placement-v0", _ONE, vector_entry_point=_MANY)


def __getattr__(name: str) -> typing.Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
