"""Prefers tight GPUs on full nodes with CPU and memory in balance (FunSearch, score 0.4800).

Source: github.com/ttanv/funsearch-kubernetes-simulator at f113ab6, written anew from a
description of its formula. That simulator counts free GPUs whole, so that a pod with a part of
one uses it up; here the GPUs that count are those that could still take the pod, with enough
free milli.
"""

GPU_MILLI = 1000


def score(pod, node):
    """Adds up fullness, balance, what is left and GPU tightness; a whole number, at least 1."""
    cpu_total, memory_total = max(1, node.cpu_milli_total), max(1, node.memory_mib_total)
    cpu_left = node.cpu_milli_left - pod.cpu_milli
    memory_left = node.memory_mib_left - pod.memory_mib
    cpu, memory = (cpu_total - cpu_left) / cpu_total, (memory_total - memory_left) / memory_total
    total = 600 * (0.6 * min(cpu, memory) + 0.4 * max(cpu, memory))
    total += 300 * (1 - abs(cpu - memory)) ** 2.5
    total += 300 * min(cpu_left, memory_left) ** 0.6 / max(cpu_total, memory_total)
    if pod.gpu_count > 0:
        # Pods with several GPUs take whole ones, so that one GPU speaks for all of them.
        tightness = 1 - (tightest(pod, node) - pod.gpu_milli) / GPU_MILLI
        total += 450 * tightness * tightness
    return max(1, int(total))


def tightest(pod, node):
    """Finds the least free milli that is enough for the pod."""
    least = GPU_MILLI
    for slot in range(node.gpu_count):
        left = node.gpu_milli_left[slot]
        if left >= pod.gpu_milli:
            least = min(least, left)
    return least
