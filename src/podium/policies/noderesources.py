"""Scores as kube-scheduler's NodeResources plugins do, in whole numbers from 0 to 100.

kubernetes/kubernetes, pkg/scheduler/framework/plugins/noderesources, release 1.36: fit.go,
least_allocated.go, most_allocated.go, requested_to_capacity_ratio.go, balanced_allocation.go and
resource_allocation.go. The functions read records and views alike, and compile.

Two things differ from a cluster. A request of 0 counts as none given, since a record does not
tell them apart; and pods that run with no request count as 0 on their node, not as the default.
"""

from __future__ import annotations

import math
from typing import Any

from podium.model.records import GPU_MILLI

DEFAULT_CPU_MILLI = 100
"""What a pod without a CPU request counts for (pkg/scheduler/util/pod_resources.go)."""

DEFAULT_MEMORY_MIB = 200
"""What a pod without a memory request counts for."""

LEFT_OUT = -1.0
"""The used share of a resource that is left out."""


def cpu_requested(pod: Any, node: Any) -> int:
    """Returns the CPU requested on the node with the pod, its default included."""
    own = pod.cpu_milli if pod.cpu_milli > 0 else DEFAULT_CPU_MILLI
    return node.cpu_milli_total - node.cpu_milli_left + own  # type: ignore[no-any-return]


def memory_requested(pod: Any, node: Any) -> int:
    """Returns the memory requested on the node with the pod, its default included."""
    own = pod.memory_mib if pod.memory_mib > 0 else DEFAULT_MEMORY_MIB
    return node.memory_mib_total - node.memory_mib_left + own  # type: ignore[no-any-return]


def gpu_requested(pod: Any, node: Any) -> int:
    """Returns the GPU milli requested on the node with the pod."""
    total = GPU_MILLI * node.gpu_count + pod.gpu_count * pod.gpu_milli
    for slot in range(len(node.gpu_milli_left)):
        total -= node.gpu_milli_left[slot]
    return total  # type: ignore[no-any-return]


def gpu_capacity(pod: Any, node: Any) -> int:
    """Returns the GPU milli of the node; 0, and so left out, for a pod that asks for no GPU."""
    return GPU_MILLI * node.gpu_count if pod.gpu_count > 0 else 0


def free_percent(requested: int, capacity: int) -> int:
    """Returns the share left, in percent, rounded down."""
    if capacity == 0 or requested > capacity:
        return 0
    return (capacity - requested) * 100 // capacity


def used_percent(requested: int, capacity: int) -> int:
    """Returns the share in use, in percent, rounded down."""
    return min(requested, capacity) * 100 // capacity if capacity > 0 else 0


def least_allocated(
    pod: Any, node: Any, cpu_weight: int, memory_weight: int, gpu_weight: int
) -> int:
    """Averages the free shares by weight; a weight of 0 leaves a resource out."""
    gpu = gpu_capacity(pod, node)
    points = cpu_weight * free_percent(cpu_requested(pod, node), node.cpu_milli_total)
    points += memory_weight * free_percent(memory_requested(pod, node), node.memory_mib_total)
    points += gpu_weight * free_percent(gpu_requested(pod, node), gpu)
    return points // max(1, _weights(node, gpu, cpu_weight, memory_weight, gpu_weight))


def most_allocated(
    pod: Any, node: Any, cpu_weight: int, memory_weight: int, gpu_weight: int
) -> int:
    """Averages the used shares by weight; a weight of 0 leaves a resource out."""
    gpu = gpu_capacity(pod, node)
    points = cpu_weight * used_percent(cpu_requested(pod, node), node.cpu_milli_total)
    points += memory_weight * used_percent(memory_requested(pod, node), node.memory_mib_total)
    points += gpu_weight * used_percent(gpu_requested(pod, node), gpu)
    return points // max(1, _weights(node, gpu, cpu_weight, memory_weight, gpu_weight))


def _weights(
    node: Any, gpu_capacity: int, cpu_weight: int, memory_weight: int, gpu_weight: int
) -> int:
    # A resource that the node does not have, or that does not count, has no say.
    total = cpu_weight if node.cpu_milli_total > 0 else 0
    total += memory_weight if node.memory_mib_total > 0 else 0
    return total + (gpu_weight if gpu_capacity > 0 else 0)


def utilization(requested: int, capacity: int) -> int:
    """Returns the argument of a RequestedToCapacityRatio shape."""
    return 100 if requested > capacity else requested * 100 // capacity


def rounded_average(points: int, weights: int) -> int:
    """Divides, rounding halves up; 0 when nothing counts."""
    return (2 * points + weights) // (2 * weights) if weights > 0 else 0


def cpu_share(pod: Any, node: Any, is_placed: int) -> float:
    """Returns the CPU share in use, with the pod or without."""
    used = node.cpu_milli_total - node.cpu_milli_left + is_placed * pod.cpu_milli
    return _share(used, node.cpu_milli_total)


def memory_share(pod: Any, node: Any, is_placed: int) -> float:
    """Returns the memory share in use, with the pod or without."""
    used = node.memory_mib_total - node.memory_mib_left + is_placed * pod.memory_mib
    return _share(used, node.memory_mib_total)


def gpu_share(pod: Any, node: Any, is_placed: int) -> float:
    """Returns the GPU share in use, with the pod or without."""
    own = pod.gpu_count * pod.gpu_milli
    return _share(gpu_requested(pod, node) - own + is_placed * own, gpu_capacity(pod, node))


def _share(used: int, capacity: int) -> float:
    return min(1.0, used / capacity) if capacity > 0 else LEFT_OUT


def balance(first: float, second: float, third: float) -> int:
    """Turns the standard deviation of used shares into 100 for none and 50 for the most."""
    count, total = 0, 0.0
    for share in (first, second, third):
        count += 1 if share >= 0 else 0
        total += share if share >= 0 else 0.0
    if count < 2:
        return 100
    if count == 2:
        low = second if first < 0 else first
        high = second if third < 0 else third
        return int((1 - abs((low - high) / 2)) * 100)
    mean, squares = total / count, 0.0
    for share in (first, second, third):
        squares += (share - mean) * (share - mean)
    return int((1 - math.sqrt(squares / count)) * 100)


def balance_gained(after: int, before: int) -> int:
    """Scores the change of balance: 75 for none, 50 and 100 for the worst and the best.

    Before release 1.36 the plugin gave the balance after placement itself; see
    github.com/kubernetes/kubernetes/pull/135573.
    """
    return 50 + (50 + after - before) // 2
