"""Holds the scores of the FunSearch simulator, as its own event model sees nodes.

Source: github.com/ttanv/funsearch-kubernetes-simulator at f113ab6, written anew from a
description of its formulas. Each score is 0 on a node that cannot take the pod and at least 1
elsewhere. The names in the formulas: a and b are the shares of CPU and memory in use once the
pod is placed, u and v the shares in use before.

These formulas read `gpus_left`, a count that falls by a whole GPU for a pod with a part of one.
The same policies under true sharing are `funsearch_4901`, `funsearch_4816` and `funsearch_4800`
in `podium.policies.builtin`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import NamedTuple

from podium.model.cluster import NodeSpec
from podium.model.records import GPU_MILLI, Pod


class FunsearchNode(NamedTuple):
    """Shows a node to a score; a tuple, so that no score can change what it is judged on."""

    cpu_milli_left: int
    cpu_milli_total: int
    memory_mib_left: int
    memory_mib_total: int
    gpu_count: int
    gpus_left: int
    gpu_milli_left: tuple[int, ...]  # (gpu_count,)

    @classmethod
    def of(cls, spec: NodeSpec) -> FunsearchNode:
        """Builds the empty node."""
        cpu, memory, gpus = spec.cpu_milli, spec.memory_mib, spec.gpu_count
        # The formulas divide by totals, hence at least 1.
        return cls(cpu, max(1, cpu), memory, max(1, memory), gpus, gpus, (GPU_MILLI,) * gpus)


Score = Callable[[Pod, FunsearchNode], float]


def fits(pod: Pod, node: FunsearchNode) -> bool:
    """Tells whether the node can take the pod by the original's rules; `gpu_spec` plays no part."""
    if pod.cpu_milli > node.cpu_milli_left or pod.memory_mib > node.memory_mib_left:
        return False
    if pod.gpu_count == 0:
        return True
    fitting = sum(free >= pod.gpu_milli for free in node.gpu_milli_left)
    return pod.gpu_count <= node.gpus_left and pod.gpu_count <= fitting


def first_fit(pod: Pod, node: FunsearchNode) -> int:
    """Scores every node that fits alike, so that the first in the file wins."""
    return 1000 if fits(pod, node) else 0


def best_fit(pod: Pod, node: FunsearchNode) -> int:
    """Prefers the node with the least left over."""
    return _whole(10000 * (1 - _left_over(pod, node))) if fits(pod, node) else 0


def worst_fit(pod: Pod, node: FunsearchNode) -> int:
    """Prefers the node with the most left over."""
    return _whole(10000 * _left_over(pod, node)) if fits(pod, node) else 0


def funsearch_4901(pod: Pod, node: FunsearchNode) -> int:
    """Prefers empty, roomy nodes; the best the search found by its own score."""
    if not fits(pod, node):
        return 0
    u = (node.cpu_milli_total - node.cpu_milli_left) / node.cpu_milli_total
    v = (node.memory_mib_total - node.memory_mib_left) / node.memory_mib_total
    score = (1 - u) * (100 if u < 0.7 else 50) + (1 - v) * (100 if v < 0.7 else 50)
    score -= 0.5 * abs(
        node.cpu_milli_left / max(1, node.memory_mib_left) - pod.cpu_milli / max(1, pod.memory_mib)
    )
    if node.cpu_milli_left > 2 * pod.cpu_milli and node.memory_mib_left > 2 * pod.memory_mib:
        score += 25
    score += _size_bonus_4901(node)
    if u > 0.9 or v > 0.9:
        score -= 20
    if pod.gpu_count:
        score += _gpu_bonus_4901(pod, node)
    return _whole(score)


def _size_bonus_4901(node: FunsearchNode) -> float:
    bonus = 15.0 if node.cpu_milli_total > 10000 and node.memory_mib_total > 64 else 0.0
    if node.cpu_milli_total < 2000 or node.memory_mib_total < 12:
        bonus -= 0.01 * (2000 - node.cpu_milli_total) + 0.1 * (12 - node.memory_mib_total)
    return bonus


def _gpu_bonus_4901(pod: Pod, node: FunsearchNode) -> float:
    free = sum(node.gpu_milli_left)
    room = GPU_MILLI * node.gpus_left
    w = (room - free) / room
    spread = max(node.gpu_milli_left) - min(node.gpu_milli_left)
    return (1 - w) * (200 if w < 0.7 else 100) - 0.2 * (free % pod.gpu_milli) - 0.05 * spread


def funsearch_4816(pod: Pod, node: FunsearchNode) -> int:
    """Prefers full nodes whose CPU and memory fill alike, and full GPUs."""
    if not fits(pod, node):
        return 0
    a, b = _shares_after(pod, node)
    balance, evenness = 1 - abs(a - b), math.sqrt(a * b)
    if pod.gpu_count:
        first = [r for r in node.gpu_milli_left if r >= pod.gpu_milli][: pod.gpu_count]
        gpu = sum(GPU_MILLI - r + pod.gpu_milli for r in first) / (GPU_MILLI * len(first))
        rest = sum((r - pod.gpu_milli) ** 2 for r in first) / max(1, sum(first))
        apart = 0.5 - abs(0.5 - math.sqrt(rest))
        score = 0.25 * a + 0.15 * b + 0.45 * gpu + 0.05 * balance + 0.05 * evenness
        return _whole(10000 * (score - 0.05 * rest + 0.1 * apart))
    q = min(
        node.cpu_milli_left % max(1, pod.cpu_milli) / node.cpu_milli_total,
        node.memory_mib_left % max(1, pod.memory_mib) / node.memory_mib_total,
    )
    return _whole(10000 * (0.45 * a + 0.35 * b + 0.1 * balance + 0.1 * evenness - 0.1 * q))


def funsearch_4800(pod: Pod, node: FunsearchNode) -> int:
    """Prefers full nodes whose CPU and memory fill alike, and the tightest GPUs."""
    if not fits(pod, node):
        return 0
    a, b = _shares_after(pod, node)
    left = min(node.cpu_milli_left - pod.cpu_milli, node.memory_mib_left - pod.memory_mib)
    score = 600 * (0.6 * min(a, b) + 0.4 * max(a, b)) + 300 * (1 - abs(a - b)) ** 2.5
    score += 300 * left**0.6 / max(node.cpu_milli_total, node.memory_mib_total)
    if pod.gpu_count:
        fitting = sorted(r for r in node.gpu_milli_left if r >= pod.gpu_milli)[: pod.gpu_count]
        tightness = sum(1 - (r - pod.gpu_milli) / GPU_MILLI for r in fitting) / len(fitting)
        score += 450 * tightness * tightness
    return _whole(score)


def gpu_aware(pod: Pod, node: FunsearchNode) -> int:
    """Gathers GPU pods on GPU nodes in use and keeps other pods off them."""
    if not fits(pod, node):
        return 0
    gpu_use = 1 - node.gpus_left / node.gpu_count if node.gpu_count else 0.0
    cpu_use = 1 - node.cpu_milli_left / node.cpu_milli_total
    cpu = (node.cpu_milli_left - pod.cpu_milli) / node.cpu_milli_total
    memory = (node.memory_mib_left - pod.memory_mib) / node.memory_mib_total
    if pod.gpu_count:
        rest = 1 - (node.gpus_left - pod.gpu_count) / node.gpu_count
        score = 9000 + int(5000 * rest) if gpu_use > 0.1 else 3000
        if cpu_use > 0.1 and gpu_use < 0.1:
            score = max(1, score - 5000)
    elif node.gpu_count:
        score = 100 if gpu_use > 0.1 else 1000
    else:
        score = 6000 + int(4000 * (1 - (cpu + memory) / 2)) if cpu_use > 0.2 else 8000
    return score + int(1000 * (1 - abs(cpu - memory)))


def utilization_based(pod: Pod, node: FunsearchNode) -> int:
    """Spreads large pods and packs small ones."""
    if not fits(pod, node):
        return 0
    size = max(
        pod.cpu_milli / node.cpu_milli_total,
        pod.memory_mib / node.memory_mib_total,
        pod.gpu_count / max(node.gpu_count, 1),
    )
    use = 1 - min(
        node.cpu_milli_left / node.cpu_milli_total, node.memory_mib_left / node.memory_mib_total
    )
    rest = sum(_fractions_left(pod, node))
    if size > 0.3:
        return _whole(3333 * rest) + (5000 if use < 0.01 else 0)
    if 0.3 < use < 0.9:
        return int(10000 * (1 - rest / 3)) + 2000
    return 8000 if use >= 0.9 and size < 0.1 else 100


def _fractions_left(pod: Pod, node: FunsearchNode) -> tuple[float, float, float]:
    return (
        (node.cpu_milli_left - pod.cpu_milli) / node.cpu_milli_total,
        (node.memory_mib_left - pod.memory_mib) / node.memory_mib_total,
        (node.gpus_left - pod.gpu_count) / max(node.gpu_count, 1),
    )


def _left_over(pod: Pod, node: FunsearchNode) -> float:
    cpu, memory, gpu = _fractions_left(pod, node)
    return 0.33 * cpu + 0.33 * memory + 0.34 * gpu


def _shares_after(pod: Pod, node: FunsearchNode) -> tuple[float, float]:
    cpu_used = node.cpu_milli_total - node.cpu_milli_left + pod.cpu_milli
    memory_used = node.memory_mib_total - node.memory_mib_left + pod.memory_mib
    return cpu_used / node.cpu_milli_total, memory_used / node.memory_mib_total


def _whole(score: float) -> int:
    return max(1, int(score))


FUNSEARCH_POLICIES: Mapping[str, Score] = {
    "first_fit": first_fit,
    "best_fit": best_fit,
    "worst_fit": worst_fit,
    "funsearch_4901": funsearch_4901,
    "funsearch_4816": funsearch_4816,
    "funsearch_4800": funsearch_4800,
    "gpu_aware": gpu_aware,
    "utilization_based": utilization_based,
}
"""The original's policies by name; all but its `random`, which no run can repeat."""
