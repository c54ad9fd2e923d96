from collections import Counter

import numpy as np
import pytest

from podium.errors import UsageError
from podium.model import Cluster, Workload
from podium.traces.openb.csv_file import read_csv
from podium.traces.openb.profile import (
    generate_cluster,
    generate_workload,
    openb_profile,
    sixteen_nodes,
)
from podium.traces.rejects import Rejects
from support.traces import assert_same_cluster, assert_same_workload, originals

PROFILE = openb_profile()


def rng(seed=1000):
    return np.random.default_rng(seed)


def test_at_the_size_of_openb_the_cluster_has_its_very_nodes():
    cluster = generate_cluster(PROFILE, 1213, rng())
    assert cluster.gpu_total == 6212
    assert cluster.cpu_milli_total == 107_018_000
    assert cluster.memory_mib_total == 503_828_480
    models = Counter(spec.gpu_model for spec in cluster.specs())
    assert models == {
        "G2": 549, "T4": 404, "P100": 134, "V100M16": 55, "G3": 39, "V100M32": 30, "A10": 2,
    }  # fmt: skip


def test_at_the_size_of_openb_the_workload_has_its_very_pods():
    workload = generate_workload(PROFILE, 8152, rng())
    assert workload.gpu_milli_total == 6_086_800
    assert int(workload.pods["cpu_milli"].sum()) == 85_436_012
    assert len(workload.shapes()) == 151


@pytest.mark.parametrize("count", [1, 2, 7, 100, 1213, 5000])
def test_a_cluster_of_any_size_keeps_the_proportions(count):
    cluster = generate_cluster(PROFILE, count, rng())
    assert len(cluster) == len(set(cluster.names)) == count
    g2 = sum(spec.gpu_model == "G2" for spec in cluster.specs())
    assert abs(g2 - count * 549 / 1213) < 1


@pytest.mark.parametrize("count", [1, 2, 50, 20_000])
def test_a_workload_of_any_size_has_pods_with_times(count):
    workload = generate_workload(PROFILE, count, rng())
    assert len(workload) == len(set(workload.names)) == count
    assert workload.arrival_s[0] == 0
    assert (np.diff(workload.arrival_s) >= 0).all()
    assert (workload.duration_s >= 1).all()
    assert np.array_equal(workload.duration_s, np.rint(workload.duration_s))


def test_generated_values_are_what_their_descriptions_build():
    cluster = generate_cluster(PROFILE, 40, rng())
    assert_same_cluster(cluster, Cluster.of(cluster.specs()))
    workload = generate_workload(PROFILE, 300, rng())
    assert_same_workload(workload, Workload.of(workload.specs()))


def test_run_times_and_arrivals_follow_the_original():
    workload = generate_workload(PROFILE, 8152, rng())
    assert workload.duration_s.mean() == pytest.approx(25_839, rel=0.03)
    assert np.median(workload.duration_s) == pytest.approx(540, rel=0.03)
    assert np.percentile(workload.duration_s, 95) == pytest.approx(16_377, rel=0.03)
    assert np.percentile(np.diff(workload.arrival_s), 90) == pytest.approx(948, rel=0.03)
    assert workload.arrival_s[-1] == pytest.approx(12_901_761, rel=0.05)


def test_the_seed_decides():
    first, second = (generate_cluster(PROFILE, 99, rng()) for _ in range(2))
    assert_same_cluster(first, second)
    other = generate_cluster(PROFILE, 99, rng(1001))
    assert first.nodes.tolist() != other.nodes.tolist()
    pods = [generate_workload(PROFILE, 99, rng(seed)).pods.tolist() for seed in (1000, 1000, 1001)]
    assert pods[0] == pods[1] != pods[2]


def test_sixteen_nodes_are_those_of_the_list():
    cluster = sixteen_nodes(PROFILE)
    assert cluster.gpu_total == 64
    assert cluster.names[9:11] == ("openb-node-0009", "openb-node-0022")
    models = [spec.gpu_model for spec in cluster.specs()]
    assert models == ["P100"] * 10 + ["G3", "V100M32", "V100M32", "V100M16", "G2", "G2"]


@pytest.mark.parametrize("count", [0, -5])
def test_nothing_cannot_be_generated(count):
    with pytest.raises(UsageError, match="cannot be generated"):
        generate_cluster(PROFILE, count, rng())
    with pytest.raises(UsageError, match="cannot be generated"):
        generate_workload(PROFILE, count, rng())


@pytest.mark.openb
def test_the_profile_agrees_with_the_original_lists():
    folder = originals()
    nodes = read_csv(folder / "openb_node_list_gpu_node.csv", Rejects()).cluster
    pods = read_csv(folder / "openb_pod_list_default.csv", Rejects()).workload
    cluster = generate_cluster(PROFILE, 1213, rng())
    assert cluster.gpu_models == nodes.gpu_models
    assert Counter(map(str, cluster.nodes)) == Counter(map(str, nodes.nodes))
    workload = generate_workload(PROFILE, 8152, rng())
    assert Counter(workload.pods.tolist()) == Counter(pods.pods.tolist())
    small = folder / "openb_node_list_16_node.csv"
    if small.exists():
        assert_same_cluster(sixteen_nodes(PROFILE), read_csv(small, Rejects()).cluster)
