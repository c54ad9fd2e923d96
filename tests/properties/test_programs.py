"""Draws programs and compares plain Python with compiled code: no difference, no write, no crash.

`python tools/try_programs.py` tries as many as one likes.
"""

import ast
import warnings

import pytest

from podium.policies import from_function, policy_of
from podium.policies.source import read_source
from podium.policies.translation import TEXT
from podium.search.allowlist import problems
from support.programs import draw_program
from support.tiers import states_for_programs, tried

STATES = states_for_programs(5)


@pytest.fixture(autouse=True)
def _odd_programs():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)  # tuples indexed by fractional numbers
        yield


@pytest.mark.parametrize("first", range(0, 200, 25))
def test_drawn_programs_score_alike_plain_and_compiled(first):
    outcomes = [tried(draw_program(number), STATES) for number in range(first, first + 25)]
    assert [each.wrong for each in outcomes if each.wrong] == []
    assert any(each.is_compiled for each in outcomes)


def test_the_gates_survive_whatever_is_drawn():
    found = [problems(ast.parse(draw_program(number))) for number in range(20_000, 21_500)]
    assert any(found)
    assert not all(found)


HEAD = "import math\n\n\ndef score(pod, node):\n    x = node.cpu_milli_left\n"
FAILING = {
    "x = (x + 1) * 9007199254740992": "OverflowError",
    "x = 1 << (x % 100 + 64)": "ValueError",
    "x = x >> (64 + x % 2)": "ValueError",
    "x = int(1e19 * (x + 1))": "OverflowError",
    "x = math.log(0 * x)": "ValueError",
    "x = -math.exp(15400 + x)": "OverflowError",
    "x = math.ceil(math.inf)": "OverflowError",
    "x = node.gpu_milli_left[8 + node.gpu_count - node.gpu_count]": "IndexError",
    "x = node.gpu_milli_left[pod.gpu_count - 99]": "IndexError",
    "x = y if x > -5 else 0\n    y = 1": "UnboundLocalError",
}


@pytest.mark.parametrize("line", FAILING)
def test_what_the_tiers_could_see_differently_fails_in_all_of_them(line):
    text = f"{HEAD}    {line}\n    return x\n"
    policy = policy_of(read_source(text, "policy.py"), "policy")
    assert policy.not_compiled == ""
    outcome = tried(text, STATES)
    assert (outcome.wrong, outcome.failed > 0) == ("", True)
    assert {raised_by(policy, view) for view in STATES.views()} - {""} == {FAILING[line]}


def raised_by(policy, view):
    try:
        policy.function(*view[:2])
    except Exception as error:  # noqa: BLE001 - what is raised is what is asked
        return type(error).__name__
    return ""


WRITING = [
    "node.cpu_milli_left = 5",
    "node.gpu_milli_left[0] = 5",
    "left = node.gpu_milli_left\n    left += 1",
    "left = node.gpu_milli_left\n    left[0] = 7",
    "node[0] = 1",
]


@pytest.mark.parametrize("line", WRITING)
def test_nothing_that_writes_is_compiled(line):
    names = {TEXT: f"def score(pod, node):\n    {line}\n    return 1.0\n"}
    exec(names[TEXT], names)
    assert from_function(names["score"]).not_compiled


REBINDING = """
def helper(node):
    return node.cpu_milli_left


def other(x):
    return x[8]


def score(pod, node):
    helper = other
    return helper(node)
"""
SCORE = "\n\n\ndef score(pod, node):\n    return 1\n"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (REBINDING, "assigns to helper, which is a function's name"),
        (f"def h(a):\n    return h{SCORE}", "uses h without calling it"),
        (f"def h(score):\n    return 1{SCORE}", "names an argument score"),
        (f"def score(pod, node):\n    return 2{SCORE}", "defines score() twice"),
        (f"import math\n\n\ndef h(a):\n    x = math\n    return a{SCORE}", "uses math"),
        (f"def h(a):\n    return a\n\n\nh = 3{SCORE}", "assigns to h"),
    ],
)
def test_names_of_functions_are_neither_rebound_nor_passed(text, told):
    assert any(told in reason for _, reason in problems(ast.parse(text)))
