"""Avoids nodes whose free CPU and GPU point the way of the pod's demand.

DotProductScore of hkust-adsl/kubernetes-scheduler-simulator (dimExtMethod merge, normMethod
max), the DotProd of Weng et al., USENIX ATC 2023, section 6, after Grandl et al., "Multi-Resource
Packing for Cluster Schedulers", SIGCOMM 2014. Unlike there, a larger product scores lower.
"""

CPU_MILLI_MAX = 128000
GPU_MILLI_MAX = 8000


def score(pod, node):
    """Turns the dot product of free and wanted resources into 100 and less."""
    gpu_milli_left = 0
    for slot in range(len(node.gpu_milli_left)):
        gpu_milli_left += node.gpu_milli_left[slot]
    cpu = (node.cpu_milli_left / CPU_MILLI_MAX) * (pod.cpu_milli / CPU_MILLI_MAX)
    gpu = (gpu_milli_left / GPU_MILLI_MAX) * (pod.gpu_count * pod.gpu_milli / GPU_MILLI_MAX)
    return int(100 * (1 - (cpu + gpu) / 2))
