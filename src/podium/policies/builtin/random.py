"""Takes any node that fits, and any of its GPUs that fits, with equal chances.

RandomScore with gpuSelMethod random of hkust-adsl/kubernetes-scheduler-simulator, the Random of
Weng et al., USENIX ATC 2023, section 6.
"""

TIES = "random"
GPU_CHOICE = "random"


def score(pod, node):
    """Likes every node alike, so that chance decides."""
    return 0
