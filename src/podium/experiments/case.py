"""Loads the case of a simulation: cluster, workload, protocol and seed."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from podium.errors import UsageError
from podium.evaluation.demand import UNKNOWN, known, placeable
from podium.experiments.listener import SILENT, Listener
from podium.experiments.loading import load_options
from podium.experiments.places import blaming, place_of
from podium.experiments.protocol import Choice, check_order_of
from podium.model import Cluster, Workload
from podium.policies import Policy, load
from podium.policies.registry import RUN
from podium.settings import Settings
from podium.sim import Protocol, Setup
from podium.sim.engine import usual_setup
from podium.traces.catalogue import EMBEDDED, LoadOptions, load_on, load_trace, tolerant
from podium.traces.kubernetes.run_times import without_times
from podium.traces.notes import counted
from podium.traces.trace import Trace


@dataclass(frozen=True, slots=True, eq=False)
class Inputs:
    """What a case is loaded from besides the settings; objects take precedence over references."""

    orders: Path | None = None
    nodes: int | None = None
    pods: int | None = None
    is_skipping_bad: bool = False
    ranks: Any = "shuffled"
    trace: Trace | None = None
    cluster: Trace | None = None
    wanted: tuple[str, ...] = ()  # files of pods that are to be placed beside those of a dump
    waiting: tuple[str, ...] = ()  # gated, suspended: work of a dump that is tried though it waits


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """One loaded simulation, less the policy."""

    cluster: Cluster
    workload: Workload
    protocol: Protocol
    setup: Setup
    notes: tuple[str, ...]
    untried: str = ""  # what of a dump waits for something else than a node, and how to try it


class TraceDigest:
    """Digests what cases are simulated on: nodes, pods and times, whatever file they came from."""

    def __init__(self) -> None:
        self._hasher = hashlib.sha256()

    def add(self, case: Case) -> None:
        """Adds one case to the digest."""
        workload = case.workload
        times = (workload.arrival_s, workload.duration_s)
        for array in (case.cluster.nodes, workload.pods, *(t for t in times if t is not None)):
            self._hasher.update(array.tobytes())
        if workload.bound_to:
            self._hasher.update("\0".join(workload.bound_to).encode())
        if case.protocol.preemption:
            ages = None if workload.age_s is None else workload.age_s.tolist()
            told = (workload.never_preempts, ages, workload.budgets)
            self._hasher.update(repr(told).encode())
            now = [(each.disruptions_allowed, each.disrupted) for each in workload.budgets]
            if workload.is_unready or any(each != (None, ()) for each in now):
                self._hasher.update(repr((workload.is_unready, now)).encode())

    @property
    def digest(self) -> str:
        """Returns the digest of all cases so far, in their order."""
        return self._hasher.hexdigest()


def named_policy(reference: str, where: str, *, is_ignoring_unknown: bool = False) -> Policy:
    """Loads a policy; an error says where it was named, and what to do about the file."""
    with blaming(where, "correct the file, or name another one"):
        if reference.startswith(RUN):
            from podium.experiments.train import trained_policy
            from podium.search.run.found import load_found

            return trained_policy(reference) or load_found(reference)
        return load(reference, ignore_unknown_plugins=is_ignoring_unknown)


def load_case(
    settings: Settings, inputs: Inputs, seed: int | None = None, listener: Listener = SILENT
) -> Case:
    """Loads cluster and workload and chooses protocol and seed; a seed passed here wins.

    Pods of which too little is read are left out: wherever they went, it would be a guess.
    """
    traces = load_traces(settings, inputs, seed, listener)
    return case_of(settings, inputs, [known(trace) for trace in traces], seed)


def load_traces(
    settings: Settings, inputs: Inputs, seed: int | None = None, listener: Listener = SILENT
) -> list[Trace]:
    """Loads what the pods come from, and then the nodes where they come from elsewhere."""

    def follow(name: str, done: int, total: int) -> None:
        listener.progress(f"reading {name}, MiB", done, total)

    options = replace(_options(settings, inputs, seed), follow=follow)
    return _traces(_Sources(settings, inputs), options)


def _options(settings: Settings, inputs: Inputs, seed: int | None) -> LoadOptions:
    options = load_options(
        settings, seed=settings.simulate.seed if seed is None else seed, nodes=inputs.nodes,
        pods=inputs.pods, is_skipping_bad=inputs.is_skipping_bad, wanted=inputs.wanted,
    )  # fmt: skip
    options = replace(options, waiting=inputs.waiting)
    # What is drawn again and again is what a cluster has to do, whatever of it runs just now.
    is_drawn = settings.simulate.protocol == "inflation" and inputs.orders is None
    is_drawn = is_drawn and options.state is None and not inputs.wanted
    return replace(options, state="history") if is_drawn else options


def case_of(
    settings: Settings, inputs: Inputs, traces: list[Trace], seed: int | None = None
) -> Case:
    """Makes a case of loaded traces; without pods there is none."""
    options = _options(settings, inputs, seed)
    cluster = _cluster(traces, options)
    given = _workload(settings, traces)
    workload = _housed(given, cluster)
    left_out = _homeless(len(given) - len(workload))
    experiment = next((trace.experiment for trace in traces if trace.experiment), None)
    choice = Choice(settings, experiment, inputs.orders)
    run_seed = choice.seed() if seed is None else seed
    protocol = choice.protocol(run_seed)
    drawn_notes: tuple[str, ...] = ()
    if options.state == "history" and protocol.name == "inflation":
        drawn = placeable(Trace("", cluster, workload))
        workload, drawn_notes = drawn.workload or workload, drawn.notes
    _require_run_times(workload, protocol)
    if inputs.orders:
        check_order_of(inputs.orders, protocol, cluster, workload)
    with blaming(place_of(settings, "simulate.seed")):
        setup = Setup(
            seed=run_seed, tier=_tier(settings), ranks=inputs.ranks,
            **usual_setup(
                is_of_cluster=any(trace.is_of_cluster for trace in traces),
                demand=settings.simulate.demand, ties=settings.simulate.ties,
            ),
        )  # fmt: skip
    notes = (*_told(traces, protocol), *left_out, *drawn_notes, *_lacks(cluster))
    notes = (*notes, *choice.unused(protocol))
    waiting = traces[0].waiting
    told = f"not tried: {', '.join(traces[0].untried)}: --waiting {waiting}"
    return Case(cluster, workload, protocol, setup, notes, told if waiting else "")


@dataclass(frozen=True, slots=True, eq=False)
class _Sources:
    """Finds trace and cluster: the objects of the inputs, else what the settings name."""

    settings: Settings
    inputs: Inputs

    @property
    def has_cluster(self) -> bool:
        return self.inputs.cluster is not None or self.settings.simulate.cluster is not None

    @property
    def has_own_trace(self) -> bool:
        """Returns whether the user named a trace."""
        is_named = self.settings.origins["simulate.trace"] != "default"
        return self.inputs.trace is not None or is_named

    def trace(self, options: LoadOptions) -> Trace:
        if self.inputs.trace is not None:
            return loaded_already(self.inputs.trace, options)
        return self._loaded("simulate.trace", options)

    def trace_on(self, nodes: Trace, options: LoadOptions) -> list[Trace]:
        """Loads the pods, and gives them back with the nodes on which they are placed."""
        if self.inputs.trace is not None:
            pods = tolerant(loaded_already(self.inputs.trace, options), nodes.cluster)
            return [pods, replace(nodes, workload=None)]
        reference = self.settings.simulate.trace
        with blaming(place_of(self.settings, "simulate.trace")):
            pods, given = load_on(reference, nodes, options)
        return [_named(pods, reference), given]

    def cluster(self, options: LoadOptions) -> Trace:
        if self.inputs.cluster is not None:
            return loaded_already(self.inputs.cluster, options)
        return self._loaded("simulate.cluster", options)

    def _loaded(self, path: str, options: LoadOptions) -> Trace:
        reference = str(getattr(self.settings.simulate, path.partition(".")[2]))
        with blaming(place_of(self.settings, path)):
            return _named(load_trace(reference, options), reference)


def loaded_already(trace: Trace, options: LoadOptions) -> Trace:
    """Gives a trace as it is; what would have to be settled before it is loaded is refused."""
    kinds = ",".join(options.waiting) or None
    for what, count in (("nodes", options.nodes), ("pods", options.pods), ("waiting", kinds)):
        if count is not None:
            raise UsageError(
                f"{what} cannot be set for a trace that is already loaded",
                where=f"argument {what}",
                hint=f"load the trace with {what}={count}, or name it by reference",
            )
    return trace


def _traces(sources: _Sources, options: LoadOptions) -> list[Trace]:
    """Loads the trace, and then the cluster where one is named."""
    if not sources.has_cluster:
        return [sources.trace(options)]
    # Pods of another trace are not those of the cluster, and need none of its labels.
    of_nodes = replace(options, pods=None)
    if sources.has_own_trace:
        of_nodes = replace(of_nodes, state=None, duration=None, wanted=())
    given = sources.cluster(of_nodes)
    if given.cluster is None:
        raise UsageError(
            f"{given.name} contains no nodes",
            where=place_of(sources.settings, "simulate.cluster"),
            hint="give a node list or manifests of nodes; pods go to --trace",
        )
    # A folder of manifests or a simon Config may bring its pods along.
    if given.workload is not None and not sources.has_own_trace:
        return [given if options.pods is None else sources.cluster(options)]
    return sources.trace_on(given, replace(options, nodes=None))


def _named(trace: Trace, reference: str) -> Trace:
    cluster = trace.cluster and replace(trace.cluster, name=reference)
    workload = trace.workload and replace(trace.workload, name=reference)
    return replace(trace, name=reference, cluster=cluster, workload=workload)


def _cluster(traces: list[Trace], options: LoadOptions) -> Cluster:
    given = next((trace.cluster for trace in reversed(traces) if trace.cluster), None)
    return given or _embedded(options)


def _embedded(options: LoadOptions) -> Cluster:
    cluster = load_trace(EMBEDDED, replace(options, pods=1, wanted=())).cluster
    if cluster is None:
        raise RuntimeError("the embedded profile has no nodes")
    return cluster


def _workload(settings: Settings, traces: list[Trace]) -> Workload:
    for trace in traces:
        if trace.workload is not None:
            return trace.workload
    left_out = Counter[str]()
    for trace in traces:
        left_out.update(trace.left_out)
    told = ", ".join(f"{count:,} {what}" for what, count in left_out.items())
    hint = "name a trace that has pods with --trace"
    if left_out["elsewhere"]:
        hint = "--state empty places pods anew that run on other nodes"
    elif traces[0].waiting:
        hint = f"--waiting {traces[0].waiting} tries what waits"
    elif left_out[UNKNOWN]:
        hint = "podium fit says of each what is not known"
    raise UsageError(
        "there are no pods to place" + (f"; left out: {told}" if told else ""),
        where=place_of(settings, "simulate.trace"),
        hint=hint,
    )


def _housed(workload: Workload, cluster: Cluster) -> Workload:
    """Lets pods that run elsewhere stay there: on another cluster, only the others are placed."""
    found = workload.housed(cluster)
    if len(found):
        return found
    raise UsageError(
        f"every pod of {workload.name} runs on a node that {cluster.name} does not have",
        hint="--state empty places them anew",
    )


def _require_run_times(workload: Workload, protocol: Protocol) -> None:
    """Says how pods of a cluster that nothing tells the run times of can be simulated."""
    has_arrivals = bool(workload.namespaces) and workload.arrival_s is not None
    if protocol.name == "replay" and has_arrivals and workload.duration_s is None:
        raise UsageError(
            "not all pods have run times, so they cannot be replayed",
            where=workload.name,
            hint="add --duration 2h, or use --protocol rounds; podium fit needs no run times",
        )


def _homeless(count: int) -> Iterator[str]:
    if count:
        yield f"bound to nodes that the cluster does not have, so left out: {counted(count, 'pod')}"


def _told(traces: list[Trace], protocol: Protocol) -> Iterator[str]:
    """Leaves out what is said about run times where nobody leaves."""
    notes = _notes(traces)
    return notes if protocol.name == "replay" else without_times(notes)


def _notes(traces: list[Trace]) -> Iterator[str]:
    for trace in traces:
        yield from trace.notes
    if not any(trace.cluster for trace in traces):
        yield f"the trace has no nodes: the cluster {EMBEDDED} is used (--cluster changes it)"


def _lacks(cluster: Cluster) -> Iterator[str]:
    if not cluster.gpu_total:
        yield "the cluster has no GPUs that can be modelled: every GPU figure is 0"


def _tier(settings: Settings) -> Any:
    return settings.compile.tier
