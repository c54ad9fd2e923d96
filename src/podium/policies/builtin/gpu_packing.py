"""Packs: shared GPUs first, then free GPUs of nodes in use, then idle nodes with few GPUs.

GpuPackingScore of hkust-adsl/kubernetes-scheduler-simulator, the GpuPacking of Weng et al.,
USENIX ATC 2023, section 6.
"""

GPU_MILLI = 1000


def score(pod, node):
    """Gives 50 to 100 for a GPU in use, 33 to 49 for a node in use, less for an idle node."""
    if pod.gpu_count == 0:
        return 0
    free, tightest = 0, GPU_MILLI
    for slot in range(len(node.gpu_milli_left)):
        left = node.gpu_milli_left[slot]
        if left == GPU_MILLI:
            free += 1
        if left >= pod.gpu_milli:
            tightest = min(tightest, left)
    if free == node.gpu_count:
        return max(33 - free, free)
    if tightest == GPU_MILLI:
        return max(50 - pod.gpu_count, 33)
    return max(100 - 100 * tightest // GPU_MILLI // 10, 50)
