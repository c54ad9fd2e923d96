"""Lets a real kube-scheduler place the same pods by its defaults, packing, and with Podium."""

from __future__ import annotations

import contextlib
import json
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from podium.errors import MissingError
from podium.experiments.try_plan import ARMS, PACKING, STOCK, Tally, TryPlan
from podium.experiments.try_runs import Runs, TryListener, metrics_of, unscored

if TYPE_CHECKING:
    from podium.kube.local.daemon import DaemonError
    from podium.policies import Policy
    from podium.sim import Result
    from podium.traces.trace import Trace

DRAWS = 10
"""So often is it simulated who wins among equal nodes, which kube-scheduler draws."""


RIVALS = {"stock": "kube-scheduler's defaults", "packing": "the packing profile"}
"""The arms without Podium, as a sentence calls them."""


@dataclass(frozen=True, slots=True)
class Forecast:
    """Says what the simulator makes of the pods of a run."""

    listed: Tally  # where the first in the list wins among equal nodes
    drawn: tuple[Tally, ...] = ()  # where lots decide
    reasons: Mapping[str, int] = field(default_factory=dict)  # of the pods that are not placed
    refused: Mapping[str, int] = field(default_factory=dict)  # the same where none is placed


@dataclass(frozen=True, slots=True)
class Outcome:
    """Holds what every run did by its arm, and what the simulator says of the same pods."""

    real: Mapping[str, Tally]
    forecasts: Mapping[str, Forecast]
    kubeconfig: Path
    notes: tuple[str, ...] = ()

    @property
    def rival(self) -> str:
        """Names the better of the arms without Podium: a gain is one over both."""
        return max(ARMS[:-1], key=lambda arm: self.real[arm].gpus_allocated)

    def span(self, arm: str, figure: str) -> tuple[float, float]:
        """Bounds a figure of a run: as it was, and as lots among equal nodes might have made it."""
        found = (self.real[arm], self.forecasts[arm].listed, *self.forecasts[arm].drawn)
        figures = [_figure(tally, figure) for tally in found]
        return min(figures), max(figures)

    def change(self, figure: str) -> float:
        """Tells what the policy changed over its rival; 0 where lots might have done it."""
        low, high = self.span("podium", figure)
        best = max(self.span(arm, figure)[1] for arm in ARMS[:-1])
        if low <= best and high >= self.span(self.rival, figure)[0]:
            return 0.0
        one, other = (_figure(self.real[arm], figure) for arm in (self.rival, "podium"))
        return round(other - one, 3)

    def as_object(self) -> dict[str, Any]:
        """Describes the outcome as JSON types."""
        return {
            arm: {**_object(self.real[arm]), "simulated": _object(self.forecasts[arm].listed)}
            for arm in ARMS
        }


def _figure(tally: Tally, name: str) -> float:
    """Gives a figure to the thousandth of a GPU: the order of a sum does not matter."""
    return round(float(getattr(tally, name)), 3)


def alike(plan: TryPlan, outcome: Outcome) -> str:
    """Says why the runs cannot be ranked, and in a second line the way out; often nothing."""
    from podium.reports.idle import WAYS_OUT, alike_note

    is_nothing = not any(tally.bound for tally in outcome.real.values())
    told = outcome.forecasts["podium"]
    runs = {
        arm: [{
            "protocol": "rounds", "pods": outcome.real[arm].submitted, "refusals": told.reasons,
            "placed": outcome.real[arm].bound,
            "gpu_allocation": _figure(outcome.real[arm], "gpus_allocated"),
        }]
        for arm in (ARMS[-1:] if is_nothing else ARMS)
    }  # fmt: skip
    found = alike_note(runs, "gpu_allocation", told.refused, "") or _unmoved(plan, outcome)
    reason, _, way_out = found.partition("\n")
    is_told = next(iter(told.reasons), "") in WAYS_OUT or (is_nothing and not plan.is_in_place)
    return f"{reason}\n{way_out if way_out and is_told else plan.more}" if reason else ""


def _unmoved(plan: TryPlan, outcome: Outcome) -> str:
    """Says that the policy did no more than its rival or than lots might have done, if so."""
    if outcome.change("gpus_allocated") or outcome.change("bound"):
        return ""
    rival = RIVALS[outcome.rival]
    one, other = (
        [_figure(outcome.real[arm], name) for name in ("gpus_allocated", "bound")]
        for arm in (outcome.rival, "podium")
    )
    if one == other:
        return f"{plan.policy.name} allocates as many GPUs to as many pods as {rival}"
    return f"draws among equal nodes move as much: {_spans(plan, outcome)}"


def _spans(plan: TryPlan, outcome: Outcome) -> str:
    told = []
    for arm, name in ((outcome.rival, RIVALS[outcome.rival]), ("podium", plan.policy.name)):
        gpus, pods = (outcome.span(arm, figure) for figure in ("gpus_allocated", "bound"))
        span = f"{gpus[0]:,.1f} to {gpus[1]:,.1f} GPUs and {pods[0]:,g} to {pods[1]:,g} pods"
        told.append(f"{span} with {name}")
    return ", ".join(told)


@contextmanager
def tried(plan: TryPlan, programs: Path, listener: TryListener) -> Iterator[Outcome]:
    """Runs kube-scheduler by itself, packing, and with Podium; the last goes on in the block."""
    from podium.kube.local.control_plane import control_plane
    from podium.kube.local.daemon import DaemonError
    from podium.kube.local.server import KubeApi
    from podium.policies import load

    # A policy that fails says so here; in a cluster, the extender would go on without it.
    listener.status("simulating the same pods")
    policies = dict(zip(ARMS, (load(STOCK), load(PACKING), plan.policy), strict=True))
    objects = objects_of(plan)
    forecasts = {arm: forecast(plan, objects, policy) for arm, policy in policies.items()}
    try:
        listener.status("starting etcd and kube-apiserver")
        with (
            control_plane(programs) as plane,
            contextlib.closing(KubeApi(plane.access)) as api,
        ):
            yield from _compared(Runs(plan, plane, api, listener), forecasts)
    except DaemonError as error:
        raise _not_started(error) from error


def _compared(runs: Runs, forecasts: Mapping[str, Forecast]) -> Iterator[Outcome]:
    runs.create_nodes()
    real = {}
    for arm, scheduler in (("stock", runs.stock_scheduler), ("packing", runs.packing_scheduler)):
        runs.begin()
        with scheduler():
            real[arm] = runs.submit(arm)
    runs.begin()
    with runs.policy_scheduler() as url:
        real["podium"] = runs.submit("podium")
        notes = tuple(unscored(metrics_of(url)))
        yield Outcome(real, forecasts, kubeconfig=runs.plane.kubeconfig, notes=notes)


def forecast(plan: TryPlan, trace: Trace, policy: Policy) -> Forecast:
    """Simulates the same objects in the same order, by the rules of the live cluster."""
    from podium.reports.idle import refused_words
    from podium.sim.refusal import count_reasons

    listed = _simulated(trace, policy, "listed", 0)
    drawn = (_simulated(trace, policy, "shuffled", seed) for seed in range(DRAWS))
    return Forecast(
        _tally(plan, listed),
        tuple(_tally(plan, each) for each in drawn),
        count_reasons(listed),
        refused_words(listed),
    )


def objects_of(plan: TryPlan) -> Trace:
    """Reads what is submitted as the service of the last run reads it from the cluster."""
    from podium.kube.local.workload import node_objects, pod_objects, running_objects
    from podium.traces.catalogue import load_trace

    pods = (*running_objects(plan.running), *pod_objects(plan.pods))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "objects.json")
        items = [*node_objects(plan.cluster), *pods]
        file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
        return load_trace(str(file))


def _simulated(trace: Trace, policy: Policy, ranks: Any, seed: int) -> Result:
    from podium.sim import Rounds, Setup, simulate

    assert trace.cluster is not None
    assert trace.workload is not None
    setup = Setup(seed=seed, ranks=ranks, demand="seen", ties="profile")
    return simulate(trace.cluster, trace.workload, policy, Rounds(max_rounds=1), setup)


def _tally(plan: TryPlan, result: Result) -> Tally:
    from podium.kube.local.workload import pod_objects

    names = (name.rpartition("/")[2] for name in result.plan.arrivals.names)
    listed = (*result.plan.cluster.names, "")
    places = (listed[node] for node in result.node.tolist())
    place_of = dict(zip(names, places, strict=True))
    return plan.count(place_of[pod["metadata"]["name"]] for pod in pod_objects(plan.pods))


def _object(tally: Tally) -> dict[str, Any]:
    classes = {
        name: {"submitted": submitted, "bound": bound}
        for name, (submitted, bound) in tally.by_class.items()
    }
    return {**asdict(tally), "no_room": tally.no_room, "by_class": classes}


def _not_started(error: DaemonError) -> MissingError:
    return MissingError(
        f"{error.name} {error.what}",
        where="\n".join(error.last.splitlines()[-5:]),
        hint="it needs free ports on 127.0.0.1 and about 1 GB of memory; run it again",
    )
