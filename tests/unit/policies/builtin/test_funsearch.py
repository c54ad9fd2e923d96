"""Holds the three FunSearch policies to their formulas, in plain Python and compiled."""

from importlib import resources
from types import FunctionType

import numba
import numpy as np
import pytest

from podium.model import ANY_MODEL, GPU_MILLI, NODE_8, NODE_16, POD
from podium.model.fit import fits
from podium.model.records import node_view, pod_view
from podium.sim.funsearch.scores import FUNSEARCH_POLICIES, FunsearchNode

POLICIES = ["funsearch_4901", "funsearch_4816", "funsearch_4800"]
PAIRS = 1000


def names_of(policy):
    names = {}
    path = resources.files("podium.policies.builtin") / f"{policy}.py"
    exec(compile(path.read_text(), str(path), "exec"), names)
    return names


def compiled_score(policy):
    names = names_of(policy)
    for name, value in list(names.items()):
        if isinstance(value, FunctionType):
            names[name] = numba.njit(value)
    return names["score"]


def random_pod(rng, node):
    pod = np.zeros(1, POD)[0]
    pod["cpu_milli"] = rng.integers(0, node["cpu_milli_left"] + 1)
    pod["memory_mib"] = rng.integers(0, node["memory_mib_left"] + 1)
    gpu_count = rng.choice([0, 1, 1, 2, 4])
    is_share = gpu_count == 1 and rng.random() < 0.5
    pod["gpu_models"] = ANY_MODEL
    pod["gpu_count"] = gpu_count
    pod["gpu_milli"] = rng.integers(1, GPU_MILLI) if is_share else GPU_MILLI * (gpu_count > 0)
    return pod


def random_node(rng, dtype, gpu_count, free_milli):
    node = np.zeros(1, dtype)[0]
    for key, largest in (("cpu_milli", 128_000), ("memory_mib", 786_432)):
        # Sizes of every order, so that the bonuses for large and tiny nodes are met.
        total = int(largest ** rng.random())
        node[f"{key}_total"] = total
        node[f"{key}_left"] = rng.integers(0, total + 1)
    node["gpu_count"] = gpu_count
    node["gpu_milli_left"][:gpu_count] = free_milli(gpu_count)
    return node


def feasible_pairs(seed, dtype, gpu_counts, free_milli=None):
    rng = np.random.default_rng(seed)

    def mixed(count):
        return np.where(rng.random(count) < 0.3, GPU_MILLI, rng.integers(0, GPU_MILLI + 1, count))

    found = []
    while len(found) < PAIRS:
        node = random_node(rng, dtype, int(rng.choice(gpu_counts)), free_milli or mixed)
        pod = random_pod(rng, node)
        if fits(pod, node):
            found.append((pod, node))
    assert {int(pod["gpu_count"]) for pod, _ in found} == {0, 1, 2, 4}
    return found


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize(
    ("dtype", "gpu_counts"), [(NODE_8, [0, 1, 2, 4, 8]), (NODE_16, [1, 2, 4, 16])]
)
def test_compiled_and_plain_python_give_the_same_bits(policy, dtype, gpu_counts):
    plain, compiled = names_of(policy)["score"], compiled_score(policy)
    for pod, node in feasible_pairs(1000, dtype, gpu_counts):
        assert compiled(pod, node) == plain(pod_view(pod), node_view(node))


@pytest.mark.parametrize("policy", POLICIES)
def test_a_score_is_a_whole_number_of_at_least_one(policy):
    score = names_of(policy)["score"]
    for pod, node in feasible_pairs(1001, NODE_8, [0, 1, 2, 4, 8]):
        found = score(pod_view(pod), node_view(node))
        assert isinstance(found, int)
        assert found >= 1


@pytest.mark.parametrize("policy", POLICIES)
def test_where_gpus_are_free_or_taken_whole_it_agrees_with_the_compatibility_mode(policy):
    rng = np.random.default_rng(1002)
    score, original = names_of(policy)["score"], FUNSEARCH_POLICIES[policy]

    def whole(count):
        return GPU_MILLI * rng.integers(0, 2, count)

    for pod, node in feasible_pairs(1003, NODE_8, [0, 1, 2, 4, 8], whole):
        shown = node_view(node)
        free = shown.gpu_milli_left[: shown.gpu_count]
        original_node = FunsearchNode(*shown[:5], free.count(GPU_MILLI), free)
        totals = {
            "cpu_milli_total": max(1, shown.cpu_milli_total),
            "memory_mib_total": max(1, shown.memory_mib_total),
        }
        assert score(pod_view(pod), shown) == original(
            pod_view(pod), original_node._replace(**totals)
        )


def test_a_gpu_in_use_counts_as_free_for_a_pod_that_it_can_still_take():
    # One GPU with 400 milli left and one untouched: the original counts one free GPU.
    node = np.zeros(1, NODE_8)[0]
    node["cpu_milli_left"] = node["cpu_milli_total"] = 8000
    node["memory_mib_left"] = node["memory_mib_total"] = 8000
    node["gpu_count"] = 2
    node["gpu_milli_left"][:2] = (400, 1000)
    pod = np.zeros(1, POD)[0]
    pod["cpu_milli"] = pod["memory_mib"] = 1000
    pod["gpu_count"], pod["gpu_milli"] = 1, 300
    # 200 + 25 of CPU and memory; w = (2000 - 1400) / 2000 = 0.3; 1400 mod 300 = 200.
    expected = 225 + 0.7 * 200 - 0.2 * 200 - 0.05 * 600
    score = names_of("funsearch_4901")["score"]
    assert score(pod_view(pod), node_view(node)) == pytest.approx(expected, abs=1)
    original = FunsearchNode(8000, 8000, 8000, 8000, 2, 1, (400, 1000))
    # There w = (1000 - 1400) / 1000 = -0.4.
    assert FUNSEARCH_POLICIES["funsearch_4901"](pod_view(pod), original) == pytest.approx(
        expected + 0.7 * 200, abs=1
    )
