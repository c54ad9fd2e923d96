"""The simulator: protocols, the deterministic core, results and their metrics."""

from podium.sim.engine import Setup, simulate
from podium.sim.orders import Order, inflate, read_order
from podium.sim.protocols import Holding, Inflation, Protocol, Replay, Rounds
from podium.sim.result import Placement, Result

__all__ = [
    "Holding", "Inflation", "Order", "Placement", "Protocol", "Replay", "Result", "Rounds", "Setup",
    "inflate", "read_order", "simulate",
]  # fmt: skip
