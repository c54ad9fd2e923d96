"""Declares the settings of the scheduler extender."""

from __future__ import annotations

from dataclasses import dataclass, field

from podium.settings.about import about, data
from podium.settings.folder import names


@dataclass(frozen=True, slots=True)
class Extender:
    """How pods of a live cluster are scored for kube-scheduler."""

    policy: str = field(
        default="keep-room",
        metadata=about(
            "policy that scores, by name, file or run", flag="--extender-policy", from_folder=names
        ),
    )
    shadow: str = field(
        default="",
        metadata=about(
            "policies that score alongside without effect, separated by commas",
            flag="--extender-shadow",
            from_folder=names,
        ),
    )
    unvalidated: bool = field(
        default=False,
        metadata=about(
            "let a policy score that is known not to be validated", flag="--extender-unvalidated"
        ),
    )
    twin: bool = field(
        default=False,
        metadata=data(
            "simulate what the policy, and kube-scheduler without it, would have made of the "
            "cluster; shadow policies always have such a twin"
        ),
    )
    twin_lifetime_s: float = field(
        default=86400.0,
        metadata=data("seconds after which twins begin anew as the cluster is", above=0),
    )
    ties: str = field(
        default="equal",
        metadata=data(
            "nodes that a policy scores alike: equal points, so that kube-scheduler decides, or in "
            "the order of their names, as a test of agreement with a simulation needs",
            choices=("equal", "order"),
            flag="--extender-ties",
        ),
    )
    decisive_points: int = field(
        default=128,
        metadata=data(
            "points behind the best from which on a node cannot win, unless a pod or a node has "
            "preferences; fewer make answers shorter, and the chart sets the smallest safe value",
            at_least=1,
        ),
    )
    gang_points: int = field(
        default=700,
        metadata=data(
            "points of 1000 for nodes in the domain that is chosen for a gang; 0: none",
            at_least=0,
            at_most=1000,
        ),
    )
    assume_s: float = field(
        default=2.0,
        metadata=data(
            "seconds for which a scored pod counts on its best node, unless it is bound before",
            above=0,
        ),
    )
    window_pods: int = field(
        default=2000,
        metadata=data("recent pods from which a policy prepares its table", at_least=1),
    )
    max_state_age_s: float = field(
        default=180.0,
        metadata=data(
            "seconds without word from the API server after which nothing is scored; an idle one "
            "says every minute that nothing happened",
            above=0,
        ),
    )
    max_answer_s: float = field(
        default=0.1,
        metadata=data(
            "seconds that the policy may take for a pod; after 3 late answers in a row it is not "
            "asked for a while. Use half of kube-scheduler's httpTimeout",
            above=0,
        ),
    )
    filter: bool = field(
        default=False,
        metadata=about("answer POST /extender/filter: keep pods off nodes that the policy refuses"),
    )
    max_hold_s: float = field(
        default=60.0,
        metadata=data("seconds after which a pod that is held by the filter passes", at_least=0),
    )
    bind: bool = field(
        default=False,
        metadata=about("answer POST /extender/bind: bind pods, and note the GPUs chosen for them"),
    )
    events: bool = field(
        default=False,
        metadata=about("write an Event on each pod that was scored, once it is bound"),
    )
    loopback_only: bool = field(
        default=False,
        metadata=about("answer POST /extender/* only to callers on a loopback address"),
    )
    recent_pods: int = field(
        default=100, metadata=data("recent pods whose scores can be explained", at_least=1)
    )
    kubeconfig: str | None = field(
        default=None,
        metadata=about(
            "kubeconfig file; unset: KUBECONFIG, ~/.kube/config or the pod's service account",
            flag="--extender-kubeconfig",
        ),
    )
    context: str | None = field(
        default=None,
        metadata=about(
            "context of the kubeconfig; unset: the current one", flag="--extender-context"
        ),
    )
    topology: str | None = field(
        default=None,
        metadata=data(
            "labels of rack, block and zone: aws, gcp, oci, nvlink, topograph, kubernetes, or up "
            "to three keys; unset: all that are known",
            flag="--extender-topology",
        ),
    )
