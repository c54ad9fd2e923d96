"""Draws programs and compares plain Python with compiled code: no difference, no write, no crash.

`python tools/try_programs.py` tries as many as one likes.
"""

import ast
import warnings

import numpy as np
import pytest

from podium.policies import from_function, policy_of
from podium.policies.batch import score_states
from podium.policies.language.translation import TEXT
from podium.policies.source import read_source
from podium.search.candidate.allowlist import problems
from support.depth import every
from support.programs import draw_program
from support.tiers import states_for_programs, tried

STATES = states_for_programs(5)


@pytest.fixture(autouse=True)
def _odd_programs():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)  # tuples indexed by fractional numbers
        yield


@pytest.mark.deep
@pytest.mark.parametrize("first", every(4, range(0, 100, 25)))
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


ROWS_OF_ITS_OWN = """
def prepare(shapes):
    return [[1.0, 2.0]] * 4


def rows(count):
    return (4, 1000, 123456)


def score(pod, node, table):
    total = 0.0
    for row in rows(len(table)):
        total += table[row, 0]
    return total
"""


def test_rows_that_a_range_does_not_count_are_checked():
    policy = policy_of(read_source(ROWS_OF_ITS_OWN, "policy.py"), "policy")
    table = policy.table(None)
    found, _ = score_states(policy.native(2, 8), STATES, table)
    assert np.isnan(found).all()
    with pytest.raises(IndexError):
        policy.function(*STATES.views()[0][:2], table)


BITS = [
    "9007199254740992 | (pod.gpu_count // 100 + 1)",
    "9007199254740992 ^ (pod.gpu_count // 100 + 1)",
    "~(9007199254740992 + 0 * pod.gpu_count)",
]


@pytest.mark.parametrize("expression", BITS)
def test_bits_beyond_what_doubles_hold_fail_in_every_tier(expression):
    outcome = tried(f"def score(pod, node):\n    return {expression}\n", STATES)
    assert (outcome.wrong, outcome.failed) == ("", len(STATES))


def make_two():
    first, second = 1.0, 100.0
    return (lambda number: first * number), (lambda number: second * number)


first = 5.0
ONE, OTHER = make_two()


def by_lambda(pod, node):  # noqa: ARG001
    return OTHER(node.gpu_count)


def test_a_lambda_is_not_taken_for_its_neighbour():
    policy = from_function(by_lambda)
    for pod, node, _ in STATES.views():
        assert policy.function(pod, node) == by_lambda(pod, node)


EXPONENTS = ["0.5", "-1.0", "2.0", "0.75"]


@pytest.mark.parametrize("exponent", EXPONENTS)
def test_a_power_whose_exponent_the_compiler_sees_is_the_same_as_in_plain_python(exponent):
    base = "pod.cpu_milli * 1.37 + node.memory_mib_left / 3.3 + 0.1"
    text = f"def raised(x, p):\n    return x ** p\n\n\ndef score(pod, node):\n    h = {exponent}\n"
    text += "    total = 0.0\n    for i in range(50):\n"
    text += f"        total = total + raised({base} + i / 7, h)\n    return total\n"
    assert tried(text, states_for_programs(9, 300)).wrong == ""


def test_long_programs_are_translated_or_run_in_plain_python():
    terms = " + ".join(["node.cpu_milli_left"] * 500)
    chain = "    if pod.gang == 0:\n        return 0\n" + "".join(
        f"    elif pod.gang == {i}:\n        return {i}\n" for i in range(1, 600)
    )
    for body in (f"    return {terms}\n", f"{chain}    return -1\n"):
        policy = policy_of(read_source(f"def score(pod, node):\n{body}", "policy.py"), "policy")
        assert policy.function(*STATES.views()[0][:2]) >= -1


def test_sums_on_neighbouring_lines_are_counted_apart():
    step = 1801439850948197
    far = "        y = 1;" + " " * 993 + f"x += {step}\n"
    text = f"def score(pod, node):\n    x = 0\n    for i in range(5):\n{far}        x += {step}\n"
    assert tried(f"{text}    return x\n", STATES) == tried(f"{text}    return x\n", STATES)
    assert tried(f"{text}    return x\n", STATES).failed == len(STATES)
