"""Compacts: fills the nodes in use and leaves the others empty.

A step up the reward of roeehub/DRL-k8s-scheduler in its compact form: the sum over nodes of the
square of the used share, here of CPU, memory and GPU instead of memory alone.
"""

GPU_MILLI = 1000


def score(pod, node):
    """Sums how much the squares of the used shares grow: the most on a full node."""
    gpu_left = 0
    for slot in range(len(node.gpu_milli_left)):
        gpu_left += node.gpu_milli_left[slot]
    total = growth(node.cpu_milli_left, pod.cpu_milli, node.cpu_milli_total)
    total += growth(node.memory_mib_left, pod.memory_mib, node.memory_mib_total)
    total += growth(gpu_left, pod.gpu_count * pod.gpu_milli, GPU_MILLI * node.gpu_count)
    return total


def growth(left, wanted, capacity):
    """Gives the rise of the square of one used share; 0 for a resource that the node lacks."""
    if capacity == 0:
        return 0.0
    before = (capacity - left) / capacity
    after = (capacity - left + wanted) / capacity
    return after * after - before * before
