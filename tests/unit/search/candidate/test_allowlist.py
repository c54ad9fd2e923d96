import ast

import pytest

from podium.policies import catalogue, load
from podium.search.candidate.allowlist import call_problems, problems

HEAD = "import math\nfrom podium.policies import HOLD, tunable\n"


def _found(text):
    return problems(ast.parse(text))


def _in_score(*lines):
    body = "\n".join(f"    {line}" for line in lines)
    return _found(f"{HEAD}def score(pod, node, gpu):\n{body}\n")


EVERYTHING = '''"""Uses what a candidate may use."""

import math

from podium.policies import HOLD, tunable

WEIGHT = tunable(0.5, 0.0, 2.0)
PAIRS = (1.0, -2.0)
HALF = PAIRS_LENGTH = 1 / 2


def helper(node, slot: int) -> float:
    """Reads one slot."""
    return math.sqrt(node.gpu_milli_left[slot]) if slot >= 0 else 0.0


def score(pod, node, gpu):
    # An important comment: import os, eval, open, __class__.
    if pod.gpu_count == 0 and not node.gpu_count > 2:
        return HOLD
    elif node.cpu_milli_left < 1:
        return -math.inf
    total, best = 0, 0.0
    for slot in range(node.gpu_count):
        total += node.gpu_milli_left[slot] >> 1
        if total > 10:
            continue
    for left in node.gpu_milli_left:
        best = max(best, left % 7)
    while total > 1:
        total //= 2
        if total == 3:
            break
    scale: float = PAIRS[0] ** 2
    return WEIGHT * helper(node, gpu) + best * scale + sum(node.gpu_milli_left) + HALF
'''


def test_everything_that_a_score_function_needs_is_allowed():
    assert _found(EVERYTHING) == []


@pytest.mark.parametrize(
    "name", ["best-fit", "worst-fit", "balanced", "dot-product", "gpu-packing", "funsearch-4901"]
)
def test_built_in_formulas_are_allowed(name):
    assert name in {each.name for each in catalogue()}
    source = load(name).source
    assert source is not None
    assert problems(source.tree) == []


def test_a_reason_names_the_line():
    assert _in_score("x = 1", "return open(x)") == [
        (5, "calls open(); allowed are abs, bool, float, int, len, max, min, pow, round, sum"),
        (5, "uses open, which is defined nowhere and is not allowed"),
    ]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("x = [1]", "a list"),
        ("return (lambda: 1)()", "a lambda"),
        ("return sum(x for x in range(3))", "a comprehension"),
        ("return pod.name", "reads pod.name; the fields of pod are"),
        ("return pod._fields", "reads pod._fields"),
        ("return pod[0]", "indexes `pod`"),
        ("return node", "uses the record node itself"),
        ("return node.gpu_milli_left", "uses the list"),
        ("return node.gpu_milli_left[1:]", "a slice"),
        ("return float(pod)", "uses the record pod itself"),
        ("return (x := 1)", "the operator :="),
        ("return 1 << 3", "the operator <<"),
        ("return 1 if pod.gpu_count in (1, 2) else 0", "uses in"),
        ("return 2 ** 65", "raises to the power 65"),
        ("return 9007199254740993", "beyond 2**53"),
        ("return 1e999", "write HOLD"),
        ("return 1j", "computes with numbers"),
        ("return None", "computes with numbers"),
        ("return 'x'", "only docstrings"),
        ("return math.gamma(3)", "uses math.gamma"),
        ("return math.nan", "uses math.nan"),
        ("return score(pod, node, gpu)", "calls itself"),
        ("return max", "without calling"),
        ("return max(1, 2, key=abs)", "named or starred"),
        ("return max(*PAIRS)", "named or starred"),
        ("return tunable(1, 0, 2)", "calls tunable()"),
        ("return 1 .real", "attributes are the fields"),
        ("pod = 1", "assigns to pod"),
        ("math = 1", "assigns to math"),
        ("node.cpu_milli_left = 1", "changes `node.cpu_milli_left`"),
        ("node.gpu_milli_left[0] += 1", "changes `node.gpu_milli_left[0]`"),
        ("del gpu", "uses del"),
        ("abs(1)", "drops it"),
        ("while 1: pass", "a while compares"),
        ("for x in (1, 2): pass", "loops over more than range"),
        ("for x in range(5000): pass", "a range of 5000"),
        ("global gpu", "uses global"),
        ("raise ValueError", "uses raise"),
    ],
)
def test_a_construct_beyond_the_list_is_refused(line, reason):
    found = _in_score(line)
    assert any(reason in told for _, told in found), found
    assert all(number > 0 for number, _ in found)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("import os", "a candidate imports nothing but"),
        ("import math as m", "a candidate imports nothing but"),
        ("from math import sqrt", "a candidate imports nothing but"),
        ("from podium.policies import load", "a candidate imports nothing but"),
        ("from . import HOLD", "a candidate imports nothing but"),
        ("from podium.policies import *", "a candidate imports nothing but"),
        ("X = open", "uses open"),
        ("X = abs(1)", "sets a constant to"),
        ("X = tunable(2, 0, 1)", "not a number within"),
        ("X = tunable(y, 0, 1)", "is not read as a constant"),
        ("X = 'a'", "only docstrings"),
        ("X = [1]", "sets a constant to"),
        ("X.y = 1", "changes `X.y`"),
        ("print(1)", "at the top of the file"),
        ("class Policy: pass", "uses a class"),
        ("if 1: pass", "at the top of the file"),
        ("def help(a=1): return a", "plain arguments"),
        ("def help(*a): return 1", "plain arguments"),
        ("@abs\ndef help(a): return a", "uses a decorator"),
        ("def help(a: list): return a", "annotates with `list`"),
        ("def help(pod): return pod.gang\ndef other(a): return help(a)", "under another name"),
        ("def one(a): return two(a)\ndef two(a): return one(a)", "calls itself"),
        ("def __init__(a): return a", "which is reserved"),
    ],
)
def test_what_may_not_stand_at_the_top_is_refused(text, reason):
    found = _found(f"{text}\ndef score(pod, node):\n    return 0.0\n")
    assert any(reason in told for _, told in found), found


def test_math_and_hold_need_their_imports():
    found = _found("def score(pod, node):\n    return math.sqrt(2) if pod.gang else HOLD\n")
    assert [told for _, told in found] == [
        "uses HOLD, which is defined nowhere and is not allowed",
        "uses math, which is defined nowhere and is not allowed",
    ]


def test_deep_nesting_and_many_loops_are_refused():
    assert "deeper than" in _in_score("return " + "-(" * 45 + "1" + ")" * 45)[0][1]
    loops = [f"{'    ' * i}for a{i} in range(2):" for i in range(4)]
    assert "more than 3 loops" in _in_score(*loops, "    " * 4 + "pass")[0][1]


def test_a_long_chain_of_elif_is_flat():
    lines = ["if pod.gang == 0:", "    return 0"]
    for number in range(1, 60):
        lines += [f"elif pod.gang == {number}:", f"    return {number}"]
    assert _in_score(*lines, "return 1") == []


def test_a_source_of_too_many_parts_is_refused():
    assert "parts" in _in_score(*["x = 1"] * 2000, "return 0")[0][1]


def test_only_functions_of_a_circle_are_blamed_for_it():
    text = "def f(n):\n    return g(n)\ndef g(n):\n    return f(n)\n"
    text += "def score(pod, node):\n    return f(1.0)\n"
    blamed = [line for line, reason in call_problems(ast.parse(text)) if "calls itself" in reason]
    assert blamed == [1, 3]
