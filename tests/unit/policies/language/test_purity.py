import ast
import textwrap

import pytest

from podium.policies.language.purity import problems


def found(text):
    return problems(ast.parse(textwrap.dedent(text)))


def body(*lines, top=""):
    return top + "\ndef score(pod, node):\n" + "".join(f"    {line}\n" for line in lines)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (body("node.cpu_milli_left = 0", "return 1"), "changes a record"),
        (body("node.cpu_milli_left -= 1", "return 1"), "changes a record"),
        (body("node.gpu_milli_left[0] = 5", "return 1"), "changes a record"),
        (body("free = node.gpu_milli_left", "free[0] = 5", "return 1"), "changes a record"),
        (body("node.gpu_milli_left.sort()", "return 1"), "changes a record"),
        (body("del node.rack", "return 1"), "changes a record"),
        (body("np.copyto(node.gpu_milli_left, 0)", "return 1"), "changes a record"),
        (body("score.calls += 1", "return 1"), "changes a record"),
        (body("global COUNT", "COUNT = 1", "return 1"), "changes a global"),
        (body("SEEN.append(1)", "return 1", top="SEEN = []"), "changes a global"),
        (body("return CACHE.setdefault(pod, 1)", top="CACHE = {}"), "changes a global"),
        (body("return next(NUMBERS)", top="NUMBERS = iter(range(9))"), "changes a global"),
        ("def help(x, memo=[]):\n    return 1", "default argument"),
        ("def help(x, *, memo={}):\n    return 1", "default argument"),
        (body("return random.random()", top="import random"), "imports random"),
        (body("return time()", top="from time import time"), "imports time"),
        (body("return 1", top="import os.path"), "imports os.path"),
        (body("return 1", top="import numpy.random as r"), "imports numpy.random"),
        (body("return 1", top="from numpy import random"), "imports numpy.random"),
        (body("return 1", top="from numpy.random import default_rng"), "imports numpy.random"),
        (body("return np.random.rand()", top="import numpy as np"), "draws random numbers"),
        (body("return len(open('x').read())"), "calls open()"),
        (body("return eval('1')"), "calls eval()"),
        (body("return hash(pod)"), "calls hash()"),
        (body("setattr(node, 'rack', 1)", "return 1"), "calls setattr()"),
        (body("return node.gpu_milli_left.sum()"), "calls node.gpu_milli_left.sum()"),
        (body("return 10**10**10"), "a whole number of more than 10,000 bits"),
        (body("return pod.gang", top="X = 1 << (1 << 36)"), "a whole number of more than"),
        (body("return 0x" + "f" * 9000), "a whole number of more than 10,000 bits"),
        ("def score(pod, node):\n    print(pod)\n    return 1\n", "calls print()"),
    ],
)
def test_what_a_pure_function_does_not_do_is_found(text, told):
    assert any(told in reason for _, reason in found(text))


def test_the_line_is_told():
    assert found(body("x = 1", "node.rack = x", "return x"))[0][0] == 4


@pytest.mark.parametrize(
    "text",
    [
        body("return 1 - node.cpu_milli_left / node.cpu_milli_total"),
        body("return math.sqrt(sum(node.gpu_milli_left))", top="import math"),
        body("return 10 ** 2 ** 2 + 2.5 ** 20000 + 7 ** pod.gang"),
        body("return np.sqrt(2.0)", top="import numpy as np"),
        body("free = []", "free.append(1)", "return len(free)"),
        body("return min(x for x in node.gpu_milli_left)"),
        body("return WEIGHTS[0] * pod.cpu_milli", top="WEIGHTS = (1, 2)"),
        "def help(x, scale=1.5, sign=-1, pair=(1, 2)):\n    return x",
    ],
)
def test_a_pure_function_is_left_in_peace(text):
    assert found(text) == []


def test_prepare_may_fill_the_array_it_builds_but_not_draw():
    filling = "import numpy as np\ndef prepare(shapes):\n    table = np.zeros(3)\n    table[0] = shapes.weights.sum()\n    return table\ndef score(pod, node, table):\n    return table[0]\n"  # noqa: E501
    assert problems(ast.parse(filling)) == []
    drawing = filling.replace("shapes.weights.sum()", "np.random.random()")
    assert [line for line, _ in problems(ast.parse(drawing))] == [4]
