"""Lets a real kube-scheduler place the same pods by its defaults, packing, and with Podium."""

from __future__ import annotations

import contextlib
import json
import os
import re
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from podium.errors import MissingError

if TYPE_CHECKING:
    from podium.experiments.case import Inputs
    from podium.kube.local.control_plane import ControlPlane
    from podium.kube.local.daemon import DaemonError
    from podium.kube.local.server import KubeApi
    from podium.model import Cluster
    from podium.model.workload import PodSpec
    from podium.policies import Policy
    from podium.settings import Settings

STOCK, PACKING = "kube-default", "kube-packing"
"""The policies that score as kube-scheduler does: by default, and with the chart's profile."""

ARMS = ("stock", "packing", "podium")
"""The runs: kube-scheduler's defaults, the chart's profile alone, and that with Podium."""

DECISION_S = 30.0
POLL_S = 0.004


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

    def plus(self, pod: PodSpec, gpus: float, *, is_bound: bool) -> Tally:
        """Counts one more pod, and so many GPUs if it is bound."""
        name = class_name(pod)
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

    @property
    def has_parts(self) -> bool:
        """Tells whether pods ask for parts of GPUs, which kube-scheduler does not count."""
        from podium.kube.local.workload import is_part

        return any(map(is_part, self.pods))

    @property
    def classes(self) -> list[str]:
        """Lists the classes of its pods, those that ask for least first."""
        ordered = sorted(self.pods, key=lambda pod: pod.gpu_count * pod.gpu_milli)
        return list(dict.fromkeys(map(class_name, ordered)))

    def as_object(self) -> dict[str, Any]:
        """Describes what was submitted to what as JSON types."""
        return {
            "trace": self.trace,
            "cluster": self.cluster.name,
            "seed": self.seed,
            "policy": self.policy.name,
            "nodes": len(self.cluster),
            "gpus": self.cluster.gpu_total,
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
        for pod, gpus, node in zip(self.pods, self.gpus, places, strict=True):
            tally = tally.plus(pod, gpus, is_bound=bool(node))
        return tally

    @property
    def gpus(self) -> tuple[float, ...]:
        """Lists the GPUs that each pod counts, whichever node it is on."""
        return self.weights or tuple(map(gpus_of, self.pods))


@dataclass(frozen=True, slots=True)
class Outcome:
    """Holds what every run did by its arm, and what the simulator says of the same pods."""

    real: Mapping[str, Tally]
    simulated: Mapping[str, Tally]
    kubeconfig: Path
    notes: tuple[str, ...] = ()

    @property
    def rival(self) -> str:
        """Names the better of the arms without Podium: a gain is one over both."""
        return max(ARMS[:-1], key=lambda arm: self.real[arm].gpus_allocated)

    def as_object(self) -> dict[str, Any]:
        """Describes the outcome as JSON types."""
        return {
            arm: {**_object(self.real[arm]), "simulated": _object(self.simulated[arm])}
            for arm in ARMS
        }


class TryListener:
    """Hears of what happens; this base class ignores it."""

    def status(self, text: str) -> None:
        """Hears what is being done."""

    def decided(self, arm: str, tally: Tally) -> None:
        """Hears of one more pod of a run that was bound or found no room."""


def plan_try(settings: Settings, inputs: Inputs, reference: str, most: int | None) -> TryPlan:
    """Loads nodes and pods: so many pods, or as many as ask for all GPUs together."""
    from podium.errors import UsageError
    from podium.experiments.case import load_case, named_policy
    from podium.experiments.deployment import warnings_of
    from podium.kube.local.workload import first_pods
    from podium.model.records import GPU_MILLI

    policy = named_policy(reference, "--policy")
    case = load_case(settings, inputs)
    workload = case.workload.on(case.cluster)
    weights = tuple((workload.gpu_weight_milli / GPU_MILLI).tolist())
    pods = tuple(first_pods(workload.specs(), weights, case.cluster, most))
    if not case.cluster.gpu_total and most is None:
        raise UsageError("the cluster has no GPUs to fill", hint="say how many pods by --pods")
    gangs = sum(bool(pod.gang) for pod in pods)
    left_out = [f"gangs are left out: {gangs:,} pods are placed one by one"] if gangs else []
    tied = sum(bool(pod.constraints.volumes or pod.constraints.sole_claims) for pod in pods)
    left_out += [f"volumes are left out: {tied:,} pods run on any node"] if tied else []
    return TryPlan(
        case.workload.name, case.setup.seed, case.cluster, pods, policy, reference,
        (*case.notes, *left_out, *policy.notes, *warnings_of([policy])), weights[: len(pods)],
    )  # fmt: skip


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
    simulated = {arm: predicted(plan, policy) for arm, policy in policies.items()}
    try:
        listener.status("starting etcd and kube-apiserver")
        with (
            control_plane(programs) as plane,
            contextlib.closing(KubeApi(plane.access)) as api,
        ):
            yield from _compared(_Runs(plan, plane, api, listener), simulated)
    except DaemonError as error:
        raise _not_started(error) from error


def _compared(runs: _Runs, simulated: Mapping[str, Tally]) -> Iterator[Outcome]:
    runs.create_nodes()
    real = {}
    for arm, scheduler in (("stock", runs.stock_scheduler), ("packing", runs.packing_scheduler)):
        with scheduler():
            real[arm] = runs.submit(arm)
        runs.delete_pods()
    with runs.policy_scheduler() as url:
        real["podium"] = runs.submit("podium")
        notes = tuple(unscored(_metrics(url)))
        yield Outcome(real, simulated, kubeconfig=runs.plane.kubeconfig, notes=notes)


@dataclass(frozen=True, slots=True, eq=False)
class _Runs:
    """Runs schedulers on one control plane, one after the other."""

    plan: TryPlan
    plane: ControlPlane
    api: KubeApi
    listener: TryListener

    def create_nodes(self) -> None:
        from podium.kube.local.workload import node_objects

        self.api.create_all(node_objects(self.plan.cluster))

    def delete_pods(self) -> None:
        from podium.kube.local.server import AT_ONCE
        from podium.kube.local.workload import NAMESPACE

        self.api.ask("DELETE", f"/api/v1/namespaces/{NAMESPACE}/pods", AT_ONCE)

    @contextmanager
    def stock_scheduler(self) -> Iterator[None]:
        """Runs kube-scheduler with its own scores; Podium counts parts of GPUs if there are any."""
        self.listener.status("starting kube-scheduler with its defaults")
        if not self.plan.has_parts:
            with self.plane.scheduler():
                yield
            return
        with (
            self._service(STOCK) as url,
            self.plane.scheduler(_counting(url)),
        ):
            yield

    @contextmanager
    def packing_scheduler(self) -> Iterator[None]:
        """Runs kube-scheduler with the chart's profile alone.

        It does not see parts of GPUs: where there are any, Podium scores in its place, as it would.
        """
        self.listener.status("starting kube-scheduler with the packing profile of the chart")
        if not self.plan.has_parts:
            with self.plane.scheduler(_installed("")):
                yield
            return
        with self._service(PACKING) as url, self.plane.scheduler(_installed(url, _COUNTING)):
            yield

    @contextmanager
    def policy_scheduler(self) -> Iterator[str]:
        """Runs kube-scheduler as the chart installs it with Podium, and gives Podium's address."""
        self.listener.status("starting Podium and kube-scheduler")
        counting = _COUNTING if self.plan.has_parts else {}
        with (
            self._service(self._reference()) as url,
            self.plane.scheduler(_installed(url, counting)),
        ):
            yield url

    def submit(self, arm: str) -> Tally:
        """Submits pods one after the other, each once the last is decided."""
        from podium.kube.local.workload import pod_objects

        tally = Tally()
        plan = self.plan
        for pod, gpus, manifest in zip(plan.pods, plan.gpus, pod_objects(plan.pods), strict=True):
            self.api.create(manifest)
            tally = tally.plus(pod, gpus, is_bound=bool(self._place_of(manifest)))
            self.listener.decided(arm, tally)
        return self.plan.count(self._all_places())

    def _place_of(self, manifest: Mapping[str, Any]) -> str:
        """Waits for a decision, and names the node; empty if there was no room."""
        from podium.kube.local.server import unschedulable

        deadline_s = time.monotonic() + DECISION_S
        while time.monotonic() < deadline_s:
            seen = self.api.get(manifest)
            if seen["spec"].get("nodeName"):
                return str(seen["spec"]["nodeName"])
            # An error on the way, such as a bind that came too late, is tried again.
            if (unschedulable(seen) or "").startswith("Unschedulable:"):
                return ""
            time.sleep(POLL_S)
        raise MissingError(
            f"kube-scheduler has not decided on a pod for {DECISION_S:g} s",
            where=f"pod {manifest['metadata']['name']}",
            hint="the machine may be too busy; try fewer --nodes",
        )

    def _all_places(self) -> list[str]:
        """Looks at all pods again: one that found no room at first may have found some since."""
        from podium.kube.local.workload import pod_objects

        nodes = {each["metadata"]["name"]: each["spec"].get("nodeName") for each in self.api.pods()}
        return [nodes.get(each["metadata"]["name"]) or "" for each in pod_objects(self.plan.pods)]

    def _reference(self) -> str:
        """Names the policy so that the service finds it, which runs in another folder."""
        policy, reference = self.plan.policy, self.plan.reference
        if Path(reference).is_file():
            return str(Path(reference).resolve())
        if policy.source is not None and ":" in reference:
            file = self.plane.folder / "policy.py"
            file.write_text(policy.source.text)
            return str(file)
        return reference

    @contextmanager
    def _service(self, policy: str) -> Iterator[str]:
        """Runs `podium serve` with the extender, and gives its address."""
        from podium.kube.local.daemon import free_ports, running

        (port,) = free_ports(1)
        command: list[str | Path] = [
            *(sys.executable, "-P", "-m", "podium", "serve", "--port", str(port))
        ]
        environ = _environment(self.plane, policy, is_counting=self.plan.has_parts)
        with running(command, self.plane.log("podium"), environ, "podium serve") as daemon:
            daemon.wait_until_ready(port)
            yield f"http://127.0.0.1:{port}"


_NEUTRAL = re.compile(
    r'podium_extender_neutral_total\{reason="(?P<reason>[^"]*)",verb="prioritize"\} (?P<count>\S+)'
)
_COUNTING = {"filterVerb": "filter", "bindVerb": "bind", "ignorable": False}


PATIENCE = "5s"
"""Of kube-scheduler: nobody waits for this cluster, and the machine may be busy."""


def _installed(url: str, verbs: Mapping[str, Any] = MappingProxyType({})) -> dict[str, Any]:
    """Gives the configuration that the chart installs, with more verbs where they are needed."""
    from podium.kube.manifests import scheduler_configuration

    found = scheduler_configuration(url)
    for extender in found.get("extenders", ()):
        extender.update(verbs, httpTimeout=PATIENCE)
    return found


def _counting(url: str) -> dict[str, Any]:
    """Leaves the profile as it is and has Podium count parts of GPUs."""
    extender = {"urlPrefix": f"{url}/extender", "nodeCacheCapable": True, "httpTimeout": PATIENCE}
    return {
        "percentageOfNodesToScore": 100,
        "profiles": [{"schedulerName": "default-scheduler"}],
        "extenders": [{**extender, **_COUNTING}],
    }


def _environment(plane: ControlPlane, policy: str, *, is_counting: bool) -> dict[str, str]:
    """Gives the service its settings; those of the user's own service stay out of it."""
    others = ("PODIUM_SERVE_", "PODIUM_EXTENDER_", "PODIUM_STORE_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(others)}
    return {
        **kept,
        "XDG_CONFIG_HOME": str(plane.folder),
        "PODIUM_STORE_URL": str(plane.folder / "podium.db"),
        "PODIUM_SERVE_HOST": "127.0.0.1",
        "PODIUM_SERVE_COMPONENTS": "extender",
        "PODIUM_EXTENDER_KUBECONFIG": str(plane.kubeconfig),
        "PODIUM_EXTENDER_POLICY": policy,
        "PODIUM_EXTENDER_UNVALIDATED": "true",  # it harms nobody here
        "PODIUM_EXTENDER_FILTER": str(is_counting).lower(),
        "PODIUM_EXTENDER_BIND": str(is_counting).lower(),
    }


def _metrics(url: str) -> str:
    from urllib.request import urlopen

    with urlopen(f"{url}/metrics", timeout=DECISION_S) as reply:
        return str(reply.read().decode())


def unscored(metrics: str) -> Iterator[str]:
    """Notes how often Podium preferred no node, and why; pods are placed all the same then."""
    counts = {match["reason"]: float(match["count"]) for match in _NEUTRAL.finditer(metrics)}
    told = ", ".join(f"{reason} ({count:g} times)" for reason, count in counts.items() if count)
    if told:
        yield f"for some pods Podium gave no scores, and kube-scheduler decided alone: {told}"


def predicted(plan: TryPlan, policy: Policy) -> Tally:
    """Simulates the same objects in the same order, by the rules of the live cluster."""
    from podium.kube.local.workload import node_objects, pod_objects
    from podium.sim import Rounds, Setup, simulate
    from podium.traces.catalogue import load_trace

    pods = pod_objects(plan.pods)
    objects = [*node_objects(plan.cluster), *pods]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "objects.json")
        file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
        trace = load_trace(str(file))
    assert trace.cluster is not None
    assert trace.workload is not None
    protocol = Rounds(max_rounds=1)
    setup = Setup(ranks="listed", demand="seen", ties="profile")
    result = simulate(trace.cluster, trace.workload, policy, protocol, setup)
    names = (name.rpartition("/")[2] for name in result.plan.arrivals.names)
    listed = (*result.plan.cluster.names, "")
    places = (listed[node] for node in result.node.tolist())
    place_of = dict(zip(names, places, strict=True))
    return plan.count(place_of[pod["metadata"]["name"]] for pod in pods)


def class_name(pod: PodSpec) -> str:
    """Names the class of a pod: the GPUs that it asks for."""
    from podium.kube.local.workload import is_part

    if not pod.gpu_count:
        return "no GPU"
    if is_part(pod):
        return "part of a GPU"
    return "1 GPU" if pod.gpu_count == 1 else f"{pod.gpu_count} GPUs"


def gpus_of(pod: PodSpec) -> float:
    """Sums the GPUs that a pod asks for; 0.5 is half of one."""
    from podium.model.records import GPU_MILLI

    return pod.gpu_count * pod.gpu_milli / GPU_MILLI


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
