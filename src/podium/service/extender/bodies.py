"""Declares what the extender exchanges, for the documentation of its routes."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from podium.service.http.replies import Reply


class ExtenderArgs(BaseModel):
    """A pod, and the nodes that kube-scheduler found feasible for it."""

    Pod: Annotated[dict[str, Any], Field(description="A Pod of the API.")]
    Nodes: Annotated[
        dict[str, Any] | None, Field(description="A NodeList, where nodeCacheCapable is false.")
    ] = None
    NodeNames: Annotated[
        list[str] | None, Field(description="Names, where nodeCacheCapable is true.")
    ] = None


class HostPriority(Reply):
    """The score of one node."""

    Host: str
    Score: Annotated[int, Field(ge=0, le=1000)]


class FilterResult(BaseModel):
    """The nodes that stay, and why others do not."""

    model_config = ConfigDict(extra="forbid")

    Nodes: dict[str, Any] | None = None
    NodeNames: list[str] | None = None
    FailedNodes: dict[str, str] = {}
    FailedAndUnresolvableNodes: dict[str, str] = {}
    Error: str = ""


class BindingArgs(BaseModel):
    """A pod and the node to bind it to."""

    PodName: str
    PodNamespace: str
    PodUID: str
    Node: str


class BindingResult(Reply):
    """Empty, or what went wrong."""

    Error: str


class Candidate(Reply):
    """A node that kube-scheduler asked about."""

    node: str
    score: Annotated[float | None, Field(description="Of the policy; null: it was refused.")]
    is_chosen: Annotated[bool, Field(description="The pod is there, or would be.")]
    cpu_milli_left: int
    memory_mib_left: int
    gpu_milli_left: list[int]


class Gang(Reply):
    """Where the pods of a gang should stand together."""

    namespace: str
    name: str
    level: Annotated[str, Field(description="rack, block or zone")]
    domains: Annotated[list[str], Field(description="Those whose nodes are preferred.")]


class Explanation(Reply):
    """How one pod was scored the last time."""

    pod: str
    namespace: str
    uid: str
    policy: str
    validated: Annotated[str, Field(description="Whether the policy is: yes, no or unknown.")]
    request: dict[str, int]
    scored_at: str
    calls: Annotated[int, Field(description="How often it was scored.")]
    best: Annotated[str, Field(description="The best node; empty: the pod was refused by all.")]
    tied: Annotated[
        int,
        Field(description="Nodes with the most points: kube-scheduler's own scores choose there."),
    ]
    runner_up: Annotated[str, Field(description="The next best; empty: no other has points.")]
    node: Annotated[str, Field(description="Where the pod was bound; empty: nowhere yet.")]
    bound_to: str
    reason: str
    gpu_slots: Annotated[list[int], Field(description="GPUs chosen on the best node.")]
    feasible: Annotated[int, Field(description="Nodes that kube-scheduler asked about.")]
    reasons: Annotated[dict[str, int], Field(description="Other nodes by what they lack.")]
    candidates: Annotated[list[Candidate], Field(description="The best nodes first.")]
    points: Annotated[dict[str, int], Field(description="0 to 1000, as answered.")]
    shadow: Annotated[dict[str, str], Field(description="Best node by shadow policy.")]
    without_points: Annotated[
        dict[str, int] | None,
        Field(description="Nodes asked about that have 0 points, by reason; absent: none."),
    ] = None
    terms: Annotated[
        dict[str, dict[str, float]] | None,
        Field(description="What each term adds to the score of a node; absent: it has no terms."),
    ] = None
    gang: Annotated[Gang | None, Field(description="Absent: no domain is chosen.")] = None


class PodGroup(Reply):
    """How long the pods of one class and namespace wait."""

    pod_class: str
    namespace: Annotated[str, Field(description="other: all that have no figures of their own")]
    waiting: Annotated[int, Field(description="Pods that wait now.")]
    waiting_longest_s: float
    waiting_mean_s: float
    waited: Annotated[int, Field(description="Pods that got a node.")]
    waited_total_s: Annotated[float, Field(description="How long they waited, together.")]


class Account(Reply):
    """What one scheduler has made of the cluster."""

    scheduler: Annotated[str, Field(description="cluster: the real one; others are twins")]
    policy: Annotated[str, Field(description="Of a twin; empty: the real cluster.")]
    started_s: Annotated[float, Field(description="When the twin began, since 1970.")]
    gpus: int
    gpus_allocated: float
    gpus_free: Annotated[dict[str, float], Field(description="By kind: stranded, broken, idle.")]
    largest_pod_gpus: Annotated[int, Field(description="The most whole GPUs one pod could get.")]
    fitting_pods: Annotated[dict[int, int], Field(description="By whole GPUs: how many fit.")]
    pods: list[PodGroup]


class Outcome(Reply):
    """What became of the cluster, and would have become of it."""

    schedulers: list[Account]


_POD = {
    "metadata": {"name": "train", "namespace": "ml", "uid": "9f3c"},
    "spec": {"containers": [{"name": "main", "resources": {"limits": {"nvidia.com/gpu": "1"}}}]},
}
_ARGS = {"Pod": _POD, "Nodes": None, "NodeNames": ["gpu-1", "gpu-2"]}
_BINDING = {"PodName": "train", "PodNamespace": "ml", "PodUID": "9f3c", "Node": "gpu-1"}

VERBS: dict[str, tuple[Any, Any, Any]] = {
    "prioritize": (ExtenderArgs, list[HostPriority], _ARGS),
    "filter": (ExtenderArgs, FilterResult, _ARGS),
    "bind": (BindingArgs, BindingResult, _BINDING),
}
"""The request, the reply and an example of each verb."""
