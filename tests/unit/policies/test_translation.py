import math
from enum import IntEnum

import numpy as np
import pytest

from podium.errors import PolicyError
from podium.policies import from_function, policy_of
from podium.policies.batch import score_states
from podium.policies.source import read_source
from podium.policies.states import random_states

STATES = random_states(6, 3).with_slots(8)
ROWS = np.array([[1.0, 2.0], [3.0, 4.0]])


def scores(policy, *given, table=ROWS):
    """Scores states in plain Python and compiled."""
    plain = []
    for pod, node, _gpu in STATES.views():
        try:
            plain.append(float(policy.function(pod, node, *given)))
        except (IndexError, TypeError):
            plain.append(math.nan)
    found, is_changed = score_states(policy.native(table.ndim, 8), STATES, table)
    assert not is_changed
    return plain, found.tolist()


@pytest.mark.parametrize("folded", ["sum", "max", "min"])
@pytest.mark.parametrize("depth", [1, 12])
def test_a_tuple_that_each_item_would_compute_anew_is_not_compiled(folded, depth):
    nested = f"{folded}(pair(" * depth + "1" + "))" * depth
    text = (
        f"def pair(x):\n    return x, x + 1\n\n\ndef score(pod, node):\n    return {nested} * 1.0\n"
    )
    policy = policy_of(read_source(text, "p.py"), "p")
    assert "put the tuple into a name first" in policy.not_compiled
    with pytest.raises(PolicyError, match="cannot be compiled"):
        policy.native(1, 8)


def test_a_tuple_with_a_name_is_folded():
    text = (
        "def pair(x):\n    return x, x + 1\n\n\n"
        "def score(pod, node):\n    made = pair(pod.cpu_milli)\n    return sum(made) + max(made)\n"
    )
    policy = policy_of(read_source(text, "p.py"), "p")
    assert policy.not_compiled == ""
    plain, found = scores(policy)
    assert plain == found == [3 * pod.cpu_milli + 2 for pod, _, _ in STATES.views()]


class Level(IntEnum):
    LOW = 2
    HIGH = 7


class Whole(int):
    def __repr__(self):
        return "a whole number of its own"


class Real(float):
    def __repr__(self):
        return "a number of its own"


CONSTANTS = {
    "an enumeration": (Level.HIGH, 7),
    "a kind of int": (Whole(3), 3),
    "a kind of float": (Real(0.25), 0.25),
    "a NumPy float": (np.float64(0.5), 0.5),
    "a truth": (True, 1),
    "a whole number": (4, 4),
    "nested": ((Level.LOW, (Whole(5), Real(0.5), False)), 2 + 5 + 0.5 + 0),
}


@pytest.mark.parametrize("name", CONSTANTS)
def test_a_constant_of_a_kind_of_number_is_that_number(name):
    constant, expected = CONSTANTS[name]
    if name == "nested":

        def score(pod, node):  # noqa: ARG001
            return constant[0] + constant[1][0] + constant[1][1] + constant[1][2]
    else:

        def score(pod, node):  # noqa: ARG001
            return constant + 0

    policy = from_function(score)
    assert policy.not_compiled == ""
    plain, found = scores(policy)
    assert plain == found == [expected] * len(STATES)


def test_an_enumeration_in_a_file_is_compiled():
    text = (
        "from enum import IntEnum\n\n\nclass Level(IntEnum):\n    LOW = 2\n    HIGH = 7\n\n\n"
        "TOP, BOTH = Level.HIGH, (Level.LOW, True)\n\n\n"
        "def score(pod, node):\n    return TOP * pod.cpu_milli + BOTH[0] + BOTH[1]\n"
    )
    policy = policy_of(read_source(text, "p.py"), "p")
    assert policy.not_compiled == ""
    plain, found = scores(policy)
    assert plain == found == [7 * pod.cpu_milli + 3 for pod, _, _ in STATES.views()]


READS = {
    "a plain table by row and column": ("table[0, 0]", ROWS[0]),
    "a table of rows by one number": ("table[0]", ROWS),
    "the sum of a table of rows": ("sum(table)", ROWS),
    "the largest of a table of rows": ("max(table)", ROWS),
    "the rows of a plain table": (None, ROWS[0]),
}


@pytest.mark.deep
@pytest.mark.parametrize("is_taken", [False, True])
@pytest.mark.parametrize("name", READS)
def test_a_misread_table_fails_in_both_tiers_and_only_where_it_is_read(name, is_taken):
    read, table = READS[name]
    body = f"        return {read}\n"
    if read is None:
        body = "        for row in range(len(table)):\n            return table[row, 1]\n"
    sign = ">=" if is_taken else "<"
    head = f"def score(pod, node, table):\n    if pod.cpu_milli {sign} 0:\n"
    text = f"{head}{body}    return 5.0\n"
    policy = policy_of(read_source(text, "p.py"), "p")
    assert policy.not_compiled == ""
    plain, found = scores(policy, table, table=table)
    np.testing.assert_array_equal(plain, found)
    assert [math.isnan(each) for each in found] == [is_taken] * len(STATES)


LOOPS = {
    "a column that could be larger": "    s += table[i, pod.gpu_count]\n",
    "a column under a condition": "    if pod.cpu_milli < 0:\n            s += table[i, 40]\n",
    "a column behind the end of the loop": "    break\n        s += table[i, 40]\n",
    "a loop in a loop": (
        "    for j in range(len(table)):\n"
        "            s += table[i, pod.gpu_count] + table[j, 8 if pod.cpu_milli >= 0 else 40]\n"
    ),
}


@pytest.mark.deep
@pytest.mark.parametrize("name", LOOPS)
def test_a_loop_over_rows_asks_for_no_column_that_it_does_not_read(name):
    text = (
        "def score(pod, node, table):\n    s = 0.0\n    for i in range(len(table)):\n"
        f"    {LOOPS[name]}    return s\n"
    )
    wide = np.arange(4 * 9, dtype=float).reshape(4, 9)
    written = {}
    exec(text, written)
    policy = policy_of(read_source(text, "p.py"), "p")
    assert policy.not_compiled == ""
    expected = [float(written["score"](pod, node, wide)) for pod, node, _ in STATES.views()]
    plain, found = scores(policy, wide, table=wide)
    assert plain == found == expected
    narrow = np.ones((2, 1))
    if name == "a column that could be larger":
        plain, found = scores(policy, narrow, table=narrow)
        np.testing.assert_array_equal(plain, found)
        is_there = [pod.gpu_count == 0 for pod, _, _ in STATES.views()]
        assert [not math.isnan(each) for each in found] == is_there
    no_rows = np.zeros((0, 1))
    plain, found = scores(policy, no_rows, table=no_rows)
    assert plain == found == [0.0] * len(STATES)


def doubled(lines):
    """Writes lines that each hold the line before twice."""
    return "".join(f"    t{n} = (t{n - 1}, t{n - 1})\n" for n in range(1, lines))


LARGE = {
    "doubled line by line": (
        f"def score(pod, node):\n    t0 = (1, 2)\n{doubled(36)}    return 1.0\n"
    ),
    "doubled outside": (
        "t0 = (1, 2)\nfor _ in range(36):\n    t0 = (t0, t0)\n\n\n"
        "def score(pod, node):\n    x = t0\n    return 1.0\n"
    ),
    "long": "T = tuple(range(3000))\n\n\ndef score(pod, node):\n    return T[node.gpu_count]\n",
}


@pytest.mark.parametrize("name", LARGE)
def test_a_tuple_too_large_for_compilers_runs_in_plain_python_alone(name):
    policy = policy_of(read_source(LARGE[name], "p.py"), "p")
    assert "holds a tuple of more than 512 parts" in policy.not_compiled
    pod, node, _ = next(iter(STATES.views()))
    assert policy.function(pod, node) == (node.gpu_count if name == "long" else 1.0)


def test_a_number_that_counts_otherwise_is_taken_for_its_value():
    text = (
        "class Odd(int):\n    def __abs__(self):\n        raise ValueError\n"
        "    def __int__(self):\n        raise ValueError\n\n\nODD = Odd(3)\n\n\n"
        "def score(pod, node):\n    return ODD * pod.cpu_milli\n"
    )
    policy = policy_of(read_source(text, "p.py"), "p")
    plain, found = scores(policy)
    assert plain == found == [3 * pod.cpu_milli for pod, _, _ in STATES.views()]


def test_a_function_with_more_defaults_than_arguments_is_called_as_python_does():
    text = (
        "def helper(x, y):\n    return x + y\n\n\nhelper.__defaults__ = (1, 2, 3)\n\n\n"
        "def score(pod, node):\n    return helper(pod.cpu_milli)\n"
    )
    policy = policy_of(read_source(text, "p.py"), "p")
    plain, found = scores(policy)
    assert plain == found == [pod.cpu_milli + 3 for pod, _, _ in STATES.views()]
