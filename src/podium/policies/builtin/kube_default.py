"""Does as kube-scheduler does by default: spreads, and improves the balance of CPU and memory.

NodeResourcesFit with LeastAllocated and NodeResourcesBalancedAllocation, weight 1 each, over
CPU and memory: kubernetes/kubernetes, pkg/scheduler/framework/plugins/noderesources, release
1.36. The other default score plugins look at taints, affinity, topology and images, and score
all nodes alike here. Ties go to any of the best nodes, as there.
"""

from podium.policies.noderesources import (
    LEFT_OUT,
    balance,
    balance_gained,
    cpu_share,
    least_allocated,
    memory_share,
)

TIES = "random"


def score(pod, node):
    """Adds up the free share and the balance gained, 0 to 100 each."""
    return least_allocated(pod, node, 1, 1, 0) + balanced_allocation(pod, node)


def balanced_allocation(pod, node):
    """Scores the change of balance between CPU and memory; pods that ask for neither get 0."""
    if pod.cpu_milli == 0 and pod.memory_mib == 0:
        return 0
    after = balance(cpu_share(pod, node, 1), memory_share(pod, node, 1), LEFT_OUT)
    before = balance(cpu_share(pod, node, 0), memory_share(pod, node, 0), LEFT_OUT)
    return balance_gained(after, before)
