"""Keeps pods of one kind together: parts of a GPU, one GPU, two GPUs and so on.

GpuClusteringScore of hkust-adsl/kubernetes-scheduler-simulator, the GpuClustering of Weng et
al., USENIX ATC 2023, section 6, after Xiao et al., "Gandiva", OSDI 2018.
"""

GPU_MILLI = 1000
GPU_MILLI_MAX = 8000
SHARE_CLASS = 1


def score(pod, node):
    """Prefers nodes with pods of this kind only, then among others, then idle ones."""
    if pod.gpu_count == 0:
        return 0
    gpu_milli_left = 0
    for slot in range(len(node.gpu_milli_left)):
        gpu_milli_left += node.gpu_milli_left[slot]
    # Published for 8 GPUs a node; a larger node is measured by its own.
    capacity = max(GPU_MILLI_MAX, GPU_MILLI * node.gpu_count)
    used = 25 * (capacity - gpu_milli_left) // capacity
    kind = SHARE_CLASS if pod.gpu_milli < GPU_MILLI else 1 << pod.gpu_count
    if node.gpu_classes == kind:
        return 75 + used
    if node.gpu_classes & kind:
        return 50 + used
    return 25 + used if node.gpu_classes == 0 else used
