"""Takes the node that the pod would fill most, measured by what an empty node has to spare.

Simon of hkust-adsl/kubernetes-scheduler-simulator (pkg/simulator/plugin/simon.go), which has it
from alibaba/open-simulator: whole scores, stretched to 0..100 over the nodes that fit. GPUs do
not count there, being asked for in annotations.
"""

import numpy as np


class Policy:
    """Compares the nodes that fit."""

    def __init__(self, seed):
        """Leaves nothing to chance."""

    def choose(self, pod, nodes, feasible):
        """Gives the first node with the highest score."""
        return int(self.scores(pod, nodes, feasible).argmax())

    def scores(self, pod, nodes, feasible):
        """Gives 0..100 to the nodes that fit, and less to the others."""
        cpu = fill(pod.cpu_milli, nodes["cpu_milli_total"])
        memory = fill(pod.memory_mib, nodes["memory_mib_total"])
        raw = np.floor(100 * np.maximum(cpu, memory) + 0.5)
        low, high = raw[feasible].min(), raw[feasible].max()
        stretched = (raw - low) * 100 // max(1, high - low)
        return np.where(feasible, stretched, -1)


def fill(wanted, capacity):
    """Divides a demand by what would be left of the capacity; 1 when nothing would be."""
    rest = np.maximum(capacity - np.float64(wanted), 0)
    return np.where(rest > 0, wanted / np.maximum(rest, 1), 1.0 if wanted > 0 else 0.0)
