"""Tells whether the pending pods of a cluster fit, and where; or what keeps them from it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from podium.errors import UsageError
from podium.experiments.asked import asked_gpus, asked_words
from podium.experiments.listener import SILENT, Listener, Notes
from podium.files.excerpt import escaped
from podium.files.html import html_table
from podium.traces.kubernetes.contest import CONTESTED
from podium.traces.kubernetes.run_times import without_times

if TYPE_CHECKING:
    from podium.experiments.case import Case, Inputs
    from podium.model.cluster import NodeSpec
    from podium.policies import Policy
    from podium.settings import Settings
    from podium.sim import Result
    from podium.traces.trace import Doubt, Trace

DEFAULT_POLICY = "kube-default"
"""Answers what would happen today, unless a policy is chosen: clusters run kube-scheduler."""

MOST_EXPLANATIONS = 10
MOST_ROWS = 40
"""Pods that have a row each; of more, those with the same request and answer share one."""

PREEMPTION = "preemption"
"""Stands where a reason does for a pod that fits if others leave."""

UNKNOWN = "not known"
"""Stands where a reason does for a pod that a node might take of which too little is known."""

_ONE_FITS = "the pending pod fits"
TITLES = ("pod", "GPUs", "node", "reason")


@dataclass(frozen=True, slots=True)
class PodFit:
    """Says of one pending pod where it would run, or why nowhere."""

    namespace: str
    name: str
    gpus: float  # asked for; 0.5 is half of one
    node: str  # empty if no node takes it
    gpu_slots: tuple[int, ...]  # on that node
    reason: str  # the one that counts most, in a word: gpu, taint, gang; empty if it fits
    message: str  # the same in a sentence, with the number of nodes
    would_fit_empty: bool  # a node would take it if nothing ran there
    asked: str = ""  # the same as gpus, in the unit of the request: 8,000 MiB, 2 replicas
    evicts: tuple[str, ...] = ()  # pods of lower priority that have to leave for it

    @property
    def fits(self) -> bool:
        """Tells whether a node takes it."""
        return bool(self.node)

    @property
    def full_name(self) -> str:
        """Names the pod with its namespace."""
        return f"{self.namespace}/{self.name}"

    def as_object(self) -> dict[str, Any]:
        """Describes the pod as JSON types."""
        described = asdict(self) | {"fits": self.fits}
        del described["asked"]  # numbers are in `gpus`
        return described


@dataclass(frozen=True, slots=True)
class Evicted:
    """Says of one pod that has to leave for whom, and whether another node takes it."""

    pod: str  # with its namespace
    node: str  # that it leaves
    preemptor: str
    moves_to: str  # empty if no node takes it


@dataclass(frozen=True, slots=True)
class Fit:
    """Answers whether all pending pods fit, pod by pod."""

    trace: str
    cluster: str
    policy: str
    bound: int  # pods that run already and stay where they are
    pods: tuple[PodFit, ...]  # that are pending, in the order in which they are offered
    notes: tuple[str, ...] = ()
    gaps: tuple[str, ...] = ()  # what is not known of pods, in a sentence each
    untried: tuple[str, ...] = ()  # what waits for something else than a node, in words
    waiting: str = ""  # the kinds of that: gated,suspended
    evicted: tuple[Evicted, ...] | None = None  # with preemption: who has to leave
    has_wanted: bool = False  # somebody named pods beside those of the dump

    @property
    def is_yes(self) -> bool:
        """Tells whether all of them fit, and none is unknown."""
        return all(pod.fits for pod in self.pods) and not self.gaps

    @property
    def reasons(self) -> dict[str, int]:
        """Counts the pods that do not fit by reason, the commonest first."""
        return dict(Counter(pod.reason for pod in self.pods if not pod.fits).most_common())

    @property
    def summary(self) -> str:
        """Answers in one line."""
        return "; ".join((self._verdict, *self._waiting, *self._price, *self.gaps))

    @property
    def _waiting(self) -> Iterator[str]:
        if self.untried:
            yield f"{', '.join(self.untried)}: --waiting {self.waiting}"

    @property
    def _price(self) -> Iterator[str]:
        if self.evicted:
            count, lost = len(self.evicted), sum(not each.moves_to for each in self.evicted)
            told = f"{count:,} pod{'' if count == 1 else 's'} of lower priority would be evicted"
            if count == lost == 1:
                told += " and finds no other node"
            elif lost:
                told += f"; {lost:,} of them {'finds' if lost == 1 else 'find'} no other node"
            yield told

    @property
    def _verdict(self) -> str:
        if not self.pods:
            is_there = self.has_wanted and not self.gaps
            told = ": the dump has all pods that --pods names already"
            return f"no pod is pending{told if is_there else ''}"
        counts = self.reasons
        total, unknown = len(self.pods), counts.pop(UNKNOWN, 0)
        refused = sum(counts.values())
        if total == unknown == 1:
            return "it is not known whether the pending pod fits"
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in counts.items())
        if total == 1:
            return f"the pending pod does not fit: {reasons[2:]}" if refused else _ONE_FITS
        if self.is_yes:
            return f"all {total:,} pending pods fit"
        told = f"{total - refused - unknown:,} of {total:,} pending pods fit"
        verb = "does" if refused == 1 else "do"
        told += f"; {refused:,} {verb} not: {reasons}" if refused else ""
        return f"{told}; of {unknown:,} it is not known" if unknown else told

    def as_object(self) -> dict[str, Any]:
        """Describes the answer as JSON types."""
        return {
            "trace": self.trace,
            "cluster": self.cluster,
            "policy": self.policy,
            "fits": self.is_yes,
            "bound": self.bound,
            "pending": len(self.pods),
            "fitting": sum(pod.fits for pod in self.pods),
            "reasons": self.reasons,
            "pods": [self._described(pod) for pod in self.pods],
            **self._evicted_objects,
            "untried": list(self.untried),
            "notes": list(self.notes),
        }

    @property
    def _evicted_objects(self) -> dict[str, Any]:
        return {} if self.evicted is None else {"evicted": [asdict(each) for each in self.evicted]}

    def _described(self, pod: PodFit) -> dict[str, Any]:
        found = pod.as_object()
        if self.evicted is None:
            del found["evicts"]
        return found

    def rows(self) -> list[tuple[object, ...]]:
        """Gives the cells of a table, by `TITLES`; of many pods those alike share a row."""
        groups: dict[object, list[PodFit]] = {}
        for number, pod in enumerate(self.pods):
            alike = (pod.namespace, _asked_for(pod), pod.reason or _means(pod), pod.message)
            key = number if len(self.pods) <= MOST_ROWS else alike
            groups.setdefault(key, []).append(pod)
        return [_row(alike) for alike in groups.values()]

    def explanations(self) -> list[str]:
        """Says in a sentence each what keeps pods from running, the commonest first."""
        told = Counter((pod.reason, pod.message) for pod in self.pods if not pod.fits)
        lines = [
            f"{reason} ({count:,} pod{'' if count == 1 else 's'}): {message}"
            for (reason, message), count in told.most_common(MOST_EXPLANATIONS)
        ]
        lines += [
            f"{PREEMPTION}: {pod.full_name} {pod.message}"
            for pod in [pod for pod in self.pods if pod.evicts][:MOST_EXPLANATIONS]
        ]
        others = len(told) + sum(bool(pod.evicts) for pod in self.pods) - len(lines)
        return [*lines, f"... and {others:,} more; --json lists them all"] if others else lines

    def __repr__(self) -> str:
        return f"<Fit on {escaped(self.cluster)} by {escaped(self.policy)}: {self.summary}>"

    def _repr_html_(self) -> str:
        """Shows the answer in a notebook."""
        return html_table(f"{self.cluster}: {self.summary}", TITLES, self.rows())


def _row(alike: list[PodFit]) -> tuple[object, ...]:
    first, others = alike[0], len(alike) - 1
    nodes = {pod.node for pod in alike}
    return (
        first.full_name + (f" and {others:,} like it" if others else ""),
        _asked_for(first),
        f"{len(nodes):,} nodes" if len(nodes) > 1 else first.node or None,
        first.reason or _means(first),
    )


def _asked_for(pod: PodFit) -> str:
    return pod.asked or f"{pod.gpus:,.3f}".rstrip("0").rstrip(".")


def _means(pod: PodFit) -> str | None:
    return PREEMPTION if pod.evicts else None


def chosen_policy(settings: Settings) -> str:
    """Names the policy that decides: the one that somebody chose, else kube-scheduler's."""
    is_free = settings.origins["simulate.policy"] == "default"
    return DEFAULT_POLICY if is_free else settings.simulate.policy


def fit(settings: Settings, inputs: Inputs, policy: Policy, listener: Listener = SILENT) -> Fit:
    """Offers the pending pods of a dump to the cluster as it is now, and says what comes of it.

    The settings choose the protocol, which has to be rounds: nobody leaves while pods are placed.
    """
    from podium.experiments.case import case_of, load_traces
    from podium.experiments.simulate import run_case
    from podium.experiments.volume_contest import run_contest
    from podium.traces.kubernetes.contest import pod_name

    traces = load_traces(settings, inputs, listener=listener)
    if all(trace.workload is None for trace in traces):
        return _nothing_pending(traces, policy, listener)
    case = case_of(settings, inputs, traces)
    _require_nodes(settings, inputs, case)
    told = Notes(listener)
    listed = (note for note in case.notes if not note.startswith(CONTESTED))
    notes = (*without_times(listed), *policy.notes)
    told.add(notes)
    contest = traces[0].contest
    result, doubts = (
        run_contest(case, contest, policy, listener)
        if contest
        else (run_case(case, policy, listener), {})
    )
    has_preemption = result.evictions is not None
    unsimulated = tuple(_leaving(result) if has_preemption else _preemption(result))
    told.add(unsimulated)
    pending = range(len(result.plan.bound), len(result.status))
    lost = next((trace.lost for trace in reversed(traces) if trace.lost), ())
    return Fit(
        trace=case.workload.name,
        cluster=case.cluster.name,
        policy=policy.name,
        bound=len(result.plan.bound),
        pods=tuple(
            _if_sure(
                _if_known(_pod_fit(result, pod), result, pod, lost),
                doubts.get(pod),
                traces[0].doubts.get(pod_name(result.plan.arrivals, pod)),
            )
            for pod in pending
        ),
        notes=(*notes, *unsimulated),
        gaps=traces[0].gaps,
        untried=traces[0].untried,
        waiting=traces[0].waiting,
        evicted=tuple(_evicted(result)) if has_preemption else None,
        has_wanted=bool(inputs.wanted),
    )


def _evicted(result: Result) -> Iterator[Evicted]:
    """Lists who had to leave a node, the first to leave first."""
    from podium.sim.result import PLACED

    names, found = result.plan.cluster.names, result.evictions
    if found is None:
        return
    rows = zip(result.evicted, found.node, found.preemptor, strict=True)
    for pod, node, preemptor in rows:
        yield Evicted(
            pod=_full_name(result, int(pod)),
            node=names[node],
            preemptor=_full_name(result, int(preemptor)),
            moves_to=names[result.node[pod]] if result.status[pod] == PLACED else "",
        )


def _full_name(result: Result, pod: int) -> str:
    arrivals = result.plan.arrivals
    namespace = arrivals.namespaces[pod] if arrivals.namespaces else ""
    return f"{namespace or 'default'}/{arrivals.names[pod].rpartition('/')[2]}"


def _nothing_pending(traces: list[Trace], policy: Policy, listener: Listener) -> Fit:
    """Answers for nodes alone, and for pods that all wait for something else than a node."""
    listed = (note for trace in traces for note in trace.notes)
    notes = (*without_times(listed), *policy.notes)
    Notes(listener).add(notes)
    return Fit(
        trace=traces[0].name,
        cluster=traces[-1].name,
        policy=policy.name,
        bound=0,
        pods=(),
        notes=notes,
        gaps=traces[0].gaps,
        untried=traces[0].untried,
        waiting=traces[0].waiting,
    )


def _preemption(result: Result) -> Iterator[str]:
    """Warns where kube-scheduler might evict pods that run for one that does not fit."""
    from podium.sim.result import PLACED

    priority, bound = result.plan.arrivals.pods["priority"], len(result.plan.bound)
    refused = priority[bound:][result.status[bound:] != PLACED]
    count = int((refused > priority[:bound].min()).sum()) if bound else 0
    if count:
        pods = (
            "1 pod that does not fit has" if count == 1 else f"{count:,} pods that do not fit have"
        )
        told = f"preemption is not simulated: {pods} a higher priority than pods that run"
        yield f"{told}; --preemption says which of them would have to leave"


def _leaving(result: Result) -> Iterator[str]:
    """Says of victims that they are being deleted anyway: their room comes without an eviction."""
    flags = result.plan.arrivals.is_terminating
    pods = {pod for pod in result.evicted.tolist() if pod < len(result.plan.bound)}
    count = sum(flags[pod] for pod in pods) if flags else 0
    if count:
        are = "pod that would be evicted is" if count == 1 else "pods that would be evicted are"
        yield f"{count:,} {are} being deleted already, and kube-scheduler may wait for that"


def _require_nodes(settings: Settings, inputs: Inputs, case: Case) -> None:
    """Refuses to answer for a cluster that nobody named."""
    from podium.traces.catalogue import EMBEDDED

    is_named = settings.simulate.cluster is not None or inputs.cluster is not None
    if case.cluster.name == EMBEDDED and case.workload.name != EMBEDDED and not is_named:
        raise UsageError(
            f"{case.workload.name} has no nodes",
            hint="dump them as well: kubectl get nodes,pods -A -o yaml; or name them by --cluster",
        )


def _pod_fit(result: Result, pod: int) -> PodFit:
    from podium.model.records import GPU_MILLI
    from podium.sim.result import slots_of

    arrivals = result.plan.arrivals
    namespace = arrivals.namespaces[pod] if arrivals.namespaces else ""
    count, milli = asked_gpus(arrivals, pod)
    refusal = result.refusal(pod)
    evicts = tuple(_full_name(result, other) for other in result.evicted_for(pod).tolist())
    node = "" if refusal else result.plan.cluster.names[result.node[pod]]
    return PodFit(
        namespace=namespace or "default",
        name=arrivals.names[pod].rpartition("/")[2],
        gpus=count * milli / GPU_MILLI,
        node=node,
        gpu_slots=slots_of(int(result.slots[pod])),
        reason=refusal.reason if refusal else "",
        message=refusal.message if refusal else _if_others_leave(node, evicts),
        would_fit_empty=refusal is None or refusal.would_fit_empty,
        asked=asked_words(result.plan.cluster, arrivals, pod, int(result.node[pod])),
        evicts=evicts,
    )


def _if_known(found: PodFit, result: Result, pod: int, lost: Sequence[NodeSpec]) -> PodFit:
    """Takes back a no where a node might take the pod that could not be modelled."""
    from podium.model.constraints import UNCONSTRAINED
    from podium.traces.notes import some

    arrivals = result.plan.arrivals
    record = arrivals.pods[pod]
    constraints = arrivals.constraints[pod] if arrivals.constraints else UNCONSTRAINED
    names = [
        node.name
        for node in (() if found.fits else lost)
        if constraints.selects_node(node.name, node.labels)
        and constraints.tolerates(node.taints)
        and record["cpu_milli"] <= node.cpu_milli
        and record["memory_mib"] <= node.memory_mib
    ]
    if not names:
        return found
    nodes = f"node {names[0]} is" if len(names) == 1 else f"nodes {some(names)} are"
    message = f"{nodes} left out and might take it; {found.message}"
    return replace(found, reason=UNKNOWN, message=message)


def _if_sure(found: PodFit, why: str | None, doubt: Doubt | None) -> PodFit:
    """Takes an answer back that may be wrong."""
    if why is None and doubt is not None and doubt.is_of_yes == found.fits:
        why = doubt.text
    if why is None:
        return found
    return replace(found, node="", gpu_slots=(), reason=UNKNOWN, message=why, evicts=())


def _if_others_leave(node: str, evicts: tuple[str, ...]) -> str:
    if not evicts:
        return ""
    pods = "1 pod of lower priority leaves" if len(evicts) == 1 else (
        f"{len(evicts):,} pods of lower priority leave"
    )  # fmt: skip
    rest = len(evicts) - MOST_EXPLANATIONS
    named = ", ".join(evicts[:MOST_EXPLANATIONS]) + (f" and {rest:,} more" if rest > 0 else "")
    return f"fits on node {node} if {pods}: {named}"
