"""Prefers full GPUs on nodes with CPU and memory in balance (FunSearch, score 0.4816).

Source: github.com/ttanv/funsearch-kubernetes-simulator at f113ab6, written anew from a
description of its formula. That simulator counts free GPUs whole, so that a pod with a part of
one uses it up; here the GPUs that count are those that could still take the pod, with enough
free milli. The GPU terms look at the first of them by slot, whichever one the pod then gets.
"""

import math

GPU_MILLI = 1000


def score(pod, node):
    """Adds up the shares in use once the pod is placed; a whole number, at least 1."""
    cpu_total, memory_total = max(1, node.cpu_milli_total), max(1, node.memory_mib_total)
    cpu = (cpu_total - node.cpu_milli_left + pod.cpu_milli) / cpu_total
    memory = (memory_total - node.memory_mib_left + pod.memory_mib) / memory_total
    balance, evenness = 1 - abs(cpu - memory), math.sqrt(cpu * memory)
    if pod.gpu_count > 0:
        gpu, rest = gpu_shares(pod, node)
        isolation = 0.5 - abs(0.5 - math.sqrt(rest))
        total = 0.25 * cpu + 0.15 * memory + 0.45 * gpu + 0.05 * balance + 0.05 * evenness
        return max(1, int(10000 * (total - 0.05 * rest + 0.1 * isolation)))
    cpu_rest = node.cpu_milli_left % max(1, pod.cpu_milli) / cpu_total
    memory_rest = node.memory_mib_left % max(1, pod.memory_mib) / memory_total
    total = 0.45 * cpu + 0.35 * memory + 0.1 * balance + 0.1 * evenness
    return max(1, int(10000 * (total - 0.1 * min(cpu_rest, memory_rest))))


def gpu_shares(pod, node):
    """Gives the share in use of those GPUs, and their squared rests over their free milli."""
    taken, filled, free, squares = 0, 0, 0, 0
    for slot in range(node.gpu_count):
        left = node.gpu_milli_left[slot]
        if left >= pod.gpu_milli and taken < pod.gpu_count:
            rest = left - pod.gpu_milli
            taken += 1
            filled += GPU_MILLI - rest
            free += left
            squares += rest * rest
    return filled / (GPU_MILLI * taken), squares / max(1, free)
