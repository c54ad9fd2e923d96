"""Descends the fragmentation gradient: places where the least GPU becomes useless (FGD).

Weng et al., "Beware of Fragmentation: Scheduling GPU-Sharing Workloads with Fragmentation
Gradient Descent", USENIX ATC 2023; FGDScore of hkust-adsl/kubernetes-scheduler-simulator. As
published: whole scores from 0 to 100, and a share pod goes to the GPU whose score is highest.
"""

import math

from podium.policies.fragmentation import fragmentation, typical_pods

UNIT_MILLI = 1000


def prepare(shapes):
    """Finds the typical pods of the workload."""
    return typical_pods(shapes)


def score(pod, node, gpu, table):
    """Turns the fall of the node's fragmentation into 0 to 100; 50 is no change."""
    slot, gpu_milli, gpu_count = 0, 0, pod.gpu_count
    if gpu >= 0:
        slot, gpu_milli, gpu_count = gpu, pod.gpu_milli, 0
        for lower in range(gpu):
            # Its twin scores the same and wins, being the lower slot.
            if node.gpu_milli_left[lower] == node.gpu_milli_left[gpu]:
                return 0
    before = fragmentation(node, table)
    after = fragmentation(node, table, pod.cpu_milli, slot, gpu_milli, gpu_count)
    return int(100 / (1 + math.exp((after - before) / UNIT_MILLI)))
