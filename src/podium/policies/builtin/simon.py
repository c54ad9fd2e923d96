"""Takes the node that the pod would fill most, measured by what an empty node has to spare.

Simon of hkust-adsl/kubernetes-scheduler-simulator (pkg/simulator/plugin/simon.go), which has it
from alibaba/open-simulator: whole scores, stretched to 0..100 over the nodes that fit. GPUs do
not count there, being asked for in annotations.
"""

from podium.policies.mixture import Mixture, Term


def filled(pod, node):
    """Gives the larger of the CPU and memory demands over what an empty node would have left."""
    cpu = demand_over_rest(pod.cpu_milli, node.cpu_milli_total)
    memory = demand_over_rest(pod.memory_mib, node.memory_mib_total)
    return int(100 * max(cpu, memory) + 0.5)


def demand_over_rest(wanted, capacity):
    """Divides a demand by what it leaves; 1 when it leaves nothing."""
    if wanted == 0:
        return 0.0
    return wanted / (capacity - wanted) if wanted < capacity else 1.0


class Policy(Mixture):
    """Compares the nodes that fit."""

    terms = (Term(1, filled, "stretched"),)
