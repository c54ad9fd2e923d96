import gzip
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.errors import InputError
from podium.model import Cluster, NodeSpec, PodSpec, Workload
from podium.model.workload import gpu_demand
from podium.sim import Order, inflate, read_order
from podium.sim.orders import check_order, read_seeds, shuffled_rank

CLUSTER = Cluster.of([NodeSpec(f"n{i}", 9000, 9000, 4, "A") for i in range(5)])
CAPACITY = 20_000
WORKLOAD = Workload.of(
    [PodSpec(f"p{i}", 100, 100, *gpus) for i, gpus in enumerate([(0, 0), (1, 300), (4, 1000)] * 2)]
)


def demand(order, workload=WORKLOAD):
    return int(gpu_demand(workload.pods)[order.arrivals].sum())


def write(path, *lines):
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "wt") as file:
        file.write("".join(f"{line}\n" for line in lines))
    return path


@given(st.integers(0, 50), st.integers(1, 60))
def test_ranks_are_a_permutation_that_the_seed_fixes(seed, count):
    ranks = shuffled_rank(count, seed)
    assert sorted(ranks) == list(range(count))
    assert (ranks == shuffled_rank(count, seed)).all()


def test_other_seeds_rank_and_inflate_otherwise():
    assert (shuffled_rank(50, 1) != shuffled_rank(50, 2)).any()
    one, other = (inflate(CLUSTER, WORKLOAD, 2.0, seed) for seed in (1, 2))
    assert one.arrivals.tolist() != other.arrivals.tolist()


@given(st.integers(0, 200), st.floats(0.45, 3))
def test_inflation_begins_with_the_whole_trace_shuffled_and_stops_short_of_the_limit(seed, ratio):
    order = inflate(CLUSTER, WORKLOAD, ratio, seed)
    assert sorted(order.arrivals[:6].tolist()) == list(range(6))
    assert order.node_rank is None
    # Every draw but the last was tested with its per-GPU milli, and at most 4000 came with one.
    per_gpu = WORKLOAD.pods["gpu_milli"]
    for place in range(6, len(order.arrivals)):
        before = demand(Order(order.arrivals[:place]))
        assert before + per_gpu[order.arrivals[place]] <= ratio * CAPACITY
    assert demand(order) > ratio * CAPACITY - 1000


@given(st.integers(0, 200), st.floats(0.01, 0.42))
def test_a_trace_above_the_limit_loses_random_pods_until_it_is_not(seed, ratio):
    order = inflate(CLUSTER, WORKLOAD, ratio, seed)
    assert len(set(order.arrivals.tolist())) == len(order.arrivals) < 6
    assert demand(order) <= ratio * CAPACITY


def test_thinning_removes_no_pod_more_than_it_must():
    pods = Workload.of([PodSpec(f"p{i}", 100, 100, 1, 1000) for i in range(30)])
    for seed in range(20):
        assert len(inflate(CLUSTER, pods, 0.5, seed).arrivals) == 10


def test_pods_without_gpus_arrive_once_each():
    pods = Workload.of([PodSpec(f"p{i}", 100, 100) for i in range(9)])
    assert sorted(inflate(CLUSTER, pods, 1.3, 0).arrivals) == list(range(9))


@pytest.mark.parametrize("name", ["orders.jsonl", "orders.jsonl.gz"])
def test_an_order_is_read_by_its_seed(tmp_path, name):
    path = write(
        tmp_path / name,
        json.dumps({"seed": 42, "arrivals": [2, 0, 0]}),
        json.dumps({"seed": 43, "arrivals": [1], "node_rank": [1, 0]}),
    )
    assert read_order(path, 42).arrivals.tolist() == [2, 0, 0]
    assert read_order(path, 42).node_rank is None
    assert read_order(path, 43).node_rank.tolist() == [1, 0]
    assert read_seeds(path) == [42, 43]


def test_a_seed_that_is_not_there_is_answered_with_those_that_are(tmp_path):
    path = write(tmp_path / "o.jsonl", '{"seed": 42, "arrivals": [0]}', '{"seed": 44}')
    with pytest.raises(InputError, match="no order for seed 7") as caught:
        read_order(path, 7)
    assert caught.value.hint == "it holds the seeds: 42, 44"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("", "not JSON"),
        ("{", "not JSON"),
        ("[1]", "a JSON object is expected"),
        ('{"seed": 1}', "arrivals is missing"),
        ('{"seed": 1, "arrivals": 3}', "a list of whole numbers is expected"),
        ('{"seed": 1, "arrivals": [0.5]}', "a list of whole numbers is expected"),
        ('{"seed": 1, "arrivals": [NaN]}', "a list of whole numbers is expected"),
        ('{"seed": 1, "arrivals": [[0]]}', "a list of whole numbers is expected"),
        ('{"seed": 1, "arrivals": ["0"]}', "a list of whole numbers is expected"),
        ('{"seed": 1, "arrivals": [99999999999999999999]}', "a number is too large"),
        ('{"seed": 1, "arrivals": [0], "node_rank": [true]}', "whole numbers is expected"),
    ],
)
def test_a_bad_line_is_named_by_its_number(tmp_path, line, message):
    path = write(tmp_path / "o.jsonl", '{"seed": 0, "arrivals": [0]}', line)
    with pytest.raises(InputError, match=message) as caught:
        read_order(path, 1)
    assert f"{path}, line 2" in caught.value.where


def test_a_file_that_is_not_there_is_an_input_error(tmp_path):
    with pytest.raises(InputError, match="no such file"):
        read_order(tmp_path / "none.jsonl", 1)


@pytest.mark.parametrize(
    "damage",
    [
        lambda raw: raw[: len(raw) // 2],
        lambda raw: raw[:100] + b"\xff" * 30 + raw[130:],
        lambda _raw: b'{"seed": 1, "arrivals": [0]}',
    ],
)
def test_a_damaged_archive_is_an_input_error(tmp_path, damage):
    row = {"seed": 1, "arrivals": shuffled_rank(5000, 0).tolist()}
    path = write(tmp_path / "o.jsonl.gz", json.dumps(row))
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(InputError, match="gzip data cannot be read"):
        read_order(path, 1)


def test_bytes_that_are_not_text_are_an_input_error(tmp_path):
    path = tmp_path / "o.jsonl"
    path.write_bytes(b'{"seed": "\xff"}\n')
    with pytest.raises(InputError, match="not UTF-8 text"):
        read_seeds(path)


@pytest.mark.parametrize("pod", [-1, 6])
def test_an_order_of_pods_that_the_trace_lacks_is_refused(pod):
    with pytest.raises(InputError, match=f"the order names pod {pod}, the trace has 6"):
        check_order(Order(np.array([0, pod])), CLUSTER, WORKLOAD)


def test_an_order_without_arrivals_is_refused():
    with pytest.raises(InputError, match="no arrivals"):
        check_order(Order(np.zeros(0, np.int64)), CLUSTER, WORKLOAD)


@pytest.mark.parametrize("ranks", [[0, 1, 2, 3], [0, 1, 2, 3, 3], [1, 2, 3, 4, 5]])
def test_ranks_that_are_no_permutation_of_the_nodes_are_refused(ranks):
    with pytest.raises(InputError, match="not a permutation of the 5 nodes"):
        check_order(Order(np.array([0]), np.array(ranks)), CLUSTER, WORKLOAD)
