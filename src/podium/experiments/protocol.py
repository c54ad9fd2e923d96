"""Settles the protocol and the seed of a run from the settings and what a trace brings along."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from podium.errors import UsageError
from podium.experiments.places import blaming, place_of
from podium.model import Cluster, Workload
from podium.settings import Settings
from podium.sim import Holding, Inflation, Order, Protocol, Replay, Rounds, read_order
from podium.sim.orders import check_order
from podium.traces.trace import Experiment

ORDER_HINT = "give a .jsonl or .jsonl.gz file with one order a line, made for this trace"

_USED_IN = {
    "simulate.load": "replay",
    "simulate.ratio": "inflation",
    "simulate.max_rounds": "rounds",
}


@dataclass(frozen=True, slots=True)
class Choice:
    """Holds what a protocol is chosen from; flags go before what the trace brings along."""

    settings: Settings
    experiment: Experiment | None  # of a Config of the published simulator
    orders: Path | None

    def seed(self) -> int:
        """Gives the seed of a run that was given none of its own."""
        is_free = self.settings.origins["simulate.seed"] == "default"
        if is_free and self.experiment and self.experiment.seed is not None:
            return self.experiment.seed
        return self.settings.simulate.seed

    def protocol(self, seed: int) -> Protocol:
        """Gives the protocol, with the order of the seed where there is one."""
        chosen = self.settings.simulate
        holding = Holding(chosen.hold_limit, chosen.max_holds)
        if self._is_inflation():
            order = read_order_of(self.orders, seed) if self.orders else None
            with blaming(place_of(self.settings, "simulate.ratio")):
                return Inflation(self._ratio(), order, holding)
        if self.orders:
            raise UsageError(
                f"an order cannot be used in {chosen.protocol}",
                where=place_of(self.settings, "simulate.protocol"),
                hint="leave out --orders, or choose --protocol inflation",
            )
        if chosen.protocol == "rounds":
            return Rounds(chosen.max_rounds, holding)
        return Replay(chosen.load, holding)

    def unused(self, protocol: Protocol) -> Iterator[str]:
        """Names flags that were given and change nothing."""
        for path, used_in in _USED_IN.items():
            origin = self.settings.origins[path]
            if origin.startswith("flag ") and protocol.name != used_in:
                yield f"{origin.removeprefix('flag ')} changes nothing in {protocol.name}"
            elif origin.startswith("flag ") and path == "simulate.ratio" and self.orders:
                yield "--ratio changes nothing: the order says what arrives"

    def _is_inflation(self) -> bool:
        is_free = self.settings.origins["simulate.protocol"] == "default"
        is_asked = bool(self.orders or (self.experiment and self.experiment.ratio))
        return self.settings.simulate.protocol == "inflation" or (is_free and is_asked)

    def _ratio(self) -> float:
        is_free = self.settings.origins["simulate.ratio"] == "default"
        if is_free and self.experiment and self.experiment.ratio:
            return self.experiment.ratio
        return self.settings.simulate.ratio


def read_order_of(path: Path, seed: int) -> Order:
    """Reads the order of a seed; an error says what such a file holds."""
    with blaming(f"flag --orders, {path}", ORDER_HINT):
        return read_order(path, seed)


def check_order_of(path: Path, protocol: Protocol, cluster: Cluster, workload: Workload) -> None:
    """Refuses an order that speaks of other pods or nodes, by its file."""
    if isinstance(protocol, Inflation) and protocol.order is not None:
        with blaming(f"flag --orders, {path}", ORDER_HINT):
            check_order(protocol.order, cluster, workload)
