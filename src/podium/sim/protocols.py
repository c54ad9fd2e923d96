"""Defines the protocols: how pods reach the cluster and whether they leave it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from podium.errors import UsageError
from podium.sim.orders import Order


def _require(is_met: bool, key: str, value: object, expected: str) -> None:
    if not is_met:
        raise UsageError(f"{key} is {value}", hint=f"{expected} is expected")


@dataclass(frozen=True, slots=True)
class Holding:
    """Bounds how long a policy may hold a pod back."""

    hold_limit: int = 100  # decisions after which a held pod is offered again at the latest
    max_holds: int = 1000  # holds after which a pod may no longer be held

    def __post_init__(self) -> None:
        _require(self.hold_limit >= 1, "hold_limit", self.hold_limit, "at least 1")
        _require(self.max_holds >= 0, "max_holds", self.max_holds, "at least 0")


@dataclass(frozen=True, slots=True)
class Replay:
    """Plays arrivals and departures in time; `load` compresses the time between arrivals."""

    load: float = 1.0
    holding: Holding = Holding()
    preemption: bool = False  # a pod that fits nowhere may evict pods of lower priority
    name: ClassVar[Literal["replay"]] = "replay"

    def __post_init__(self) -> None:
        _require(0 < self.load < float("inf"), "load", self.load, "a positive number")


@dataclass(frozen=True, slots=True)
class Inflation:
    """Lets pods arrive, never leave, until the arrived GPU demand reaches a ratio of capacity.

    The experiment of Weng et al., USENIX ATC 2023. An order fixes arrivals and node ranks.
    """

    ratio: float = 1.3
    order: Order | None = None
    holding: Holding = Holding()
    preemption: ClassVar[bool] = False  # what has no room is dropped, whatever its priority
    name: ClassVar[Literal["inflation"]] = "inflation"

    def __post_init__(self) -> None:
        _require(0 < self.ratio <= 100, "ratio", self.ratio, "a number above 0 and up to 100")


@dataclass(frozen=True, slots=True)
class Rounds:
    """Offers a fixed queue of pods in rounds; nothing leaves."""

    max_rounds: int = 10
    holding: Holding = Holding()
    preemption: bool = False  # a pod that fits nowhere may evict pods of lower priority
    name: ClassVar[Literal["rounds"]] = "rounds"

    def __post_init__(self) -> None:
        _require(self.max_rounds >= 1, "max_rounds", self.max_rounds, "at least 1")


Protocol = Replay | Inflation | Rounds
