"""GPU scheduling for Kubernetes that learns.

    import podium

    podium.simulate("fgd", "openb", protocol="inflation", seed=3)
    podium.compare(["fgd", my_function], "openb", seeds=10)
    podium.fit("cluster.yaml")
    podium.search(evaluations=300).best
    podium.train("qtable", episodes=500).best

Whatever is named here is imported when it is used: `import podium` alone costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from podium.errors import PodiumError
    from podium.experiments.compare import PolicyComparison
    from podium.experiments.face import (
        compare,
        explain,
        fit,
        load_policy,
        load_trace,
        search,
        simulate,
        train,
    )
    from podium.experiments.fit import Fit
    from podium.experiments.listener import Cancelled, Listener
    from podium.experiments.search import SearchOutcome
    from podium.experiments.train import TrainingOutcome
    from podium.policies import HOLD, Policy
    from podium.sim import Result
    from podium.traces import Trace

__version__ = "0.1.0"

__all__ = [
    "HOLD", "Cancelled", "Fit", "Listener", "PodiumError", "Policy", "PolicyComparison", "Result",
    "SearchOutcome", "Trace", "TrainingOutcome", "__version__", "compare", "explain", "fit",
    "load_policy", "load_trace", "search", "simulate", "train",
]  # fmt: skip

_HOMES = {
    "HOLD": "podium.policies",
    "Cancelled": "podium.experiments.listener",
    "Fit": "podium.experiments.fit",
    "Listener": "podium.experiments.listener",
    "PodiumError": "podium.errors",
    "Policy": "podium.policies",
    "PolicyComparison": "podium.experiments.compare",
    "Result": "podium.sim",
    "SearchOutcome": "podium.experiments.search",
    "Trace": "podium.traces",
    "TrainingOutcome": "podium.experiments.train",
    "compare": "podium.experiments.face",
    "explain": "podium.experiments.face",
    "fit": "podium.experiments.face",
    "load_policy": "podium.experiments.face",
    "load_trace": "podium.experiments.face",
    "simulate": "podium.experiments.face",
    "train": "podium.experiments.face",
}


def __getattr__(name: str) -> Any:
    if name == "search":
        # The room of that name is callable: it would take the place of a function once imported.
        return import_module("podium.search")
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
