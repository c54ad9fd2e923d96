import hashlib

import numpy as np
import pytest

from podium.evaluation.cases import Case, TrainingSet
from podium.search.candidate.verdict import AXES
from podium.search.judging.contract import decisions_of
from podium.search.judging.fixtures import Fixtures
from podium.search.judging.form import form_as_written
from podium.search.judging.probe import MOST_NODES, Probe
from podium.search.judging.trial import read_policy

HEAD = "from podium.policies import HOLD\n"


@pytest.fixture(scope="module")
def fixtures():
    """Holds the probe and little else."""
    return Fixtures.of(TrainingSet((Case(nodes=4, pods=20),)))


def decisions(fixtures, expression, arguments="pod, node"):
    """Asks a formula for its decisions."""
    text = f"{HEAD}def score({arguments}):\n    return {expression}\n"
    policy = read_policy(text)
    return decisions_of(
        policy, fixtures, form_as_written(policy, fixtures.plans, is_compiled=False)
    )


def test_the_probe_is_the_same_whoever_builds_it(fixtures):
    again = Probe.build()
    assert np.array_equal(again.states.nodes, fixtures.probe.states.nodes)
    assert np.array_equal(again.states.pods, fixtures.probe.states.pods)
    assert np.array_equal(again.first, fixtures.probe.first)


def test_every_situation_leaves_a_choice(fixtures):
    sizes = np.diff(fixtures.probe.first, append=len(fixtures.probe.states.nodes))
    assert len(sizes) > 40
    assert sizes.min() >= 2
    assert sizes.max() <= 8 * MOST_NODES
    share = (fixtures.probe.states.pods["gpu_milli"] % 1000 > 0).mean()
    assert 0.1 < share < 0.99


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("-node.cpu_milli_left", "0 - node.cpu_milli_left"),
        ("-node.cpu_milli_left", "-3.5 * node.cpu_milli_left + 17"),
        ("node.cpu_milli_left - pod.cpu_milli", "node.cpu_milli_left"),
        ("0.0", "1.0"),
        ("node.cpu_milli_left ** 2", "node.cpu_milli_left"),
    ],
)
def test_formulas_that_order_nodes_alike_decide_alike(fixtures, one, other):
    assert decisions(fixtures, one) == decisions(fixtures, other)


def test_formulas_that_differ_decide_differently(fixtures):
    formulas = (
        "0.0", "-node.cpu_milli_left", "node.cpu_milli_left", "-node.memory_mib_left",
        "-sum(node.gpu_milli_left)", "sum(node.gpu_milli_left)",
        "-node.cpu_milli_left / 12 - sum(node.gpu_milli_left)",
        "HOLD if node.cpu_milli_left < 20000 else -node.cpu_milli_left", "HOLD",
    )  # fmt: skip
    found = {decisions(fixtures, each).signature for each in formulas}
    assert len(found) == len(formulas)


def test_what_runs_on_a_node_counts(fixtures):
    classes = fixtures.probe.states.nodes["gpu_classes"]
    assert {0, 1} < set(classes.tolist())
    plain = "-node.cpu_milli_left"
    apart = f"{plain} - 1e6 * (node.gpu_classes % 2)"
    assert decisions(fixtures, plain).signature != decisions(fixtures, apart).signature


def test_a_signature_of_other_states_is_none_of_these(fixtures):
    # Decisions on the states of the first version, on which no pod ever ran, were these.
    told = np.zeros(len(fixtures.probe.first), np.int16)
    first = hashlib.sha256(told.tobytes() + bytes([False])).hexdigest()[:16]
    assert decisions(fixtures, "0.0").behaviour[-1] == 0
    assert decisions(fixtures, "0.0").signature != first


def test_which_gpu_is_chosen_counts(fixtures):
    first, last = (decisions(fixtures, each, "pod, node, gpu") for each in ("-gpu", "gpu"))
    assert first.signature != last.signature
    # Without naming a GPU, a share pod gets the fullest that fits, not the first.
    assert (
        decisions(fixtures, "1.0", "pod, node, gpu").signature
        != decisions(fixtures, "1.0").signature
    )


def test_what_a_candidate_does_can_be_read_from_its_behaviour(fixtures):
    packs, spreads = (decisions(fixtures, f"{sign}node.cpu_milli_left") for sign in ("-", ""))
    axis = AXES.index("cpu_free")
    assert packs.behaviour[axis] < 0.2 < 0.8 < spreads.behaviour[axis]
    assert all(0 <= each <= 1 for each in (*packs.behaviour, *spreads.behaviour))


def test_held_pods_are_counted(fixtures):
    axis = AXES.index("held")
    assert decisions(fixtures, "1.0").behaviour[axis] == 0
    assert decisions(fixtures, "HOLD").behaviour == (0.5, 0.5, 0.5, 1.0)
    some = decisions(fixtures, "HOLD if pod.gpu_milli < 1000 else 1.0").behaviour[axis]
    assert 0 < some < 1
