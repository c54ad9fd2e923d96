"""Fills the node that would be left with the least CPU, memory and GPUs, as shares of it.

The best_fit of ttanv/funsearch-kubernetes-simulator, written anew from its description; the
number of free GPUs is the number that could still take the pod. Whole scores, as there.
"""


def score(pod, node):
    """Weighs what would be left of CPU, memory and GPUs about alike."""
    free = 0
    for slot in range(node.gpu_count):
        if node.gpu_milli_left[slot] >= max(1, pod.gpu_milli):
            free += 1
    cpu = (node.cpu_milli_left - pod.cpu_milli) / max(1, node.cpu_milli_total)
    memory = (node.memory_mib_left - pod.memory_mib) / max(1, node.memory_mib_total)
    gpu = (free - pod.gpu_count) / max(1, node.gpu_count)
    return max(1, int(10000 * (1 - (0.33 * cpu + 0.33 * memory + 0.34 * gpu))))
