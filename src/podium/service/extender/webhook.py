"""Answers the score plugin of the hkust simulator: a pod and its feasible nodes in, scores out.

The plugin sends nodes with what they have, not with what is left of it. What is left follows from
the pods that it asked about before, and from the annotation in which the simulator notes which of
them run on which GPU. It notes none for pods without GPUs: nobody knows where those went.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, cast

import msgspec
import numpy as np
from prometheus_client.registry import Collector
from pydantic import BaseModel, Field
from structlog.typing import FilteringBoundLogger

from podium.errors import PolicyError
from podium.experiments.case import named_policy
from podium.files.excerpt import excerpt
from podium.kube.objects import UNREADABLE, PodObject, without_strange_marks
from podium.kube.pod import Unreadable
from podium.kube.state import LiveState
from podium.model.records import NODE_8, NODE_16
from podium.model.shares import MOST_GPUS
from podium.service.components import BytesRoute, Component, Facts
from podium.service.extender.metrics import ExtenderMetrics
from podium.service.extender.names import NodeNames
from podium.service.extender.prioritizer import scores_of
from podium.service.extender.scale import Ties, scaled
from podium.service.extender.scorer import Scorer
from podium.service.extender.window import LiveWindow
from podium.service.http.logs import KIND
from podium.service.http.problem import Field as Wrong
from podium.service.http.problem import Problem
from podium.settings import Settings
from podium.traces.kubernetes.keys import GPU_COUNT, GPU_INDEX, GPU_MILLI

MOST_POINTS = 100
"""The plugin neither checks nor scales scores, and the framework takes 0 to 100."""

MOST_PODS = 100_000
"""Pods that are remembered; the one told of first is forgotten first."""

MOST_POD_BYTES = 128 << 20
"""Of all pods that are remembered: a thousand bytes for each of as many as there may be."""

MOST_NODES = 20_000
"""Nodes that are remembered; the one that was sent least lately is forgotten first."""

MOST_NODE_BYTES = 128 << 20
"""Of all nodes that are remembered, as they were sent."""

LONGEST_NAME = 253
"""Characters of a name; Kubernetes takes no longer one."""

MOST_BODY_BYTES = 2**26
NODE_GPU_SHARE = "simon/node-gpu-share"

Object = dict[str, Any]

_NO_NODES = np.zeros(0, NODE_8)


class ScoreBody(BaseModel):
    """A pod and the nodes that are feasible for it."""

    pod: Annotated[dict[str, Any], Field(description="A Pod of the API.")]
    nodes: Annotated[list[dict[str, Any]], Field(description="Nodes of the API.")]


class ScoreReply(BaseModel):
    """A score for every node."""

    scores: Annotated[dict[str, int], Field(description="0 to 100 by the name of the node.")]


_EXAMPLE: Mapping[str, Any] = {
    "a pod that asks for half a GPU": {
        "pod": {
            "metadata": {"name": "p", "annotations": {GPU_COUNT: "1", GPU_MILLI: "500"}},
            "spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": "4"}}}]},
        },
        "nodes": [
            {
                "metadata": {"name": "a"},
                "status": {"allocatable": {"cpu": "32", "memory": "128Gi", GPU_COUNT: "2"}},
            }
        ],
    }
}


class _Device(msgspec.Struct, frozen=True, rename={"pods": "PodList", "used": "GpuUsedMilli"}):
    pods: list[str] | None = None
    used: int = 0


class _NodeGpuShare(msgspec.Struct, frozen=True, rename={"devices": "DevsBrief"}):
    devices: dict[str, _Device] | None = None


class _Request(msgspec.Struct, frozen=True):
    pod: Object
    nodes: list[Object]


class _Reply(msgspec.Struct, frozen=True):
    scores: dict[str, int]


_read = msgspec.json.Decoder(_Request).decode
_read_share = msgspec.json.Decoder(_NodeGpuShare).decode
_write = msgspec.json.Encoder().encode


class SimulatedCluster:
    """Follows the cluster of a simulator through the requests of its plugin."""

    def __init__(self) -> None:
        self.state = LiveState()
        self._nodes: OrderedDict[str, tuple[int, int]] = OrderedDict()  # hash and size as sent
        self._node_bytes = 0
        self._told: OrderedDict[str, bytes] = OrderedDict()  # JSON of pods by namespace/name
        self._told_bytes = 0
        self._on: dict[str, dict[str, str]] = {}  # by node: GPUs by pod

    def see(self, pod: Object, nodes: Sequence[Object]) -> Object:
        """Takes a request in, and returns the pod under a UID of its own."""
        for node in nodes:
            self._see_node(node)
        while len(self._nodes) > MOST_NODES or self._node_bytes > MOST_NODE_BYTES:
            name, (_, size) = self._nodes.popitem(last=False)
            self._node_bytes -= size
            self._forget_node(name)
        metadata = pod.get("metadata") or {}
        key = f"{metadata.get('namespace') or 'default'}/{metadata.get('name', '')}"
        # No more is kept of it than is read.
        made: Object = without_strange_marks(msgspec.convert(pod, cast("Any", PodObject)))
        made = {**made, "metadata": {**made.get("metadata", {}), "uid": key}}
        self._tell(key, _write(made))
        return made

    def _tell(self, key: str, pod: bytes) -> None:
        self._told_bytes += len(pod) - len(self._told.pop(key, b""))
        self._told[key] = pod
        while len(self._told) > MOST_PODS or self._told_bytes > MOST_POD_BYTES:
            self._told_bytes -= len(self._told.popitem(last=False)[1])

    def _forget_node(self, name: str) -> None:
        for uid in self._on.pop(name, {}):
            self.state.apply("Pod", "DELETED", {"metadata": {"uid": uid}})
        self.state.apply("Node", "DELETED", {"metadata": {"name": name}})

    def _see_node(self, node: Object) -> None:
        metadata = node.get("metadata") or {}
        name = str(metadata.get("name", ""))
        sent = _write(node)
        before, now = self._nodes.pop(name, None), (hash(sent), len(sent))
        self._node_bytes += now[1] - (before[1] if before else 0)
        self._nodes[name] = now
        if before == now:
            return
        self.state.apply("Node", "MODIFIED", node)
        text = (metadata.get("annotations") or {}).get(NODE_GPU_SHARE, "")
        placed = self._placed(_devices(text), name)
        for uid in self._on.get(name, {}).keys() - placed.keys():
            self.state.apply("Pod", "DELETED", {"metadata": {"uid": uid}})
        for uid, pod in placed.items():
            if self._on.get(name, {}).get(uid) != _slots_of(pod):
                self.state.apply("Pod", "MODIFIED", pod)
        self._on[name] = {uid: _slots_of(pod) for uid, pod in placed.items()}

    def _placed(self, devices: Mapping[int, _Device], node: str) -> dict[str, Object]:
        """Writes the pods of a node down, and what others of its GPUs is used by strangers."""
        slots: dict[str, list[int]] = {}
        for number, device in sorted(devices.items()):
            for name in device.pods or ():
                slots.setdefault(name.replace(":", "/"), []).append(number)
        told = {key: msgspec.json.decode(self._told[key]) for key in slots if key in self._told}
        known = {key: slots[key] for key in told}
        found = {key: _bound(told[key], node, on) for key, on in known.items()}
        for number, device in devices.items():
            used = sum(_milli_of(told[key]) for key, on in known.items() if number in on)
            if device.used > used:
                uid = f"{node}/{number}/{device.used - used}"
                found[uid] = _bound(_stranger(uid, device.used - used), node, [number])
        return found


def _check_names(pod: Object, nodes: Sequence[str]) -> None:
    metadata = pod.get("metadata") or {}
    own = [str(metadata.get(key) or "") for key in ("name", "namespace")]
    if max(map(len, (*own, *nodes))) <= LONGEST_NAME:
        return
    where = ["pod.metadata.name", "pod.metadata.namespace"]
    where += [f"nodes[{number}].metadata.name" for number in range(len(nodes))]
    named = zip(where, (*own, *nodes), strict=True)
    problem = f"the name is longer than {LONGEST_NAME} characters"
    fields = [Wrong(each, problem) for each, name in named if len(name) > LONGEST_NAME]
    raise Problem(422, problem, hint="send names as Kubernetes takes them", fields=fields[:20])


def _devices(text: str) -> dict[int, _Device]:
    try:
        found = _read_share(text).devices if text else None
    except msgspec.MsgspecError:
        return {}
    return {
        number: found[key] for number in range(MOST_GPUS) if found and (key := str(number)) in found
    }


def _bound(pod: Object, node: str, slots: Sequence[int]) -> Object:
    metadata = pod["metadata"]
    index = "-".join(map(str, slots))
    annotations = {**(metadata.get("annotations") or {}), GPU_INDEX: index}
    return {
        **pod,
        "metadata": {**metadata, "annotations": annotations},
        "spec": {**(pod.get("spec") or {}), "nodeName": node},
        "status": {"phase": "Running"},
    }


def _stranger(uid: str, milli: int) -> Object:
    annotations = {GPU_COUNT: "1", GPU_MILLI: str(milli)}
    return {"metadata": {"name": uid, "uid": uid, "annotations": annotations}, "spec": {}}


def _slots_of(pod: Object) -> str:
    return str(pod["metadata"]["annotations"][GPU_INDEX])


def _milli_of(pod: Object) -> int:
    text = str((pod["metadata"].get("annotations") or {}).get(GPU_MILLI, ""))
    return int(text) if text.isdecimal() else 0


class Webhook(Component):
    """Scores pods for the score plugin of the hkust simulator."""

    name = "webhook"
    description = "Scores pods for the score plugin of the hkust simulator."
    sections = ("extender",)

    def __init__(self, settings: Settings, log: FilteringBoundLogger) -> None:
        self._settings = settings.extender
        self._log = log
        self._metrics = ExtenderMetrics("podium_webhook_")
        self._cluster = SimulatedCluster()
        self._names = NodeNames()
        self._recent = LiveWindow(settings.extender.window_pods)
        self._scorer: Scorer | None = None

    def routes(self) -> Sequence[BytesRoute]:
        """Lists the one path that the plugin asks."""
        return [
            BytesRoute(
                "/score", ScoreBody, ScoreReply, self.score, MOST_BODY_BYTES, _EXAMPLE,
                is_slow=True,  # thousands of nodes may be new
            )
        ]  # fmt: skip

    def collectors(self) -> Sequence[Collector]:
        """Lists durations, and answers that prefer no node."""
        return self._metrics.collectors({})

    async def start(self) -> Facts:
        """Compiles the policy, so that the first request does not wait for it."""
        shapes = self._recent.shapes()
        policy = await asyncio.to_thread(named_policy, self._settings.policy, "extender.policy")
        scorer = await asyncio.to_thread(lambda: Scorer(policy, shapes).warm(_NO_NODES))
        # Nodes come with requests, and any may have more than 8 GPUs.
        await asyncio.to_thread(scorer.compile_for, NODE_16)
        self._scorer = scorer
        return {"policy": policy.name}

    def score(self, body: bytes) -> bytes:
        """Scores a pod on nodes from 0 to 100; all get 0 where that is impossible.

        Raises:
            Problem: a name is longer than any name of Kubernetes.
        """
        started_s = time.perf_counter()
        names: list[str] = []
        try:
            request = _read(body)
            names = [str((each.get("metadata") or {}).get("name", "")) for each in request.nodes]
            _check_names(request.pod, names)
            scores = self._scores(request, names)
        except UNREADABLE as error:
            scores = self._neutral(names, "malformed", str(error))
        except PolicyError as error:
            scores = self._neutral(names, "policy", str(error))
        except Problem:
            raise
        except Exception as error:  # noqa: BLE001 - the plugin checks nothing
            self._log.error("scoring failed", exc_info=error, **{KIND: "failed scores"})
            scores = self._neutral(names, "bug", type(error).__name__)
        self._metrics.answered("score", time.perf_counter() - started_s)
        return _write(_Reply(scores))

    def _scores(self, request: _Request, names: list[str]) -> dict[str, int]:
        if self._scorer is None:
            return self._neutral(names, "not-ready", "the policy is still being compiled")
        state = self._cluster.state
        pod = self._cluster.see(request.pod, request.nodes)
        asked = state.request(pod)
        if isinstance(asked, Unreadable):
            return self._neutral(names, "unmodelled", str(asked))
        self._recent.add(asked)
        if self._recent.is_due(state.gpu_kinds):
            self._scorer = self._scorer.refresh(self._recent.shapes(state.gpu_kinds))
        order = sorted({name for name in names if name in state.index})
        at = np.array([state.index[name] for name in order], np.int64)
        rank = self._names.see(state.names).rank
        scores = scores_of(self._scorer, asked, state.nodes, at, rank).scores[at]
        ties = cast("Ties", self._settings.ties)
        points = scaled(scores, ties, MOST_POINTS).tolist()
        return dict.fromkeys(names, 0) | dict(zip(order, points, strict=True))

    def _neutral(self, names: list[str], reason: str, problem: str) -> dict[str, int]:
        self._metrics.neutral("score", reason)
        cut = excerpt(problem, 300, quote="")
        facts = {"reason": reason, "problem": cut, KIND: f"neutral scores, {reason}"}
        self._log.warning("no node is preferred", **facts)
        return dict.fromkeys(names, 0)
