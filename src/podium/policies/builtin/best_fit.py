"""Fills the node that would be left with the least CPU and GPU.

BestFitScore of hkust-adsl/kubernetes-scheduler-simulator, the BestFit of Weng et al., USENIX
ATC 2023, section 6. Scores are whole numbers, as published; its stretching of them to 0..100,
which never changes the winner, is left out.
"""

CPU_MILLI_MAX = 128000
GPU_MILLI_MAX = 8000


def score(pod, node):
    """Prefers the node with the least left over."""
    gpu_milli_left = 0
    for slot in range(len(node.gpu_milli_left)):
        gpu_milli_left += node.gpu_milli_left[slot]
    cpu = (node.cpu_milli_left - pod.cpu_milli) / CPU_MILLI_MAX
    gpu = (gpu_milli_left - pod.gpu_count * pod.gpu_milli) / GPU_MILLI_MAX
    return int(100 * (1 - (0.5 * cpu + 0.5 * gpu)))
