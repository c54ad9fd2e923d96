"""Does as kube-scheduler does when told to pack: MostAllocated instead of LeastAllocated.

NodeResourcesFit with MostAllocated and NodeResourcesBalancedAllocation, weight 1 each, over CPU
and memory: kubernetes/kubernetes, pkg/scheduler/framework/plugins/noderesources, release 1.36.
To count GPUs as well, give a KubeSchedulerConfiguration file as the policy.
"""

from podium.policies.builtin.kube_default import balanced_allocation
from podium.policies.noderesources import most_allocated

TIES = "random"


def score(pod, node):
    """Adds up the used share and the balance gained, 0 to 100 each."""
    return most_allocated(pod, node, 1, 1, 0) + balanced_allocation(pod, node)
