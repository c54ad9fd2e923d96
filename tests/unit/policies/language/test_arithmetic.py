import itertools
import math
import random

import numpy as np
import pytest

from podium.policies import load
from podium.policies.abi import CALLBACK
from podium.policies.language.arithmetic import (
    PLAIN,
    TESTS,
    UNARY,
    hypotenuse,
    integer_power,
    power,
)
from podium.policies.language.kind import MOST_WHOLE
from podium.policies.language.native_arithmetic import NATIVE
from support.depth import every
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


@pytest.mark.parametrize("expression", every(3, EXPRESSIONS))
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


@pytest.mark.parametrize("name", sorted(set(PLAIN) & set(NATIVE)))
def test_an_operation_gives_the_same_plain_and_compiled_and_refuses_the_same(name):
    for arguments in operands(name):
        one, other = answer(PLAIN[name], arguments), answer(NATIVE[name], arguments)
        assert one == other or (one != one and other != other), arguments


def test_every_operation_is_there_for_compiled_code_too():
    assert set(PLAIN) == set(NATIVE)


def operands(name):
    """Lists arguments for an operation, extreme ones among them."""
    drawn = random.Random(name)
    reals = [*REALS, *(drawn.uniform(-1e3, 1e3) for _ in range(20))]
    wholes = [*WHOLES, *(drawn.randint(-MOST_WHOLE, MOST_WHOLE) for _ in range(10))]
    if name in (*UNARY, *TESTS, "truncated", "floored", "ceiled", "rounded"):
        return [(each,) for each in reals]
    if name in ("add", "subtract", "multiply", "shift_left", "shift_right"):
        return list(itertools.product(wholes, wholes))
    if name in ("mixed_add", "mixed_subtract", "mixed_multiply", "mixed_power"):
        numbers = [*reals, *map(float, wholes)]
        return list(itertools.product(numbers, numbers))
    if name in ("integer_power", "mixed_integer_power", "rounded_to"):
        return list(itertools.product(reals, (-15, -3, -1, 0, 1, 2, 15)))
    if name == "within":
        return [(each,) for each in (*wholes, MOST_WHOLE + 1, -MOST_WHOLE - 1, 2**62)]
    if name in ("whole", "real"):
        return [(True,), (False,)] if name == "whole" else [(each,) for each in wholes]
    if name in ("floor_divide", "remainder", "minimum", "maximum"):
        return [*itertools.product(wholes, wholes), *itertools.product(reals, reals)]
    if name in ("power", "hypotenuse", "turned", "signed"):
        return list(itertools.product(reals, reals))
    return LISTS[name]


def answer(function, arguments):
    try:
        return function(*arguments)
    except Exception:  # noqa: BLE001 - whatever is raised, both must raise
        return "raised"


ROWS, COLUMN = np.arange(6.0).reshape(2, 3), np.array([3.0, math.nan, -1.0])
PLACES = (-10, -3, -1, 0, 1, 2, 3, 8, MOST_WHOLE)
LISTS = {
    "slot": [((1, 2, 3), place) for place in PLACES],
    "item": [((1.5, 2.5), place) for place in PLACES],
    "entry": [(COLUMN, place) for place in PLACES],
    "cell": [(ROWS, *places) for places in itertools.product(PLACES, PLACES)],
    "row_cell": [(ROWS, 1, 2)],
    "has_columns": [(ROWS, 3), (ROWS, 4)],
    "entries": [(np.array([1.0]),)],
    "total": [((1, 2, 3), 0), ((0.1, 0.2, 0.3), 0.5)],
    "smallest": [((3, 1, 2),), (COLUMN[::-1].copy(),)],
    "largest": [((3, 1, 2),), (COLUMN[::-1].copy(),)],
    "checked": [(1, True), (1, False)],
}
REALS = (
    0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 1e-320, 1e308, -1e308, 1.7976931348623157e308,
    math.inf, -math.inf, math.nan, 2.0**53, 2.0**53 + 2, -(2.0**53), 2.0**52 + 0.5, 1e19, 0.1,
    709.8, 710.0, -745.2, 7.0, 0.3, -0.3,
)  # fmt: skip
WHOLES = (
    0, 1, -1, 2, 3, 7, 8, 62, 63, 64, 65, -8, 1000, 2**31 - 1, -(2**31), 2**52, MOST_WHOLE,
    -MOST_WHOLE, MOST_WHOLE - 1, 94906267, 94906266,
)  # fmt: skip


def test_a_power_by_squaring_is_as_close_as_the_original():
    assert integer_power(1.1, 7) == pytest.approx(1.1**7, rel=1e-15)
    assert integer_power(0, 0) == 1.0
    assert power(2, 10) == 1024.0
    assert hypotenuse(5, 12) == math.hypot(5, 12)
