"""Chooses the protocol and the seed of a run from the settings and the trace."""

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

ORDER_HINT = "give a .jsonl or .jsonl.gz file with one order per line, made for this trace"

_USED_IN = {
    "simulate.load": "replay",
    "simulate.ratio": "inflation",
    "simulate.max_rounds": "rounds",
}


@dataclass(frozen=True, slots=True)
class Choice:
    """What a protocol is chosen from; flags take precedence over the trace."""

    settings: Settings
    experiment: Experiment | None  # of a Config of the published simulator
    orders: Path | None

    def seed(self) -> int:
        """Returns the seed of a run that has none of its own."""
        is_free = self.settings.origins["simulate.seed"] == "default"
        if is_free and self.experiment and self.experiment.seed is not None:
            return self.experiment.seed
        return self.settings.simulate.seed

    def protocol(self, seed: int) -> Protocol:
        """Returns the protocol, with the order of the seed where there is one."""
        chosen = self.settings.simulate
        holding = Holding(chosen.hold_limit, chosen.max_holds)
        if self._is_inflation():
            self._refuse_preemption()
            order = read_order_of(self.orders, seed) if self.orders else None
            with blaming(place_of(self.settings, "simulate.ratio")):
                return Inflation(self._ratio(), order, holding)
        if self.orders:
            raise UsageError(
                f"arrival orders cannot be used with {chosen.protocol}",
                where=place_of(self.settings, "simulate.protocol"),
                hint="leave out --orders, or choose --protocol inflation",
            )
        if chosen.protocol == "rounds":
            return Rounds(chosen.max_rounds, holding, chosen.preemption)
        return Replay(chosen.load, holding, chosen.preemption)

    def unused(self, protocol: Protocol) -> Iterator[str]:
        """Lists flags that were given but have no effect."""
        for path, used_in in _USED_IN.items():
            origin = self.settings.origins[path]
            if origin.startswith("flag ") and protocol.name != used_in:
                yield f"{origin.removeprefix('flag ')} has no effect with {protocol.name}"
            elif origin.startswith("flag ") and path == "simulate.ratio" and self.orders:
                yield "--ratio has no effect: the order says what arrives"

    def _refuse_preemption(self) -> None:
        if self.settings.simulate.preemption:
            raise UsageError(
                "preemption cannot be used with inflation: what has no room is dropped",
                where=place_of(self.settings, "simulate.preemption"),
                hint="leave it out, or choose --protocol replay or rounds",
            )

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
    """Reads the order of a seed; an error says what such a file must contain."""
    with blaming(f"flag --orders, {path}", ORDER_HINT):
        return read_order(path, seed)


def check_order_of(path: Path, protocol: Protocol, cluster: Cluster, workload: Workload) -> None:
    """Refuses an order for other pods or nodes, naming its file."""
    if isinstance(protocol, Inflation) and protocol.order is not None:
        with blaming(f"flag --orders, {path}", ORDER_HINT):
            check_order(protocol.order, cluster, workload)
