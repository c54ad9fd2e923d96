import numpy as np
import pytest

from podium.policies import PairPolicy
from podium.reports.bench.cases import dense_workload, fresh_policy, uniform_cluster


def test_a_fresh_policy_is_new_every_time_and_no_machine_code_is_kept():
    first, second = fresh_policy(1), fresh_policy(2)
    assert isinstance(first, PairPolicy)
    assert first.source.text != second.source.text
    assert not first.is_kept


def test_a_uniform_cluster_has_equal_nodes():
    cluster = uniform_cluster(3)
    assert (len(cluster), cluster.gpu_total) == (3, 24)
    assert len({node.tobytes() for node in cluster.nodes}) == 1


def test_a_dense_workload_keeps_so_many_pods_alive():
    workload = dense_workload(500, pods=20_000)
    assert np.diff(workload.arrival_s).tolist() == [1.0] * 19_999
    # One arrives a second and stays for about 500 seconds: Little's law.
    assert workload.duration_s.mean() == pytest.approx(500, rel=0.05)
