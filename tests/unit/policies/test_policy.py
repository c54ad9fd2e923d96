from dataclasses import replace

import numpy as np
import pytest

from podium.errors import PolicyError
from podium.policies import HOLD, from_function, load
from podium.policies.policy import policy_of
from podium.policies.source import read_source
from podium.policies.states import random_states
from support.views import node, node_records, pod, pod_record


def test_scores_are_given_for_nodes_that_fit_and_hold_for_the_others():
    nodes = node_records([node((4000, 8000), (9, 9)), node((100, 8000), (9, 9))])
    found = load("first-fit").scores(pod_record(pod(1000)), nodes)
    assert found.tolist() == [0.0, HOLD]


def test_a_policy_that_scores_gpus_gives_its_best_one():
    def score(pod, node, gpu):  # noqa: ARG001
        return 10 + gpu

    nodes = node_records([node((9, 9), (9, 9), gpus=(500, 400, 100))])
    policy = from_function(score)
    assert policy.scores(pod_record(pod(gpus=1, milli=300)), nodes).tolist() == [11.0]
    assert policy.scores(pod_record(pod()), nodes).tolist() == [9.0]


def test_a_cluster_policy_without_scores_gives_1_to_its_choice():
    nodes = node_records([node((1, 9), (9, 9)), node((9, 9), (9, 9)), node((9, 9), (9, 9))])
    found = load("round-robin").scores(pod_record(pod(5)), nodes)
    assert found.tolist() == [HOLD, 1.0, 0.0]


def test_a_cluster_policy_with_scores_gives_them():
    nodes = node_records([node((9, 9), (9, 9)), node((9, 90), (9, 90)), node((1, 9), (9, 9))])
    found = load("simon").scores(pod_record(pod(5)), nodes)
    assert found.tolist() == [100.0, 0.0, HOLD]


def test_a_pod_that_fits_nowhere_is_refused_everywhere():
    nodes = node_records([node((1, 9))])
    assert load("round-robin").scores(pod_record(pod(5)), nodes).tolist() == [HOLD]


def made(text):
    return policy_of(read_source(text, "mine.py"), "mine")


def test_a_table_without_prepare_is_told():
    policy = made("def score(pod, node, table):\n    return 1\n")
    with pytest.raises(PolicyError, match="no prepare"):
        policy.table(None)


def preparing(table):
    score = "def score(pod, node, table):\n    return 1\n"
    return made(f"def prepare(shapes):\n    return {table}\n\n\n{score}")


def test_a_table_has_one_dimension_or_two():
    with pytest.raises(PolicyError, match="3 dimensions"):
        preparing("[[[1.0]]]").table(None)


def test_a_policy_without_a_table_gets_an_empty_one():
    assert len(load("first-fit").table(None)) == 0


def test_a_table_is_made_of_floats():
    assert preparing("[1, 2]").table(None).dtype == np.float64


def test_a_policy_is_compiled_once_for_each_kind_of_table_and_record():
    policy = from_function(lambda pod, node: 1, "one")  # noqa: ARG005
    assert policy.native(1, 8) is policy.native(1, 8)
    assert policy.native(1, 8) is not policy.native(1, 16)


def test_files_leave_no_machine_code_behind_and_built_in_policies_do():
    assert load("first-fit").is_kept
    assert not made("def score(pod, node):\n    return 1\n").is_kept


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("def f(n):\n    return f(n - 1) if n > 0 else 0.0\n", "line 1: f() calls itself"),
        ("def f(n):\n    return f(n + 1)\n", "line 1: f() calls itself"),
        ("def g(n):\n    return f(n)\ndef f(n):\n    return h(n)\ndef h(n):\n    return f(n)\n",
         "line 3: f() calls itself"),
    ],
)  # fmt: skip
def test_the_function_that_calls_itself_is_named_and_not_its_callers(text, told):
    first = "g" if "def g" in text else "f"
    text += f"def score(pod, node):\n    return {first}(node.gpu_count)\n"
    assert policy_of(read_source(text, "mine.py"), "mine").not_compiled == told


@pytest.mark.parametrize(
    ("expression", "hint"),
    [
        ("node.cpu_left", "did you mean cpu_milli_left"),
        ("nod.gpu_count", "did you mean node"),
        ("mx(1, 2)", "did you mean max"),
        ("WEIGT * 2", "did you mean WEIGHT"),
        ("math.sqr(4.0)", "did you mean sqrt"),
        ("math.pii", "did you mean pi"),
        ("[1.0][0]", "use numbers"),
    ],
)
def test_what_is_misspelt_and_not_compiled_comes_with_what_may_be_meant(expression, hint):
    text = f"import math\nWEIGHT = 2.0\ndef score(pod, node):\n    return {expression}\n"
    policy = policy_of(read_source(text, "mine.py"), "mine")
    with pytest.raises(PolicyError, match="cannot be compiled: line 4") as raised:
        policy.native(1, 8)
    assert raised.value.hint.startswith(hint)


@pytest.mark.parametrize(("body", "told"), [("pass", "nothing"), ("return [1]", r"\[1\]")])
def test_a_score_that_is_no_number_is_told_with_its_function(body, told):
    text = f"HERE = 1\ndef score(pod, node):\n    {body}\n"
    policy = policy_of(read_source(text, "mine.py"), "mine")
    with pytest.raises(TypeError, match=f"score returned {told}") as raised:
        policy.scores(pod_record(pod()), node_records([node((9, 9), (9, 9))]))
    assert policy.source.line_of(raised.value) == 2


BAD_PREPARES = {
    "return [[1, 2], [3]]": "prepare did not return a table of numbers",
    "return np.array([1, None], object)": "prepare did not return a table of numbers",
    'return "abc"': "numbers: 'abc'",
    "return None": "numbers: None",
    "return [1 + 2j]": "prepare did not return a table of numbers",
    "return 1 / 0": "prepare failed: ZeroDivisionError",
    "raise SystemExit(3)": "prepare failed: SystemExit: 3",
}


@pytest.mark.parametrize("body", BAD_PREPARES)
def test_a_table_that_cannot_be_prepared_is_told_with_what_to_do(body):
    text = (
        f"import numpy as np\n\n\ndef prepare(shapes):\n    {body}\n\n\n"
        "def score(pod, node, table):\n    return table[0]\n"
    )
    policy = policy_of(read_source(text, "p.py"), "p")
    with pytest.raises(PolicyError) as told:
        policy.table(random_states(6, 3).shapes())
    assert BAD_PREPARES[body] in told.value.message
    assert told.value.where.startswith("p")
    assert told.value.hint


@pytest.mark.parametrize("given", [[1, 2], [[True, False]], np.arange(3, dtype=np.int32)])
def test_numbers_of_any_kind_make_a_table(given):
    text = "def score(pod, node, table):\n    return 0.0\n"
    policy = replace(policy_of(read_source(text, "p.py"), "p"), prepare=lambda _shapes: given)
    assert policy.table(random_states(6, 3).shapes()).dtype == np.float64
