import numpy as np
import pytest

from podium.model.records import NODE_8, NODE_16
from podium.policies import ClusterPolicy, load
from podium.policies.policy import from_function
from podium.service.extender.scorer import MOST_SHAPES, Scorer
from podium.traces import load_trace

TRACE = load_trace("openb")
SHAPES = TRACE.workload.shapes()


def nodes_of(dtype=NODE_8, count=40):
    rng = np.random.default_rng(3)
    nodes = np.zeros(count, dtype)
    nodes["cpu_milli_total"] = nodes["memory_mib_total"] = 96_000
    nodes["cpu_milli_left"] = nodes["memory_mib_left"] = rng.integers(0, 96, count) * 1000
    nodes["gpu_count"] = 8
    nodes["gpu_milli_left"][:, :8] = rng.integers(0, 11, (count, 8)) * 100
    return nodes


@pytest.mark.parametrize("name", ["fgd", "first-fit", "best-fit", "fed-gpu", "patient-93", "mlp"])
@pytest.mark.parametrize("dtype", [NODE_8, NODE_16])
def test_scores_that_are_kept_are_those_of_the_policy(name, dtype):
    policy, rng = load(name), np.random.default_rng(5)
    scorer, nodes = Scorer(policy, SHAPES), nodes_of(dtype)
    pods = SHAPES.pods[rng.integers(0, len(SHAPES), 6)]
    for _ in range(60):
        pod = pods[rng.integers(0, len(pods))]
        found = scorer.scores(pod, nodes)
        fresh = policy.session(SHAPES).scores(pod, nodes)
        assert found.scores.tolist() == fresh.scores.tolist()
        assert found.gpu_slots.tolist() == fresh.gpu_slots.tolist()
        changed = rng.integers(0, len(nodes), 2)
        nodes["cpu_milli_left"][changed] = rng.integers(0, 96) * 1000
        nodes["gpu_milli_left"][changed, rng.integers(0, 8)] = rng.integers(0, 11) * 100


def test_nodes_that_did_not_change_are_not_scored_again():
    asked = []

    def score(_pod, node):
        asked.append(node.cpu_milli_left)
        return node.cpu_milli_left

    # What is called like a function is not compiled, and so can count.
    scorer, nodes = Scorer(from_function(_Called(score)), SHAPES), nodes_of()
    nodes["cpu_milli_left"], nodes["memory_mib_left"] = 90_000, 90_000
    pod = SHAPES.pods[0].copy()
    pod["gpu_count"] = 0
    scorer.scores(pod, nodes)
    assert len(asked) == len(nodes)
    nodes["cpu_milli_left"][7] -= 1
    assert scorer.scores(pod, nodes).scores[7] == 89_999
    assert asked[len(nodes) :] == [89_999]
    scorer.scores(pod, nodes)
    assert len(asked) == len(nodes) + 1


class _Called:
    def __init__(self, function):
        self._function = function

    def __call__(self, pod, node):
        return self._function(pod, node)


def test_a_cluster_that_grows_is_scored_as_a_whole():
    scorer, nodes = Scorer(load("best-fit"), SHAPES), nodes_of()
    pod = SHAPES.pods[0]
    scorer.scores(pod, nodes[:30].copy())
    found = scorer.scores(pod, nodes)
    assert found.scores.tolist() == load("best-fit").scores(pod, nodes).tolist()


def test_so_many_shapes_are_kept_and_no_more():
    scorer, nodes = Scorer(load("best-fit"), SHAPES), nodes_of()
    for number in range(MOST_SHAPES + 5):
        pod = SHAPES.pods[0].copy()
        pod["cpu_milli"] = number
        scorer.scores(pod, nodes)
    assert len(scorer._rows) == MOST_SHAPES


def test_a_cluster_policy_is_asked_every_time_and_remembers():
    scorer, nodes = Scorer(load("round-robin"), SHAPES), nodes_of()
    nodes["cpu_milli_left"], nodes["memory_mib_left"] = 90_000, 90_000
    pod = SHAPES.pods[0].copy()
    pod["gpu_count"] = 0
    best = [int(scorer.scores(pod, nodes).scores.argmax()) for _ in range(2)]
    best.append(int(scorer.refresh(SHAPES).scores(pod, nodes).scores.argmax()))
    assert best == [0, 1, 2]


def test_a_table_is_prepared_from_the_pods_given():
    scorer, nodes, pod = Scorer(load("fgd"), SHAPES), nodes_of(), SHAPES.pods[0]
    other = TRACE.workload.taken(np.arange(5)).shapes()
    fresh = load("fgd").session(other).scores(pod, nodes).scores
    assert scorer.refresh(other).scores(pod, nodes).scores.tolist() == fresh.tolist()


@pytest.mark.parametrize("dtype", [NODE_8, NODE_16])
def test_a_cluster_policy_is_compiled_without_remembering_the_example(dtype):
    seen = []

    class Noting:
        def choose(self, _pod, nodes, _feasible):
            seen.append((self, nodes.dtype))
            return 0

    scorer = Scorer(ClusterPolicy("noting", lambda _seed: Noting()), SHAPES)
    scorer.warm(np.zeros(0, dtype))
    scorer.scores(SHAPES.pods[0], nodes_of(dtype))
    (example, compiled_for), (own, _) = seen
    assert compiled_for == dtype
    assert own is not example
