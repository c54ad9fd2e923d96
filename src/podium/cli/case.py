"""Turns the options of a verb into what the simulator takes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from podium.cli.options import blaming, place_of, traces_folder
from podium.errors import InputError, PolicyError, UsageError
from podium.model import Cluster, Workload
from podium.policies import Policy, load
from podium.settings import Settings
from podium.sim import Holding, Inflation, Order, Protocol, Replay, Rounds, Setup, read_order
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


def named_policy(reference: str, where: str, *, is_ignoring_unknown: bool = False) -> Policy:
    """Loads a policy; an error says where it was named, and what to do about the file."""
    with blaming(where):
        try:
            return load(reference, ignore_unknown_plugins=is_ignoring_unknown)
        except PolicyError as error:
            error.hint = error.hint or "correct the file and run it again"
            raise


def load_case(settings: Settings, inputs: Inputs, seed: int | None = None) -> Case:
    """Loads cluster and workload and settles protocol and seed; a seed given here stays."""
    drawn = settings.simulate.seed if seed is None else seed
    options = LoadOptions(
        traces_folder(settings), drawn, inputs.nodes, inputs.pods, inputs.is_skipping_bad
    )
    traces = _traces(settings, options)
    workload = next((trace.workload for trace in traces if trace.workload), None)
    if workload is None:
        raise UsageError(
            "no pods are given",
            where=place_of(settings, "simulate.trace"),
            hint="name a trace that has pods with --trace",
        )
    cluster = next((trace.cluster for trace in reversed(traces) if trace.cluster), None)
    experiment = next((trace.experiment for trace in traces if trace.experiment), None)
    run_seed = _seed(settings, experiment) if seed is None else seed
    protocol = _protocol(settings, inputs, experiment, run_seed)
    notes = [note for trace in traces for note in trace.notes]
    if cluster is None:
        notes.append(f"the trace has no nodes: the cluster {EMBEDDED} is used (--cluster changes)")
    return Case(
        cluster=cluster or _embedded(options),
        workload=workload,
        protocol=protocol,
        setup=Setup(seed=run_seed, tier=_tier(settings), ranks=inputs.ranks),
        notes=(*notes, *_unused(settings, inputs, protocol)),
    )


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
        order = _order(inputs.orders, seed) if inputs.orders else None
        return Inflation(_ratio(settings, experiment), order, holding)
    if inputs.orders:
        raise UsageError(
            f"an order cannot be used in {chosen.protocol}",
            where=place_of(settings, "simulate.protocol"),
            hint="leave out --orders, or choose --protocol inflation",
        )
    return Rounds(holding=holding) if chosen.protocol == "rounds" else Replay(chosen.load, holding)


def _order(path: Path, seed: int) -> Order:
    try:
        return read_order(path, seed)
    except InputError as error:
        error.hint = error.hint or "give a .jsonl or .jsonl.gz file with one order a line"
        raise


def _ratio(settings: Settings, experiment: Experiment | None) -> float:
    if experiment and experiment.ratio and settings.origins["simulate.ratio"] == "default":
        return experiment.ratio
    return settings.simulate.ratio


def _seed(settings: Settings, experiment: Experiment | None) -> int:
    is_free = settings.origins["simulate.seed"] == "default"
    if is_free and experiment and experiment.seed is not None:
        return experiment.seed
    return settings.simulate.seed


def _unused(settings: Settings, inputs: Inputs, protocol: Protocol) -> Iterator[str]:
    """Names flags that were given and change nothing."""
    for path, used_in in (("simulate.load", "replay"), ("simulate.ratio", "inflation")):
        origin = settings.origins[path]
        if origin.startswith("flag ") and protocol.name != used_in:
            yield f"{origin.removeprefix('flag ')} changes nothing in {protocol.name}"
        elif origin.startswith("flag ") and path == "simulate.ratio" and inputs.orders:
            yield "--ratio changes nothing: the order says what arrives"


def _tier(settings: Settings) -> Any:
    return settings.compile.tier
