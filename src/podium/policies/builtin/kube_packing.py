"""Packs GPUs as kube-scheduler does with the profile of Podium's chart, without Podium.

NodeResourcesFit with MostAllocated over GPUs (weight 10) and CPU (weight 1), and without
NodeResourcesBalancedAllocation: kubernetes/kubernetes, release 1.36, in
pkg/scheduler/framework/plugins/noderesources. Anyone who can configure kube-scheduler gets this
much without Podium, so gains are measured over it.
"""

from podium.policies.noderesources import most_allocated

TIES = "random"
GPU_WEIGHT, CPU_WEIGHT = 10, 1


def score(pod, node):
    """Averages the used shares of GPUs and CPU, 0 to 100; pods without GPUs look at CPU alone."""
    return most_allocated(pod, node, CPU_WEIGHT, 0, GPU_WEIGHT)
