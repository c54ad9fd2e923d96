"""Asks the real kube-scheduler which nodes a pod may run on.

No call of its API says so, but it tells an extender: the filter verb receives the nodes that
passed every plugin. This extender takes none of them, so that the pod is bound nowhere. Where no
node passed, the extender is not called, and the condition PodScheduled says why.
"""

from __future__ import annotations

import itertools
import json
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from support.control_plane import ControlPlane
from support.kube_api import KubeApi, Manifest, unschedulable
from support.manifests import bound, claim, claim_volumes, node, pod, storage_class, volume

SCHEDULER = "feasibility"
ANSWER_S = 120.0
POLL_S = 0.01
# One node more than the world has: a pod that only it takes shows that the scheduler has seen all
# that was written before. It has no label but WORLD, so it is in nobody's topology.
SENTINEL = "feasibility-sentinel"
WORLD = "podium.dev/world"
# Of all oracles: what one has left behind must not look like the world of the next.
WORLDS = itertools.count()

# Written at once: where the body follows its headers, it waits 40 ms for them to be acknowledged.
NONE_PASSES = (
    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 16\r\n\r\n"
    b'{"NodeNames":[]}'
)


@dataclass(frozen=True)
class Verdict:
    """Says where a pod may run; the scheduler's message, where it may run nowhere."""

    nodes: frozenset[str]
    message: str = ""


class Extender:
    """Notes which nodes passed for which pod, by UID, and lets none pass."""

    def __init__(self) -> None:
        self.nodes: dict[str, frozenset[str]] = {}
        self.changed = threading.Condition()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                outer.note(asked["Pod"]["metadata"]["uid"], asked["NodeNames"])
                self.wfile.write(NONE_PASSES)

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True

    @contextmanager
    def serving(self) -> Iterator[None]:
        """Answers for as long as the block."""
        thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        thread.start()
        try:
            yield
        finally:
            self.server.shutdown()
            self.server.server_close()
            thread.join()

    def note(self, uid: str, names: Sequence[str]) -> None:
        with self.changed:
            self.nodes.setdefault(uid, frozenset(names))
            self.changed.notify_all()

    def wait_for(self, uids: set[str], timeout_s: float) -> None:
        """Waits until all of some pods are noted, but no longer than that."""
        with self.changed:
            self.changed.wait_for(lambda: uids <= self.nodes.keys(), timeout_s)

    def configuration(self) -> dict[str, Any]:
        """Writes the configuration of a scheduler that tells everything and moves nothing."""
        extender = {
            "urlPrefix": f"http://127.0.0.1:{self.server.server_address[1]}",
            "filterVerb": "filter",
            "nodeCacheCapable": True,
        }
        plugins = {"postFilter": {"disabled": [{"name": "DefaultPreemption"}]}}
        return {
            "percentageOfNodesToScore": 100,
            "profiles": [{"schedulerName": SCHEDULER, "plugins": plugins}],
            "extenders": [extender],
        }


class FeasibilityOracle:
    """Builds one world after another and asks the scheduler about pods in it."""

    def __init__(self, api: KubeApi, extender: Extender) -> None:
        self._api, self._extender = api, extender
        self._namespaces: dict[str, dict[str, str]] = {}
        self._sentinel_node = node(SENTINEL, taints=[{"key": WORLD, "effect": "NoSchedule"}])
        self._sentinel_node["metadata"]["labels"] = {WORLD: "none"}
        self._sentinel_namespace = namespace(SENTINEL, {})

    def feasible_nodes(self, pending: Manifest, cluster: Sequence[Manifest]) -> set[str]:
        """Names the nodes that pass every filter for one pod."""
        (verdict,) = self.verdicts([pending], cluster)
        return set(verdict.nodes)

    def verdicts(self, pending: Sequence[Manifest], cluster: Sequence[Manifest]) -> list[Verdict]:
        """Judges each pod in a cluster of nodes, bound pods and labelled namespaces.

        None of the pods takes room from another. The cluster is gone afterwards.
        """
        try:
            self._build(cluster, {namespace_of(each) for each in (*pending, *cluster)})
            return self._judged(pending)
        finally:
            self._api.clear(kept_nodes=[SENTINEL], kept_namespaces=[SENTINEL])
            if any(map(is_volume, cluster)):
                self._api.clear_volumes()

    def prepare(self) -> None:
        """Makes what stays through all worlds."""
        for each in self._api.namespaces():
            self._namespaces[each["metadata"]["name"]] = each["metadata"]["labels"]
        self._label_namespaces({SENTINEL: {}})
        self._api.create(self._sentinel_node)
        resident = pod(SENTINEL, labels={WORLD: "resident"}, namespace=SENTINEL)
        self._api.create(bound(resident, SENTINEL))

    def _build(self, cluster: Sequence[Manifest], namespaces: set[str]) -> None:
        unbound = [each for each in cluster if is_unbound(each)]
        if unbound:
            raise ValueError(f"pod {unbound[0]['metadata']['name']} of the cluster has no nodeName")
        wanted: dict[str, dict[str, str]] = {name: {} for name in {*self._namespaces, *namespaces}}
        for each in cluster:
            if each["kind"] == "Namespace":
                wanted[each["metadata"]["name"]] = each["metadata"].get("labels", {})
        self._label_namespaces(wanted)
        self._api.create_all(each for each in cluster if each["kind"] != "Namespace")
        world = f"world-{next(WORLDS)}"
        volumes = sentinel_volumes(world) if any(map(is_volume, cluster)) else []
        self._api.create_all(volumes)
        self._wait_until_seen(world, claims_of(volumes))

    def _label_namespaces(self, wanted: Mapping[str, dict[str, str]]) -> None:
        """Gives each namespace its labels; to delete one, a controller would be needed."""
        for name, labels in wanted.items():
            if self._namespaces.get(name) == labels:
                continue
            if name in self._namespaces:
                self._api.replace(namespace(name, labels))
            else:
                self._api.create(namespace(name, labels))
            self._namespaces[name] = labels

    def _wait_until_seen(self, world: str, claims: Sequence[str]) -> None:
        """Waits until the scheduler has seen every node, namespace and pod so far.

        It watches each kind in the order of changes. The last change of a node and of a namespace
        is a label; a pod that needs both, created last, passes once all else has been seen. Where
        there are volumes, it needs the last of those, too.
        """
        change = {"metadata": {"labels": {WORLD: world}}}
        self._api.patch(self._sentinel_node, change)
        self._api.patch(self._sentinel_namespace, change)
        deadline = time.monotonic() + ANSWER_S
        for attempt in itertools.count():
            asking = probe(f"{world}-{attempt}", world, claims)
            (verdict,) = self._asked([asking])
            self._api.delete(asking)
            if SENTINEL in verdict.nodes:
                return
            if time.monotonic() > deadline:
                raise TimeoutError(f"the scheduler does not see {world}: {verdict.message}")

    def _judged(self, pending: Sequence[Manifest]) -> list[Verdict]:
        return [
            Verdict(verdict.nodes - {SENTINEL}, verdict.message) for verdict in self._asked(pending)
        ]

    def _asked(self, pending: Sequence[Manifest]) -> list[Verdict]:
        """Creates pods and collects what the scheduler says of each."""
        made = self._api.create_all(for_oracle(manifest) for manifest in pending)
        uids = [each["metadata"]["uid"] for each in made]
        namespaces = {namespace_of(each) for each in made}
        messages: dict[str, str] = {}
        deadline = time.monotonic() + ANSWER_S
        while missing := {*uids} - self._extender.nodes.keys() - messages.keys():
            if time.monotonic() > deadline:
                raise TimeoutError(f"the scheduler said nothing of {len(missing)} pods")
            self._extender.wait_for(missing, POLL_S)
            if not missing <= self._extender.nodes.keys():
                messages |= self._messages(namespaces)
        return [self._verdict(uid, messages) for uid in uids]

    def _messages(self, namespaces: set[str]) -> dict[str, str]:
        """Reads what the scheduler says of pods that it found no node for, by UID."""
        pods = [each for name in namespaces for each in self._api.pods(name)]
        return {each["metadata"]["uid"]: text for each in pods if (text := unschedulable(each))}

    def _verdict(self, uid: str, messages: Mapping[str, str]) -> Verdict:
        # The condition of a pod that the extender refused comes after the extender's call.
        if uid in self._extender.nodes:
            return Verdict(self._extender.nodes.pop(uid))
        if messages[uid].startswith("SchedulerError"):
            raise RuntimeError(messages[uid])
        return Verdict(frozenset(), messages[uid])


@contextmanager
def feasibility_oracle(plane: ControlPlane) -> Iterator[FeasibilityOracle]:
    """Runs a scheduler of its own beside others; the cluster must hold nothing else meanwhile."""
    extender = Extender()
    with extender.serving(), plane.scheduler(extender.configuration()):
        oracle = FeasibilityOracle(plane.api, extender)
        try:
            oracle.prepare()
            yield oracle
        finally:
            plane.api.clear()


def is_volume(manifest: Manifest) -> bool:
    """Tells volumes, claims and storage classes from other objects."""
    return manifest["kind"] in ("PersistentVolume", "PersistentVolumeClaim", "StorageClass")


def sentinel_volumes(world: str) -> list[Manifest]:
    """Writes a bound claim and one that waits: both are open on the sentinel alone."""
    taken = volume(world, affinity=[{"key": WORLD, "operator": "In", "values": [world]}])
    bound_claim = claim(f"{world}-bound", SENTINEL, volumeName=world)
    topology = {"matchLabelExpressions": [{"key": WORLD, "values": [world]}]}
    made = storage_class(world, allowedTopologies=[topology])
    return [taken, bound_claim, made, claim(f"{world}-open", SENTINEL, storageClassName=world)]


def claims_of(volumes: Sequence[Manifest]) -> list[str]:
    """Names the claims among some objects."""
    return [each["metadata"]["name"] for each in volumes
            if each["kind"] == "PersistentVolumeClaim"]  # fmt: skip


def probe(name: str, world: str, claims: Sequence[str]) -> Manifest:
    """Writes a pod that only the sentinel takes, and only in that world."""
    term = {
        "labelSelector": {"matchLabels": {WORLD: "resident"}},
        "namespaceSelector": {"matchLabels": {WORLD: world}},
        "topologyKey": WORLD,
    }
    affinity = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    return pod(
        name,
        namespace=SENTINEL,
        nodeSelector={WORLD: world},
        affinity=affinity,
        tolerations=[{"key": WORLD, "operator": "Exists"}],
        volumes=claim_volumes(claims),
    )


def for_oracle(manifest: Manifest) -> Manifest:
    """Hands a pod to the scheduler that judges."""
    return {**manifest, "spec": {**manifest["spec"], "schedulerName": SCHEDULER}}


def namespace(name: str, labels: Mapping[str, str]) -> Manifest:
    """Writes a namespace."""
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": name, "labels": dict(labels)},
    }


def namespace_of(manifest: Manifest) -> str:
    """Names the namespace that a manifest needs."""
    return str(manifest["metadata"].get("namespace", "default"))


def is_unbound(manifest: Manifest) -> bool:
    """Tells a pod that a scheduler could still bind."""
    return manifest["kind"] == "Pod" and not manifest["spec"].get("nodeName")
