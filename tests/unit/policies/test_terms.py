"""The terms of a score add up to it."""

import math

import numpy as np
import pytest

from podium.model.cluster import Cluster, NodeSpec
from podium.model.records import ANY_MODEL, POD
from podium.model.workload import Shapes
from podium.policies import load
from podium.policies.terms import term_values
from support.scheduler_configs import scoring, write_config


def pod(gpus=1, milli=1000, cpu=2000):
    made = np.zeros(1, POD)
    made["cpu_milli"], made["memory_mib"], made["gpu_models"] = cpu, 4096, ANY_MODEL
    made["gpu_count"], made["gpu_milli"] = gpus, milli
    return made[0]


def cluster():
    nodes = Cluster.of(
        [NodeSpec(name, 32000 * (1 + at), 131072, 4, "A100") for at, name in enumerate("abc")]
    ).nodes.copy()
    nodes["cpu_milli_left"][1] //= 2
    nodes["gpu_milli_left"][1, :2] = [300, 700]
    return nodes


def shapes():
    pods = np.array([pod(), pod(1, 300)])
    return Shapes(pods, ("", ""), np.array([6.0, 4.0]))


def checked(policy, asked=None):
    """Gives the terms on every node, which must add up."""
    asked, nodes, session = pod() if asked is None else asked, cluster(), policy.session(shapes())
    scores = session.scores(asked, nodes).scores
    found = [term_values(policy, session, asked, nodes, at) for at in range(len(nodes))]
    for terms, score in zip(found, scores.tolist(), strict=True):
        assert not terms or math.isclose(sum(terms.values()), score, abs_tol=1e-9)
    return found


def test_plugins_that_score_a_node_alone_are_named(tmp_path):
    plugins = [("NodeResourcesFit", 2), ("NodeResourcesBalancedAllocation", 3)]
    found = checked(load(str(write_config(tmp_path, scoring(*plugins)))))
    assert all(list(each) == [name for name, _ in plugins] for each in found)
    assert len({each["NodeResourcesFit"] for each in found}) > 1


def test_plugins_whose_scores_are_stretched_over_the_nodes_are_named(tmp_path):
    plugins = [("Simon", 2), ("BestFitScore", 3)]
    found = checked(load(str(write_config(tmp_path, scoring(*plugins)))))
    assert all(list(each) == ["Simon", "BestFitScore"] for each in found)
    assert {each["BestFitScore"] for each in found} >= {0.0, 300.0}


def test_plugins_that_draw_lots_are_not_taken_apart(tmp_path):
    plugins = [("RandomScore", 1), ("BestFitScore", 3)]
    assert checked(load(str(write_config(tmp_path, scoring(*plugins))))) == [{}, {}, {}]


@pytest.mark.parametrize("asked", [pod(), pod(1, 300), pod(2)])
def test_a_discovered_policy_that_ends_in_a_sum_is_taken_apart(asked):
    found = checked(load("fed-gpu"), asked)
    assert all(list(each) == ["gpu_weight", "gpu_steps"] for each in found)


@pytest.mark.parametrize("name", ["best-fit", "fgd", "first-fit", "simon", "round-robin"])
def test_other_policies_have_no_terms(name):
    assert checked(load(name), pod(1, 300)) == [{}, {}, {}]


def test_terms_that_do_not_add_up_are_not_shown(tmp_path):
    file = tmp_path / "early.py"
    file.write_text(
        "def score(pod, node):\n    idle = node.cpu_milli_left / 1000\n    few = node.gpu_count\n"
        "    if node.gpu_milli_left[0] < 1000:\n        return 7\n    return idle - few\n"
    )
    found = checked(load(str(file)))
    assert [bool(each) for each in found] == [True, False, True]
    assert found[0] == {"idle": 32.0, "few": -4.0}


def test_each_gpu_has_terms_of_its_own(tmp_path):
    file = tmp_path / "slots.py"
    file.write_text(
        "def score(pod, node, gpu):\n    free = 0\n    if gpu >= 0:\n"
        "        free = node.gpu_milli_left[gpu]\n    cpu = node.cpu_milli_left\n"
        "    return cpu - free\n"
    )
    found = checked(load(str(file)), pod(1, 300))
    assert [each["free"] for each in found] == [-1000, -300, -1000]


def test_a_pod_that_does_not_fit_has_no_terms():
    assert checked(load("fed-gpu"), pod(8)) == [{}, {}, {}]
