import math
from enum import IntEnum

import numpy as np
import pytest

from podium.errors import PolicyError
from podium.policies import from_function, policy_of
from podium.policies.source import read_source
from podium.testing.native import score_compiled
from podium.testing.states import random_states

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
    found, is_changed = score_compiled(policy.native(table.ndim, 8), STATES, table)
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
