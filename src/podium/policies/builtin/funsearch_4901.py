"""Prefers empty, roomy nodes (FunSearch, score 0.4901).

Source: github.com/ttanv/funsearch-kubernetes-simulator at f113ab6, written anew from a
description of its formula. That simulator counts free GPUs whole, so that a pod with a part of
one uses it up; here the count is of the GPUs that could still take the pod, those with enough
free milli. Much of its score comes from counting retries as events: see `podium.sim.funsearch`.
"""

GPU_MILLI = 1000


def score(pod, node):
    """Adds up free shares and bonuses for room; a whole number, at least 1."""
    cpu_total, memory_total = max(1, node.cpu_milli_total), max(1, node.memory_mib_total)
    cpu_left, memory_left = node.cpu_milli_left, node.memory_mib_left
    cpu_used = (cpu_total - cpu_left) / cpu_total
    memory_used = (memory_total - memory_left) / memory_total
    total = (1 - cpu_used) * (100 if cpu_used < 0.7 else 50)
    total += (1 - memory_used) * (100 if memory_used < 0.7 else 50)
    total -= 0.5 * abs(cpu_left / max(1, memory_left) - pod.cpu_milli / max(1, pod.memory_mib))
    if cpu_left > 2 * pod.cpu_milli and memory_left > 2 * pod.memory_mib:
        total += 25
    total += size_bonus(cpu_total, memory_total)
    if cpu_used > 0.9 or memory_used > 0.9:
        total -= 20
    if pod.gpu_count > 0:
        total += gpu_bonus(pod, node)
    return max(1, int(total))


def size_bonus(cpu_total, memory_total):
    """Favours large nodes and marks down tiny ones."""
    bonus = 15.0 if cpu_total > 10000 and memory_total > 64 else 0.0
    if cpu_total < 2000 or memory_total < 12:
        bonus -= 0.01 * (2000 - cpu_total) + 0.1 * (12 - memory_total)
    return bonus


def gpu_bonus(pod, node):
    """Favours nodes with much free GPU milli, evenly spread and a multiple of what is asked."""
    fitting, free, lowest, highest = 0, 0, GPU_MILLI, 0
    for slot in range(node.gpu_count):
        left = node.gpu_milli_left[slot]
        free += left
        lowest, highest = min(lowest, left), max(highest, left)
        if left >= pod.gpu_milli:
            fitting += 1
    room = GPU_MILLI * fitting
    used = (room - free) / room
    bonus = (1 - used) * (200 if used < 0.7 else 100)
    return bonus - 0.2 * (free % pod.gpu_milli) - 0.05 * (highest - lowest)
