import ast
import math
import random

import numpy as np
import pytest

from podium.policies import load
from podium.policies.abi import CALLBACK
from podium.policies.arithmetic import NAMES, Rewriter, integer_power
from support.views import node, node_record, pod, pod_record

EXPRESSIONS = [
    "x ** 2", "x ** 3", "x ** -2", "x ** 0.5", "x ** 2.5", "x ** 0.6", "x ** -0.5", "x ** k",
    "2 ** x", "0.5 ** x", "10 ** x", "k ** x", "pow(x, 2)", "pow(x, k)", "pow(2, x)",
    "math.pow(x, 2)", "math.pow(x, 0.5)", "math.pow(x, k)", "math.pow(4, x)", "math.hypot(x, k)",
    "math.exp(-x)", "math.log(x)", "math.tanh(x)", "x % 0.7", "-x // 0.3", "round(x, 1)",
]  # fmt: skip


@pytest.fixture(scope="module")
def points():
    drawn = random.Random(7)
    return [(drawn.randint(1, 2**30), drawn.randint(1, 16)) for _ in range(400)]


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_plain_and_compiled_arithmetic_agree_to_the_bit(tmp_path, expression, points):
    path = tmp_path / "policy.py"
    path.write_text(
        "import math\n\n\ndef score(pod, node):\n"
        f"    x, k = node.cpu_milli_left / 2**27, pod.gpu_count\n    return {expression}\n"
    )
    policy = load(str(path))
    call = CALLBACK(policy.native(1, 8).address)
    for milli, count in points:
        one, other = pod(gpus=count), node((milli, milli))
        records = np.array([pod_record(one)]), np.array([node_record(other)])
        found = call(records[0].ctypes.data, records[1].ctypes.data, -1, 0, 0, 0)
        assert found == policy.score_pair(one, other, -1, None)


def rewritten(text):
    return ast.unparse(ast.fix_missing_locations(Rewriter().visit(ast.parse(text))))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x ** 2", "_integer_power(x, 2)"),
        ("x ** -3.0", "_integer_power(x, -3)"),
        ("x ** 0.5", "_square_root(x)"),
        ("x ** 2.5", "_power(x, 2.5)"),
        ("x ** 65", "_power(x, 65)"),
        ("x ** y", "_power(x, y)"),
        ("2 ** x", "_power(2, x)"),
        ("(x ** 2) ** y", "_power(_integer_power(x, 2), y)"),
        ("x **= 2", "x = _integer_power(x, 2)"),
        ("math.pow(x, 2)", "_integer_power(x, 2)"),
        ("pow(x, y)", "_power(x, y)"),
        ("math.hypot(x, y)", "_hypotenuse(x, y)"),
        ("2 ** 10", "2 ** 10"),
        ("pow(x, y, z)", "pow(x, y, z)"),
        ("x * y", "x * y"),
    ],
)
def test_powers_and_hypotenuses_are_rewritten(text, expected):
    assert rewritten(text) == expected


def test_a_rewritten_power_is_as_close_as_the_original():
    assert integer_power(1.1, 7) == pytest.approx(1.1**7, rel=1e-15)
    assert integer_power(0, 0) == 1.0
    assert NAMES["_power"](2, 10) == 1024.0
    assert NAMES["_hypotenuse"](5, 12) == math.hypot(5, 12)
