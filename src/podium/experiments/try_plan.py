"""Says what a real kube-scheduler is given to place: nodes, pods that run there, and others."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from podium.errors import UndecidedError, UsageError
from podium.evaluation.demand import NOT_KNOWN
from podium.traces.notes import counted

if TYPE_CHECKING:
    from podium.experiments.case import Case, Inputs
    from podium.model import Cluster
    from podium.model.workload import PodSpec
    from podium.policies import Policy
    from podium.settings import Settings


STOCK, PACKING = "kube-default", "kube-packing"
"""The policies that score as kube-scheduler does: by default, and with the chart's profile."""

_Weighed = tuple["PodSpec", float, str]
"""A pod with the GPUs that it counts, and the name of its class."""

ARMS = ("stock", "packing", "podium")
"""The runs: kube-scheduler's defaults, the chart's profile alone, and that with Podium."""


@dataclass(frozen=True, slots=True)
class Tally:
    """Counts what became of pods, also by GPUs: the fewest cards that each takes on any node."""

    submitted: int = 0
    bound: int = 0
    gpus_allocated: float = 0.0
    by_class: Mapping[str, tuple[int, int]] = field(default_factory=dict)  # submitted and bound

    @property
    def no_room(self) -> int:
        """Counts the pods that no node could take."""
        return self.submitted - self.bound

    def plus(self, name: str, gpus: float, *, is_bound: bool) -> Tally:
        """Counts one more pod of a class, and so many GPUs if it is bound."""
        submitted, bound = self.by_class.get(name, (0, 0))
        return Tally(
            self.submitted + 1,
            self.bound + is_bound,
            self.gpus_allocated + gpus * is_bound,
            {**self.by_class, name: (submitted + 1, bound + is_bound)},
        )


@dataclass(frozen=True, eq=False)
class TryPlan:
    """Is what all runs have in common, and the policy of the last."""

    trace: str
    seed: int
    cluster: Cluster
    pods: tuple[PodSpec, ...]
    policy: Policy
    reference: str  # by which the policy was named
    notes: tuple[str, ...] = ()
    weights: tuple[float, ...] = ()  # GPUs that each pod counts, wherever it runs; or as asked for
    names: tuple[str, ...] = ()  # of the class of each pod; or by its GPUs
    running: tuple[PodSpec, ...] = ()  # pods that stay where they run
    gpus_running: float = 0.0  # that they count
    rest: int = 0  # pods that might have been tried as well
    is_in_place: bool = False  # those that run would be placed anew if somebody asked for it
    untried: str = ""  # what waits for something else than a node, and how to try it

    @property
    def has_parts(self) -> bool:
        """Tells whether pods ask for parts of GPUs, which kube-scheduler does not count."""
        from podium.kube.local.workload import is_part

        return any(map(is_part, (*self.running, *self.pods)))

    @property
    def more(self) -> str:
        """Says how more pods would be tried."""
        if self.is_in_place:
            return f"{staying(len(self.running))}; --state empty places them anew"
        if self.rest:
            return f"--pods {len(self.pods) + self.rest} tries all pods"
        return "podium compare --protocol inflation draws more pods like these"

    @property
    def gpus_free(self) -> float:
        """Sums the GPUs of the cluster less those of the pods that stay where they run."""
        return self.cluster.gpu_total - self.gpus_running

    @property
    def classes(self) -> list[str]:
        """Lists the classes of its pods, those that ask for least first."""
        named = zip(map(gpus_of, self.pods), self.class_names, strict=True)
        ordered = sorted(named, key=itemgetter(0))
        return list(dict.fromkeys(name for _, name in ordered))

    @property
    def class_names(self) -> tuple[str, ...]:
        """Names the class of each pod."""
        return self.names or tuple(map(class_name, self.pods))

    def as_object(self) -> dict[str, Any]:
        """Describes what was submitted to what as JSON types."""
        return {
            "trace": self.trace,
            "cluster": self.cluster.name,
            "seed": self.seed,
            "policy": self.policy.name,
            "nodes": len(self.cluster),
            "gpus": self.cluster.gpu_total,
            "bound": len(self.running),
            "pods": len(self.pods),
            "has_parts": self.has_parts,
        }

    @property
    def asked(self) -> Tally:
        """Counts all pods as if they were bound."""
        return self.count("bound" for _ in self.pods)

    def count(self, places: Iterable[str]) -> Tally:
        """Counts all pods, in their order, by the names of their nodes; empty: not bound."""
        tally = Tally()
        for name, gpus, node in zip(self.class_names, self.gpus, places, strict=True):
            tally = tally.plus(name, gpus, is_bound=bool(node))
        return tally

    @property
    def gpus(self) -> tuple[float, ...]:
        """Lists the GPUs that each pod counts, whichever node it is on."""
        return self.weights or tuple(map(gpus_of, self.pods))


def plan_try(settings: Settings, inputs: Inputs, reference: str, most: int | None) -> TryPlan:
    """Loads nodes and pods, and chooses those that are tried.

    All that wait in a dump are; of a trace, as many as ask for all GPUs together.
    """
    from podium.experiments.case import load_case, named_policy
    from podium.experiments.deployment import warnings_of

    policy = named_policy(reference, "--policy")
    case = load_case(settings, inputs)
    running, waiting, tied = _sorted(case)
    tried = waiting[:most]
    if most is None and not _is_dump(settings, case):
        tried = waiting[: _filling(case.cluster, [gpus for _, gpus, _ in waiting])]
    pods = tuple(pod for pod, _, _ in tried)
    notes = [*case.notes, *_left_out(pods, len(waiting), most), *tied, *policy.notes]
    return TryPlan(
        case.workload.name, case.setup.seed, case.cluster, pods, policy, reference,
        (*notes, *warnings_of([policy])), tuple(gpus for _, gpus, _ in tried),
        tuple(name for _, _, name in tried),
        tuple(pod for pod, _, _ in running), sum(gpus for _, gpus, _ in running),
        len(waiting) - len(pods),
        bool(running) and settings.simulate.state in (None, "now"), case.untried,
    )  # fmt: skip


def _sorted(case: Case) -> tuple[list[_Weighed], list[_Weighed], list[str]]:
    """Gives the pods that run, and those that wait, the first to come first.

    Pods that volumes tie to nodes would run on any node here: they are left out with a note.
    """
    from podium.experiments.asked import asked_words
    from podium.kube.local.workload import node_names
    from podium.model.records import GPU_MILLI

    workload = case.workload.on(case.cluster)
    weights = (workload.gpu_weight_milli / GPU_MILLI).tolist()
    words = [asked_words(case.cluster, workload, pod) for pod in range(len(workload))]
    specs = workload.specs()
    named = [class_name(pod, asked) for pod, asked in zip(specs, words, strict=True)]
    both = list(zip(specs, weights, named, strict=True))
    written = dict(zip(case.cluster.names, node_names(case.cluster), strict=True))
    running = [(replace(pod, node=written[pod.node]), *rest) for pod, *rest in both if pod.node]
    pending = [each for each in both if not each[0].node]
    waiting = [each for each in pending if not _is_tied(each[0])]
    count = len(pending) - len(waiting)
    tied = [f"tied to volumes, which are not made here, so left out: {counted(count, 'pod')}"]
    tied = tied if count else []
    if not waiting:
        told = [case.untried] if case.untried else []
        left_out = [*tied, *(note for note in case.notes if note.startswith(NOT_KNOWN))]
        told += left_out
        raise UndecidedError(
            "no pod waits that can be tried"
            if left_out
            else "no pod waits, so there is nothing to try",
            where=workload.name,
            hint="; ".join((f"{staying(len(running))}; --state empty places them anew", *told)),
        )
    return running, sorted(waiting, key=lambda each: each[0].arrival_s or 0.0), tied


def _is_tied(pod: PodSpec) -> bool:
    return bool(pod.constraints.volumes or pod.constraints.sole_claims)


def staying(count: int) -> str:
    """Says that pods keep their nodes."""
    told = (
        "runs already and stays where it is"
        if count == 1
        else "run already and stay where they are"
    )
    return f"{counted(count, 'pod')} {told}"


def _is_dump(settings: Settings, case: Case) -> bool:
    """Tells whether the pods are those that a cluster has now; a history has too many."""
    return bool(case.workload.namespaces) and settings.simulate.state != "history"


def _filling(cluster: Cluster, gpus: Iterable[float]) -> int:
    """Counts the first pods that ask for all GPUs of the cluster together."""
    if not cluster.gpu_total:
        raise UsageError("the cluster has no GPUs to fill", hint="say how many pods by --pods")
    asked = list(accumulate(gpus))
    return bisect_left(asked, cluster.gpu_total) + 1


def _left_out(pods: Sequence[PodSpec], total: int, most: int | None) -> Iterator[str]:
    """Says which pods are not tried, and what of those that are is not."""
    rest = total - len(pods)
    if rest:
        why = "as --pods says" if most is not None else "as those before them ask for all GPUs"
        yield f"left out, {why}: {rest:,} pod{'' if rest == 1 else 's'} (--pods {total} tries all)"
    gangs = sum(bool(pod.gang) for pod in pods)
    if gangs:
        yield f"gangs are left out: {gangs:,} pods are placed one by one"


def class_name(pod: PodSpec, asked: str = "") -> str:
    """Names the class of a pod: the GPUs that it asks for, or what of them in words."""
    from podium.kube.local.workload import is_part

    if is_part(pod):
        return "part of a GPU"
    if asked or not pod.gpu_count:
        return asked or "no GPU"
    return "1 GPU" if pod.gpu_count == 1 else f"{pod.gpu_count} GPUs"


def gpus_of(pod: PodSpec) -> float:
    """Sums the GPUs that a pod asks for; 0.5 is half of one."""
    from podium.model.records import GPU_MILLI

    return pod.gpu_count * pod.gpu_milli / GPU_MILLI
