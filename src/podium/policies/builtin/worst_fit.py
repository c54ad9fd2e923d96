"""Spreads: takes the node that would be left with the most CPU and GPU.

WorstFitScore of hkust-adsl/kubernetes-scheduler-simulator (pkg/simulator/plugin). Its squeezing
of the scores to 0..100, which only makes more of them equal, is left out.
"""

GPU_WEIGHT = 100


def score(pod, node):
    """Counts what is left over, one GPU milli as much as 100 CPU milli."""
    gpu_milli_left = 0
    for slot in range(len(node.gpu_milli_left)):
        gpu_milli_left += node.gpu_milli_left[slot]
    cpu = node.cpu_milli_left - pod.cpu_milli
    gpu = gpu_milli_left - pod.gpu_count * pod.gpu_milli
    return cpu + GPU_WEIGHT * gpu
