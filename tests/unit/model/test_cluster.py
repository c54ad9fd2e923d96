import numpy as np
import pytest

from podium.errors import InputError
from podium.model import GPU_MILLI, NODE_8, NODE_16, Cluster, NodeSpec
from podium.model.cluster import LIMIT, node_problem
from support.traces import assert_same_cluster, small_nodes


def test_a_new_cluster_is_empty():
    cluster = Cluster.of(small_nodes())
    assert np.array_equal(cluster.nodes["cpu_milli_left"], cluster.nodes["cpu_milli_total"])
    assert np.array_equal(cluster.nodes["memory_mib_left"], cluster.nodes["memory_mib_total"])
    assert not cluster.nodes["gpu_classes"].any()


def test_slots_that_a_node_does_not_have_are_empty():
    cluster = Cluster.of(small_nodes())
    assert cluster.nodes["gpu_milli_left"][1].tolist() == [GPU_MILLI] * 2 + [0] * 6


def test_totals_are_sums_over_nodes():
    cluster = Cluster.of(small_nodes())
    assert cluster.gpu_total == 10
    assert cluster.gpu_milli_total == 10_000
    assert cluster.cpu_milli_total == 192_000
    assert cluster.memory_mib_total == 786_432
    assert len(cluster) == 3


def test_totals_do_not_overflow_a_record():
    cluster = Cluster.of(NodeSpec(f"n{i}", LIMIT, LIMIT) for i in range(4))
    assert cluster.cpu_milli_total == cluster.memory_mib_total == 4 * LIMIT


def test_models_are_numbered_by_name_and_only_where_there_are_gpus():
    cluster = Cluster.of([NodeSpec("a", 1, 1, 1, "T4"), NodeSpec("b", 1, 1, 0, "A10")])
    assert cluster.gpu_models == ("T4",)
    assert cluster.nodes["gpu_model"].tolist() == [0, -1]


def test_racks_are_numbered_in_order_of_appearance():
    racks = ["z", "", "y", "z"]
    specs = [NodeSpec(name, 1, 1, rack=rack) for name, rack in zip("abcd", racks, strict=True)]
    cluster = Cluster.of(specs)
    assert cluster.racks == ("z", "y")
    assert cluster.nodes["rack"].tolist() == [0, -1, 1, 0]


def test_more_than_eight_gpus_take_the_wider_record():
    assert Cluster.of([NodeSpec("a", 1, 1, 8, "X")]).nodes.dtype == NODE_8
    assert Cluster.of([NodeSpec("a", 1, 1, 9, "X")]).nodes.dtype == NODE_16


def test_descriptions_come_back_as_they_were_given():
    assert Cluster.of(small_nodes()).specs() == small_nodes()
    assert_same_cluster(Cluster.of(small_nodes()), Cluster.of(Cluster.of(small_nodes()).specs()))


def test_a_cluster_needs_a_node():
    with pytest.raises(InputError, match="no nodes"):
        Cluster.of([], name="empty")


def test_two_nodes_cannot_share_a_name():
    with pytest.raises(InputError, match='two nodes are named "a"'):
        Cluster.of([NodeSpec("a", 1, 1), NodeSpec("a", 1, 1)])


def test_more_models_than_bits_are_refused():
    with pytest.raises(InputError, match="more than 53 GPU models"):
        Cluster.of(NodeSpec(f"n{i}", 1, 1, 1, f"M{i}") for i in range(54))


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        (NodeSpec("", 1, 1), "name is empty"),
        (NodeSpec("a", -1, 1), "cpu_milli is -1"),
        (NodeSpec("a", 1, LIMIT + 1), f"memory_mib is {LIMIT + 1}"),
        (NodeSpec("a", 1, 1, 17, "X"), "gpu_count is 17"),
        (NodeSpec("a", 1, 1, -1), "gpu_count is -1"),
        (NodeSpec("a", 1, 1, 1, "A|B"), 'gpu_model is "A|B"'),
    ],
)
def test_a_bad_description_says_what_is_wrong(spec, problem):
    assert node_problem(spec).startswith(problem)
    with pytest.raises(InputError, match="node"):
        Cluster.of([spec])


def test_a_good_description_has_no_problem():
    assert not any(node_problem(spec) for spec in small_nodes())
