"""Lets pods of sources that cannot state tolerations tolerate the usual taints of GPU nodes.

GKE and the GPU operator's guides taint GPU nodes with nvidia.com/gpu, AMD's with amd.com/gpu, AKS
with sku=gpu; admission there gives pods that ask for GPUs the toleration.
"""

from __future__ import annotations

from dataclasses import replace

from podium.model.cluster import Cluster
from podium.model.constraints import UNCONSTRAINED, Constraints, Taint, Toleration
from podium.model.workload import Workload

KEYS = (
    "nvidia.com/gpu", "amd.com/gpu", "gpu.intel.com/i915", "gpu.intel.com/xe", "habana.ai/gaudi",
    "cloud.google.com/gke-accelerator", "gpu",
)  # fmt: skip
"""Keys of taints that keep pods without GPUs off, whatever their value."""

WITH_VALUES = (Taint("sku", "gpu"), Taint("node.kubernetes.io/gpu", "true"))
"""Taints that say so by their value."""

_TOLERATING = Constraints(
    tolerations=(
        *(Toleration(key, "Exists") for key in KEYS),
        *(Toleration(taint.key, "Equal", taint.value) for taint in WITH_VALUES),
    )
)


def tolerating(workload: Workload, cluster: Cluster) -> tuple[Workload, tuple[str, ...]]:
    """Gives pods that ask for GPUs these tolerations where nodes have such taints, with a note."""
    met = {taint for taints in cluster.taints for taint in taints if _is_usual(taint)}
    asking = workload.pods["gpu_count"] > 0
    if not met or workload.constraints or workload.namespaces or not asking.any():
        return workload, ()
    given = tuple(_TOLERATING if each else UNCONSTRAINED for each in asking.tolist())
    named = ", ".join(sorted({taint.key for taint in met}))
    note = f"the trace states no tolerations: its pods that ask for GPUs tolerate {named}"
    return replace(workload, constraints=given), (note,)


def _is_usual(taint: Taint) -> bool:
    return any(each.tolerates(taint) for each in _TOLERATING.tolerations)
