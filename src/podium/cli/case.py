"""Turns the options of a verb into what the simulator takes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from podium.cli.options import traces_folder
from podium.errors import UsageError
from podium.model import Cluster, Workload
from podium.settings import Settings
from podium.sim import Holding, Inflation, Protocol, Replay, Rounds, Setup, read_order
from podium.traces.catalogue import EMBEDDED, LoadOptions, load_trace
from podium.traces.trace import Experiment, Trace


@dataclass(frozen=True, slots=True)
class Inputs:
    """Says what is loaded besides what the settings say."""

    orders: Path | None = None
    nodes: int | None = None
    pods: int | None = None
    is_skipping_bad: bool = False
    ranks: Any = "shuffled"


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """Holds one loaded experiment, less the policy."""

    cluster: Cluster
    workload: Workload
    protocol: Protocol
    setup: Setup
    notes: tuple[str, ...]


def load_case(settings: Settings, inputs: Inputs, seed: int | None = None) -> Case:
    """Loads cluster and workload and settles protocol and seed."""
    asked = settings.simulate.seed if seed is None else seed
    options = LoadOptions(
        traces_folder(settings), asked, inputs.nodes, inputs.pods, inputs.is_skipping_bad
    )
    traces = _traces(settings, options)
    cluster = next((trace.cluster for trace in reversed(traces) if trace.cluster), None)
    workload = next((trace.workload for trace in traces if trace.workload), None)
    notes = tuple(note for trace in traces for note in trace.notes)
    if workload is None:
        raise UsageError("no pods are given", hint="name a trace that has pods with --trace")
    if cluster is None:
        cluster = load_trace(EMBEDDED, options).cluster
        notes += (f"the trace has no nodes: the cluster {EMBEDDED} is used (--cluster to change)",)
    experiment = next((trace.experiment for trace in traces if trace.experiment), None)
    seed_used = _seed(settings, experiment, asked)
    if cluster is None:
        raise UsageError("no nodes are given", hint="name a cluster with --cluster")
    return Case(
        cluster=cluster,
        workload=workload,
        protocol=_protocol(settings, inputs, experiment, seed_used),
        setup=Setup(seed=seed_used, tier=_tier(settings), ranks=inputs.ranks),
        notes=notes,
    )


def _traces(settings: Settings, options: LoadOptions) -> list[Trace]:
    chosen = settings.simulate
    if chosen.cluster is None:
        return [_named(load_trace(chosen.trace, options), chosen.trace)]
    plain = replace(options, pods=None)
    given = _named(load_trace(chosen.cluster, plain), chosen.cluster)
    # A folder of manifests or a simon Config may bring its pods along.
    if given.workload is not None and settings.origins["simulate.trace"] == "default":
        return [given]
    pods = _named(load_trace(chosen.trace, replace(options, nodes=None)), chosen.trace)
    return [pods, replace(given, workload=None)]


def _named(trace: Trace, reference: str) -> Trace:
    cluster = trace.cluster and replace(trace.cluster, name=reference)
    workload = trace.workload and replace(trace.workload, name=reference)
    return replace(trace, cluster=cluster, workload=workload)


def _protocol(
    settings: Settings, inputs: Inputs, experiment: Experiment | None, seed: int
) -> Protocol:
    chosen = settings.simulate
    holding = Holding(chosen.hold_limit, chosen.max_holds)
    is_free = settings.origins["simulate.protocol"] == "default"
    is_inflation = chosen.protocol == "inflation"
    if is_free and (inputs.orders or (experiment and experiment.ratio)):
        is_inflation = True
    if is_inflation:
        order = read_order(inputs.orders, seed) if inputs.orders else None
        return Inflation(_ratio(settings, experiment), order, holding)
    if inputs.orders:
        raise UsageError(f"an order cannot be used in {chosen.protocol}", hint="leave out --orders")
    return Rounds(holding=holding) if chosen.protocol == "rounds" else Replay(chosen.load, holding)


def _ratio(settings: Settings, experiment: Experiment | None) -> float:
    if experiment and experiment.ratio and settings.origins["simulate.ratio"] == "default":
        return experiment.ratio
    return settings.simulate.ratio


def _seed(settings: Settings, experiment: Experiment | None, asked: int) -> int:
    is_free = settings.origins["simulate.seed"] == "default" and asked == settings.simulate.seed
    if is_free and experiment and experiment.seed is not None:
        return experiment.seed
    return asked


def _tier(settings: Settings) -> Any:
    return settings.compile.tier
