"""Scores by dot products of free and wanted resources, in all modes of DotProductScore.

hkust-adsl/kubernetes-scheduler-simulator: pkg/simulator/plugin/dot_product_score.go,
ToVirtualNodeResourceList in pkg/type/resource.go, GenerateSchedulingMatchGroups in
pkg/utils/utils.go. The functions read records and views alike, and compile.

A node is matched with the pod in one way (merge: all its GPUs together) or in several (share
and divide: each GPU in use, and the free ones together; extend: the same as dimensions of one
vector). The best match counts.
"""

from __future__ import annotations

import math
from typing import Any

from podium.model.records import GPU_MILLI

CPU_MILLI_MAX = 128000
GPU_MILLI_MAX = 8000

MERGE, SHARE, DIVIDE, EXTEND = range(4)
BY_NODE, BY_POD, BY_MAX = range(3)
METHODS = {"merge": MERGE, "share": SHARE, "divide": DIVIDE, "extend": EXTEND}
NORMS = {"node": BY_NODE, "pod": BY_POD, "max": BY_MAX}

NO_MATCH = -1.0


def dot_product(pod: Any, node: Any, method: int, norm: int) -> int:
    """Returns 100 for the least dot product and less for larger ones; 0 without a match."""
    left = idle = used = 0
    for slot in range(node.gpu_count):
        milli = node.gpu_milli_left[slot]
        left += milli
        idle += milli if milli == GPU_MILLI else 0
        used += 1 if 0 < milli < GPU_MILLI else 0
    if method == MERGE:
        return int(100 * match(pod, node, node.cpu_milli_left, left, norm, 2))
    wanted = pod.gpu_count * pod.gpu_milli
    size = 1 + used + (1 if idle > 0 else 0) if method == EXTEND else 2
    best = NO_MATCH
    for slot in range(node.gpu_count):
        milli = node.gpu_milli_left[slot]
        if is_match(milli, wanted, method):
            found = match(pod, node, cpu_part(node, milli, left, method), milli, norm, size)
            best = found if found > best else best
    if wanted <= idle and (method != EXTEND or idle > 0):
        found = match(pod, node, cpu_part(node, idle, left, method), idle, norm, size)
        best = found if found > best else best
    return int(100 * best) if best > NO_MATCH else 0


def is_match(milli: int, wanted: int, method: int) -> bool:
    """Returns whether a GPU in use can take the pod by itself; a full one is no dimension."""
    return wanted <= milli < GPU_MILLI and (method != EXTEND or milli > 0)


def cpu_part(node: Any, milli: int, left: int, method: int) -> float:
    """Returns the CPU that goes with some of the free GPU: all of it, or its part."""
    if method != DIVIDE:
        return float(node.cpu_milli_left)
    # Without any free GPU upstream divides by 0, and its NaN never becomes the best match.
    return float(node.cpu_milli_left * milli) / left if left > 0 else math.nan


def match(pod: Any, node: Any, cpu: float, gpu: int, norm: int, size: int) -> float:
    """Returns 1 less the normalised dot product of one match."""
    wanted = pod.gpu_count * pod.gpu_milli
    cpu_unit, gpu_unit = CPU_MILLI_MAX, GPU_MILLI_MAX
    if norm == BY_NODE:
        cpu_unit, gpu_unit = node.cpu_milli_total, GPU_MILLI * node.gpu_count
    elif norm == BY_POD:
        cpu_unit, gpu_unit = pod.cpu_milli, wanted
    product = over(cpu, cpu_unit) * over(pod.cpu_milli, cpu_unit)
    product += over(gpu, gpu_unit) * over(wanted, gpu_unit)
    product /= size
    return 1 - (math.tanh(product / 10) if norm == BY_POD else product)


def over(amount: float, unit: float) -> float:
    """Divides by a unit; 0 where there is none."""
    return amount / unit if unit > 0 else 0.0
