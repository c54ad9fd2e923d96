import numpy as np
import pytest

from podium.reports.speed_case import dense_workload, uniform_cluster


def test_a_uniform_cluster_has_equal_nodes():
    cluster = uniform_cluster(3)
    assert (len(cluster), cluster.gpu_total) == (3, 24)
    assert len({node.tobytes() for node in cluster.nodes}) == 1


def test_a_dense_workload_keeps_so_many_pods_alive():
    workload = dense_workload(500, pods=20_000)
    assert np.diff(workload.arrival_s).tolist() == [1.0] * 19_999
    # One arrives a second and stays for about 500 seconds: Little's law.
    assert workload.duration_s.mean() == pytest.approx(500, rel=0.05)
