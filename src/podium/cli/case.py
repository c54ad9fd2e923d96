"""Turns the options of a verb into what the simulator takes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from podium.cli.options import blaming, place_of, traces_folder
from podium.cli.protocol import Choice, check_order_of
from podium.errors import UsageError
from podium.model import Cluster, Workload
from podium.policies import Policy, load
from podium.policies.registry import RUN
from podium.settings import Settings
from podium.sim import Protocol, Setup
from podium.traces.catalogue import EMBEDDED, LoadOptions, load_trace
from podium.traces.trace import Trace


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


def named_policy(reference: str, where: str, *, is_ignoring_unknown: bool = False) -> Policy:
    """Loads a policy; an error says where it was named, and what to do about the file."""
    from podium.cli.watch import apart

    with blaming(where, "correct the file, or name another one"), apart():
        if reference.startswith(RUN):
            from podium.search.run.found import load_found

            return load_found(reference)
        return load(reference, ignore_unknown_plugins=is_ignoring_unknown)


def load_case(settings: Settings, inputs: Inputs, seed: int | None = None) -> Case:
    """Loads cluster and workload and settles protocol and seed; a seed given here stays."""
    drawn = settings.simulate.seed if seed is None else seed
    options = LoadOptions(
        traces_folder(settings), drawn, inputs.nodes, inputs.pods, inputs.is_skipping_bad
    )
    traces = _traces(settings, options)
    cluster, workload = _cluster(traces, options), _workload(settings, traces)
    experiment = next((trace.experiment for trace in traces if trace.experiment), None)
    choice = Choice(settings, experiment, inputs.orders)
    run_seed = choice.seed() if seed is None else seed
    protocol = choice.protocol(run_seed)
    if inputs.orders:
        check_order_of(inputs.orders, protocol, cluster, workload)
    with blaming(place_of(settings, "simulate.seed")):
        setup = Setup(seed=run_seed, tier=_tier(settings), ranks=inputs.ranks)
    notes = (*_notes(traces), *_lacks(cluster), *choice.unused(protocol))
    return Case(cluster, workload, protocol, setup, notes)


def _notes(traces: list[Trace]) -> Iterator[str]:
    for trace in traces:
        yield from trace.notes
    if not any(trace.cluster for trace in traces):
        yield f"the trace has no nodes: the cluster {EMBEDDED} is used (--cluster changes)"


def _lacks(cluster: Cluster) -> Iterator[str]:
    if not cluster.gpu_total:
        yield "the cluster has no GPUs that can be modelled: every figure of GPUs is 0"


def _workload(settings: Settings, traces: list[Trace]) -> Workload:
    for trace in traces:
        if trace.workload is not None:
            return trace.workload
    raise UsageError(
        "no pods are given",
        where=place_of(settings, "simulate.trace"),
        hint="name a trace that has pods with --trace",
    )


def _cluster(traces: list[Trace], options: LoadOptions) -> Cluster:
    given = next((trace.cluster for trace in reversed(traces) if trace.cluster), None)
    return given or _embedded(options)


def _embedded(options: LoadOptions) -> Cluster:
    cluster = load_trace(EMBEDDED, replace(options, pods=1)).cluster
    if cluster is None:
        raise RuntimeError("the embedded profile has no nodes")
    return cluster


def _traces(settings: Settings, options: LoadOptions) -> list[Trace]:
    """Loads what is named; the trace first, and then the cluster where there is one."""
    chosen = settings.simulate
    if chosen.cluster is None:
        return [_loaded(settings, "simulate.trace", options)]
    # A folder of manifests or a simon Config may bring its pods along.
    is_alone = settings.origins["simulate.trace"] == "default"
    given = _loaded(settings, "simulate.cluster", replace(options, pods=None))
    if given.cluster is None:
        raise UsageError(
            f"{chosen.cluster} holds no nodes",
            where=place_of(settings, "simulate.cluster"),
            hint="give a node list or manifests of nodes; pods go to --trace",
        )
    if given.workload is not None and is_alone:
        return [given if options.pods is None else _loaded(settings, "simulate.cluster", options)]
    pods = _loaded(settings, "simulate.trace", replace(options, nodes=None))
    return [pods, replace(given, workload=None)]


def _loaded(settings: Settings, path: str, options: LoadOptions) -> Trace:
    reference = str(getattr(settings.simulate, path.partition(".")[2]))
    with blaming(place_of(settings, path)):
        return _named(load_trace(reference, options), reference)


def _named(trace: Trace, reference: str) -> Trace:
    cluster = trace.cluster and replace(trace.cluster, name=reference)
    workload = trace.workload and replace(trace.workload, name=reference)
    return replace(trace, cluster=cluster, workload=workload)


def _tier(settings: Settings) -> Any:
    return settings.compile.tier
