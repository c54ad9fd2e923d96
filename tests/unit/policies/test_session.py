from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

from podium.errors import PolicyError, UsageError
from podium.model import NODE_8, NODE_16, Cluster, NodeSpec, PodSpec, Workload
from podium.model.fit import fits, fitting_slots
from podium.model.records import node_view, pod_view
from podium.policies import HOLD, catalogue, from_function, load
from podium.policies.policy import policy_of
from podium.policies.source import read_source
from podium.policies.states import random_states
from support.views import node, node_records, pod, pod_record

WIDE = random_states(120, 3)
NARROW = WIDE.with_slots(8)
PAIR_POLICIES = [info.name for info in catalogue() if info.kind == "pair"]


def made(text):
    return policy_of(read_source(text, "mine.py"), "mine")


def plain(policy):
    """Gives the policy as if it did not compile."""
    return replace(policy, not_compiled="not wanted", compiled={}, refused={})


def answers(policy, states):
    session = policy.session(states.shapes())
    found = [session.scores(each, states.nodes) for each in states.pods[:25]]
    return [(each.scores.tolist(), each.gpu_slots.tolist()) for each in found]


@pytest.mark.parametrize("states", [NARROW, WIDE], ids=["8 slots", "16 slots"])
@pytest.mark.parametrize("name", PAIR_POLICIES)
def test_compiled_and_plain_answers_are_equal_to_the_bit(name, states):
    policy = load(name)
    assert answers(policy, states) == answers(plain(policy), states)
    assert policy.compiled


def test_answers_are_those_of_one_pair_at_a_time():
    policy = load("fgd")
    table, states = policy.table(NARROW.shapes()), NARROW
    session = policy.session(states.shapes())
    seen = set()
    for record in states.pods[:25]:
        found = session.scores(record, states.nodes)
        for index, shown in enumerate(states.nodes):
            if not fits(record, shown):
                assert (found.scores[index], found.gpu_slots[index]) == (HOLD, -1)
                continue
            is_share = 0 < record["gpu_milli"] < 1000
            slots = fitting_slots(record, shown).tolist() if is_share else [-1]
            scores = [
                policy.score_pair(pod_view(record), node_view(shown), s, table) for s in slots
            ]
            assert found.scores[index] == max(scores)
            assert found.gpu_slots[index] == slots[scores.index(max(scores))]
            seen.add(is_share)
    assert seen == {True, False}


def test_the_best_slot_of_a_part_of_a_gpu_comes_with_the_score():
    policy = from_function(lambda pod, node, gpu: float(gpu % 2), "odd")  # noqa: ARG005
    nodes = node_records([node((9, 9), (9, 9), gpus=(500, 400, 100, 700)), node((9, 9), (9, 9))])
    for each in (policy, plain(policy)):
        found = each.session().scores(pod_record(pod(gpus=1, milli=300)), nodes)
        assert (found.scores.tolist(), found.gpu_slots.tolist()) == ([1.0, HOLD], [1, -1])
        whole = each.session().scores(pod_record(pod()), nodes)
        assert whole.gpu_slots.tolist() == [-1, -1]


def test_slots_that_are_all_refused_leave_the_lowest_one():
    policy = made(
        "from podium.policies import HOLD\n\n\ndef score(pod, node, gpu):\n    return HOLD\n"
    )
    nodes = node_records([node((9, 9), (9, 9), gpus=(100, 400, 400))])
    for each in (policy, plain(policy)):
        found = each.session().scores(pod_record(pod(gpus=1, milli=300)), nodes)
        assert (found.scores.tolist(), found.gpu_slots.tolist()) == ([HOLD], [1])


FAILING = "def score(pod, node):\n    part = 7\n    return part // (node.cpu_milli_left - 20)\n"
UNBOUNDED = "def score(pod, node):\n    return {} if node.cpu_milli_left == 20 else 1.0\n"


@pytest.mark.parametrize("form", [lambda policy: policy, plain], ids=["compiled", "plain"])
@pytest.mark.parametrize(
    ("text", "told", "line"),
    [
        (FAILING, "ZeroDivisionError", "line 3 of "),
        (UNBOUNDED.format("1e308 * 1e10"), "NaN or infinite", ""),
        (UNBOUNDED.format("1e308 * 1e10 - 1e308 * 1e10"), "NaN or infinite", ""),
    ],
)
def test_a_failure_names_the_line_the_pod_and_the_node(form, text, told, line):
    policy = form(made(text))
    nodes = node_records([node((30, 30), (9, 9)), node((1, 9)), node((20, 30), (9, 9))])
    with pytest.raises(PolicyError, match=told) as raised:
        policy.scores(pod_record(pod(5)), nodes)
    assert raised.value.where.startswith(f"{line}mine, Pod(cpu_milli=5,")
    assert raised.value.where.endswith("on node 2")


def test_nodes_that_do_not_fit_are_never_shown_to_the_policy():
    policy = made(FAILING)
    nodes = node_records([node((30, 30), (9, 9)), node((20, 30), (9, 9))])
    assert policy.scores(pod_record(pod(25)), nodes).tolist() == [0.0, HOLD]


def test_what_does_not_compile_is_tried_once():
    policy = from_function(lambda pod, node: 1.0, "one")  # noqa: ARG005
    policy.refused[1, 8] = PolicyError("refused before")
    with pytest.raises(PolicyError, match="refused before"):
        policy.native(1, 8)
    nodes = node_records([node((9, 9), (9, 9))])
    assert policy.scores(pod_record(pod()), nodes).tolist() == [1.0]
    assert not policy.compiled


@pytest.mark.parametrize("dtype", [NODE_8, NODE_16])
@pytest.mark.parametrize("name", ["best-fit", "fgd", "round-robin", "simon"])
def test_no_nodes_have_no_scores(name, dtype):
    found = load(name).session().scores(pod_record(pod()), np.zeros(0, dtype))
    assert (len(found.scores), len(found.gpu_slots)) == (0, 0)


def test_a_session_keeps_its_chooser_and_a_new_one_starts_afresh():
    policy = load("round-robin")
    nodes = node_records([node((9, 9), (9, 9)), node((9, 9), (9, 9)), node((1, 9), (9, 9))])
    session = policy.session()
    turns = [session.scores(pod_record(pod(5)), nodes).scores.argmax() for _ in range(5)]
    assert turns == [0, 1, 0, 1, 0]
    assert policy.session().scores(pod_record(pod(5)), nodes).scores.argmax() == 0


CHOOSING = """
from podium.policies import HOLD


class Policy:
    def __init__(self, seed):
        self.answers = [{}]

    def choose(self, pod, nodes, feasible):
        return self.answers[0]
"""


def test_a_chooser_that_holds_refuses_every_node():
    nodes = node_records([node((9, 9), (9, 9)), node((9, 9), (9, 9))])
    found = made(CHOOSING.format("HOLD")).session().scores(pod_record(pod(5)), nodes)
    assert found.scores.tolist() == [HOLD, HOLD]


@pytest.mark.parametrize("choice", ["1", "-1", "7", "0.5"])
def test_a_choice_that_does_not_fit_is_told(choice):
    nodes = node_records([node((9, 9), (9, 9)), node((1, 9), (9, 9))])
    with pytest.raises(PolicyError, match=f"chose {choice}, which is not") as raised:
        made(CHOOSING.format(choice)).session().scores(pod_record(pod(5)), nodes)
    assert raised.value.where.startswith("mine, Pod(cpu_milli=5,")


def test_a_chooser_that_raises_is_told_with_its_line():
    text = CHOOSING.replace("self.answers[0]", "self.answers[9]").format("0")
    nodes = node_records([node((9, 9), (9, 9))])
    with pytest.raises(PolicyError, match="IndexError") as raised:
        made(text).session().scores(pod_record(pod(5)), nodes)
    assert raised.value.where.startswith("line 10 of mine, Pod(cpu_milli=5,")


def test_a_chooser_cannot_change_the_nodes_that_it_is_shown():
    text = CHOOSING.replace("return self.answers[0]", "nodes['rack'] = 3").format("0")
    nodes = node_records([node((9, 9), (9, 9))])
    with pytest.raises(PolicyError, match="read-only"):
        made(text).session().scores(pod_record(pod(5)), nodes)


def recent(cpu_milli, cluster):
    """Counts the pods that a live service saw of late."""
    specs = [PodSpec(f"pod-{i}", cpu_milli, 10, 1, 500) for i in range(20)]
    return Workload.of(specs).aligned(cluster.gpu_models).shapes()


def test_a_session_takes_another_table_when_other_pods_come():
    cluster = Cluster.of([NodeSpec("a", 8000, 9000, 2, "X"), NodeSpec("b", 64_000, 9000, 2, "X")])
    policy = load("fgd")
    record = Workload.of([PodSpec("p", 4000, 10, 1, 500)]).pods[0]
    few, many = recent(1000, cluster), recent(7000, cluster)
    session = policy.session(few)
    before = session.scores(record, cluster.nodes).scores.tolist()
    session.refresh(many)
    after = session.scores(record, cluster.nodes).scores.tolist()
    assert before != after
    assert after == policy.session(many).scores(record, cluster.nodes).scores.tolist()


@pytest.mark.parametrize("name", ["fed-gpu", "fgd", "simon"])
def test_threads_that_ask_at_once_get_the_same_answers(name):
    session = load(name).session(NARROW.shapes())
    pods = list(NARROW.pods[:25])
    alone = [session.scores(each, NARROW.nodes).scores.tolist() for each in pods]
    with ThreadPoolExecutor(4) as pool:
        asked = pool.map(lambda each: session.scores(each, NARROW.nodes).scores, pods * 8)
        together = [each.tolist() for each in asked]
    assert together == alone * 8


def test_threads_take_turns_at_a_chooser():
    nodes = node_records([node((9, 9), (9, 9)) for _ in range(50)])
    session = load("round-robin").session()
    with ThreadPoolExecutor(4) as pool:
        asked = pool.map(lambda _: session.scores(pod_record(pod(5)), nodes).scores, range(200))
        chosen = [int(each.argmax()) for each in asked]
    assert sorted(chosen) == sorted(4 * list(range(50)))


@pytest.mark.parametrize("states", [NARROW, WIDE], ids=["8 slots", "16 slots"])
@pytest.mark.parametrize("name", ["fgd", "round-robin"])
def test_records_and_views_are_scored_alike(name, states):
    nodes, shapes = states.nodes[:9], states.shapes()
    shown = [node_view(each) for each in nodes]
    for record in states.pods[:9]:
        found = load(name).session(shapes).scores(record, nodes).scores.tolist()
        for given in (shown, list(nodes), [*shown[:3], *nodes[3:]]):
            again = load(name).session(shapes).scores(pod_view(record), given)
            assert again.scores.tolist() == found
        one = load(name).session(shapes).scores(record, nodes[0])
        assert len(one.scores) == 1


@pytest.mark.parametrize("name", ["fgd", "round-robin"])
@pytest.mark.parametrize(
    ("pod", "nodes", "place"),
    [
        ("x", NARROW.nodes, "argument pod"),
        (NARROW.nodes[0], NARROW.nodes, "argument pod"),
        (tuple(pod_view(NARROW.pods[0])), NARROW.nodes, "argument pod"),
        (NARROW.pods[0], "x", "argument nodes"),
        (NARROW.pods[0], 3, "argument nodes"),
        (NARROW.pods[0], NARROW.pods, "argument nodes"),
        (NARROW.pods[0], NARROW.nodes.reshape(1, -1), "argument nodes"),
        (NARROW.pods[0], [NARROW.nodes[0], WIDE.nodes[0]], "argument nodes"),
        (NARROW.pods[0], ["x"], "argument nodes"),
    ],
)
def test_what_is_no_pod_or_no_node_is_told(name, pod, nodes, place):
    session = load(name).session(NARROW.shapes())
    with pytest.raises(UsageError, match=r"is not a(n array of nodes| pod)") as caught:
        session.scores(pod, nodes)
    assert caught.value.where == place
    assert caught.value.hint
