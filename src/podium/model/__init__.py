"""Pure values: nodes and pods as records, clusters, workloads, and the rules of fit."""

from podium.model.cluster import Cluster, NodeSpec
from podium.model.records import ANY_MODEL, GPU_MILLI, NODE_8, NODE_16, POD, Node, Pod
from podium.model.workload import PodSpec, Shapes, TypicalPods, Workload

__all__ = [
    "ANY_MODEL", "GPU_MILLI", "NODE_8", "NODE_16", "POD", "Cluster", "Node", "NodeSpec", "Pod",
    "PodSpec", "Shapes", "TypicalPods", "Workload",
]  # fmt: skip
