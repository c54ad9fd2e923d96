"""The plain rules of what fits where."""

import numpy as np
import pytest

from podium.model import Cluster, NodeSpec, PodSpec, Workload
from podium.model.fit import fits, fitting_nodes


@pytest.mark.parametrize(
    ("cpu_milli", "memory_mib", "is_fitting"),
    [(0, 0, True), (1, 0, False), (0, 1, False), (1, 1, False)],
)
def test_who_asks_for_nothing_fits_a_node_that_gave_more_than_it_has(
    cpu_milli, memory_mib, is_fitting
):
    """kube-scheduler compares only what a pod asks for, and so does the core."""
    nodes = Cluster.of([NodeSpec("n", 1000, 1024)]).nodes.copy()
    nodes["cpu_milli_left"], nodes["memory_mib_left"] = -500, -1
    pod = Workload.of([PodSpec("p", cpu_milli, memory_mib)]).pods[0]
    assert fits(pod, nodes[0]) == is_fitting
    np.testing.assert_array_equal(fitting_nodes(pod, nodes), [is_fitting])
