"""Checks every formula against figures worked out by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.model import NodeSpec, Pod
from podium.sim.funsearch.scores import FUNSEARCH_POLICIES, FunsearchNode

USED = FunsearchNode(4000, 8000, 2001, 8000, 2, 1, (501, 1000))
EMPTY = FunsearchNode.of(NodeSpec("empty", 8000, 8000, 2, "P100"))
BUSY_CPU = FunsearchNode(4000, 8000, 8000, 8000, 2, 2, (1000, 1000))
CPU_USED = FunsearchNode(4000, 8000, 2001, 8000, 0, 0, ())
CPU_FULL = FunsearchNode(700, 8000, 8000, 8000, 0, 0, ())
CPU_EMPTY = FunsearchNode.of(NodeSpec("cpu", 16000, 8000))
TINY = FunsearchNode(1000, 1000, 10, 10, 0, 0, ())


def pod(cpu_milli=1000, memory_mib=1000, gpu_count=1, gpu_milli=500):
    return Pod(cpu_milli, memory_mib, gpu_count, gpu_milli, gpu_models=-1, priority=0, gang=0)


SHARE = pod()
PLAIN = pod(cpu_milli=1500, gpu_count=0, gpu_milli=0)
SMALL = pod(cpu_milli=500, memory_mib=500, gpu_count=0, gpu_milli=0)
SPECK = pod(cpu_milli=100, memory_mib=5, gpu_count=0, gpu_milli=0)

CASES = [
    ("first_fit", SHARE, USED, 1000),
    # By hand 0.33 * 3000/8000 + 0.33 * 1001/8000 + 0.34 * 0/2 = 0.16504125
    ("best_fit", SHARE, USED, 8349),
    ("worst_fit", SHARE, USED, 1650),
    # By hand 0.5 * 100 + 0.250125 * 50 - 0.4995 + 25 + 1.501 * 200 - 0.2 * 1 - 0.05 * 499
    ("funsearch_4901", SHARE, USED, 362),
    # By hand 100 + 100 - 0.25 + 25, and 15 for a node above 10 CPUs
    ("funsearch_4901", PLAIN, CPU_EMPTY, 239),
    # By hand 0.0875 * 50 + 100 - 0.5 * abs(0.0875 - 1) - 20
    ("funsearch_4901", SMALL, CPU_FULL, 83),
    # By hand 100 + 100 - 0.5 * abs(100 - 20) - 0.01 * 1000 - 0.1 * 2
    ("funsearch_4901", SPECK, TINY, 149),
    # By hand 0.15625 + 0.13123125 + 0.45 * 0.999 + 0.03750625 + 0.03697286 - 0.0000998 + 0.00446767
    ("funsearch_4816", SHARE, USED, 8158),
    # By hand 0.309375 + 0.30620625 + 0.0812625 + 0.07755492 - 0.0000125
    ("funsearch_4816", PLAIN, CPU_USED, 7743),
    # A GPU far larger than the pod: the squared rest outweighs everything.
    ("funsearch_4816", SHARE, EMPTY, 1),
    # By hand 434.97 + 146.2027 + 2.3675 + 449.1005
    ("funsearch_4800", SHARE, USED, 1032),
    # By hand 600 * (0.6 * 0.6875 + 0.4 * 0.874875) + 300 * 0.812625 ** 2.5 + 2.3675
    ("funsearch_4800", PLAIN, CPU_USED, 638),
    ("gpu_aware", SHARE, USED, 9000 + 5000 + 750),
    ("gpu_aware", SHARE, EMPTY, 3000 + 1000),
    ("gpu_aware", SHARE, BUSY_CPU, 1 + 500),
    ("gpu_aware", PLAIN, USED, 100 + 812),
    ("gpu_aware", SMALL, EMPTY, 1000 + 1000),
    # By hand 4000 * (1 - (0.3125 + 0.125125) / 2) = 3124.75
    ("gpu_aware", PLAIN, CPU_USED, 6000 + 3124 + 812),
    ("gpu_aware", SMALL, CPU_EMPTY, 8000 + 968),
    # By hand 3333 * (0.375 + 0.125125 + 0)
    ("utilization_based", SHARE, USED, 1666),
    # By hand 3333 * (0.875 + 0.875 + 0.5)
    ("utilization_based", SHARE, EMPTY, 7499 + 5000),
    # By hand 10000 * (1 - (0.3125 + 0.125125 + 0) / 3) + 2000
    ("utilization_based", PLAIN, CPU_USED, 8541 + 2000),
    ("utilization_based", SMALL, CPU_FULL, 8000),
    ("utilization_based", pod(700, 1000, 0, 0), CPU_FULL, 100),
    ("utilization_based", SMALL, CPU_EMPTY, 100),
]


@pytest.mark.parametrize(("policy", "pod", "node", "score"), CASES)
def test_a_score_is_what_its_formula_gives_by_hand(policy, pod, node, score):
    assert FUNSEARCH_POLICIES[policy](pod, node) == score


INFEASIBLE = {
    "too little CPU": pod(cpu_milli=4001),
    "too little memory": pod(memory_mib=2002),
    "too few GPUs by count": pod(gpu_count=2, gpu_milli=500),
    "too few GPUs by milli": pod(gpu_milli=1001),
}


@pytest.mark.parametrize("policy", FUNSEARCH_POLICIES)
@pytest.mark.parametrize("reason", INFEASIBLE)
def test_a_node_that_cannot_take_the_pod_scores_zero(policy, reason):
    assert FUNSEARCH_POLICIES[policy](INFEASIBLE[reason], USED) == 0


@given(
    policy=st.sampled_from(sorted(FUNSEARCH_POLICIES)),
    cpu=st.tuples(st.integers(0, 200_000), st.integers(0, 200_000)).map(sorted),
    memory=st.tuples(st.integers(0, 900_000), st.integers(0, 900_000)).map(sorted),
    free=st.lists(st.integers(0, 1000), max_size=8),
    data=st.data(),
)
def test_a_node_that_can_take_the_pod_scores_a_whole_number_of_at_least_one(
    policy, cpu, memory, free, data
):
    gpu_milli = data.draw(st.integers(1, max(free))) if any(free) else 0
    asked = pod(
        cpu_milli=data.draw(st.integers(0, cpu[0])),
        memory_mib=data.draw(st.integers(0, memory[0])),
        gpu_count=1 if gpu_milli else 0,
        gpu_milli=gpu_milli,
    )
    node = FunsearchNode(
        cpu[0], max(1, cpu[1]), memory[0], max(1, memory[1]), len(free), len(free), tuple(free)
    )
    score = FUNSEARCH_POLICIES[policy](asked, node)
    assert isinstance(score, int)
    assert score >= 1


def test_a_node_without_cpu_or_memory_can_be_scored():
    node = FunsearchNode.of(NodeSpec("bare", 0, 0, 1, "P100"))
    bare = pod(cpu_milli=0, memory_mib=0)
    assert all(score(bare, node) >= 1 for score in FUNSEARCH_POLICIES.values())
