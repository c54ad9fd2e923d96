"""Balances: keeps all nodes equally in use.

A step up the reward of roeehub/DRL-k8s-scheduler in its balanced form: the sum over nodes of
the used share to the power 1/2, here of CPU, memory and GPU instead of memory alone.
"""

import math

GPU_MILLI = 1000


def score(pod, node):
    """Sums how much the roots of the used shares grow: the most on an idle node."""
    gpu_left = 0
    for slot in range(len(node.gpu_milli_left)):
        gpu_left += node.gpu_milli_left[slot]
    total = growth(node.cpu_milli_left, pod.cpu_milli, node.cpu_milli_total)
    total += growth(node.memory_mib_left, pod.memory_mib, node.memory_mib_total)
    total += growth(gpu_left, pod.gpu_count * pod.gpu_milli, GPU_MILLI * node.gpu_count)
    return total


def growth(left, wanted, capacity):
    """Gives the rise of the root of one used share; 0 for a resource that the node lacks."""
    if capacity == 0:
        return 0.0
    used = capacity - left
    return math.sqrt((used + wanted) / capacity) - math.sqrt(used / capacity)
