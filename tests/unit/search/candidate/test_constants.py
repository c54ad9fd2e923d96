import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.errors import PolicyError, UnknownName
from podium.search.candidate.constants import Constant, read_constants, with_constants

TEXT = '''"""Weighs things: é, ü."""
from podium.policies import tunable

W_CPU = tunable(0.5, 0.0, 2.0)  # CPU; ß counts as two bytes
W_GPU=tunable( -1 ,-3,  4.0 )   # odd spacing stays
LONG = tunable(
    1.5,  # the value
    1,
    2,
)
PLAIN = 3.0


def score(pod, node):
    return W_CPU * node.cpu_milli_left + W_GPU + LONG + PLAIN
'''


def test_constants_are_read_in_order_with_bounds_and_lines():
    assert read_constants(TEXT) == (
        Constant("W_CPU", 0.5, 0.0, 2.0, 4),
        Constant("W_GPU", -1.0, -3.0, 4.0, 5),
        Constant("LONG", 1.5, 1.0, 2.0, 6),
    )


def test_new_values_leave_every_other_character_alone():
    changed = with_constants(TEXT, {"W_GPU": 2.0, "LONG": 1.25})
    expected = TEXT.replace("( -1 ,", "( 2.0 ,").replace("    1.5,", "    1.25,")
    assert changed == expected


def test_no_values_change_nothing():
    assert with_constants(TEXT, {}) == TEXT


def test_windows_line_ends_stay():
    text = "A = tunable(1.0, 0.0, 2.0)\r\nB = tunable(1.0, 0.0, 2.0)\r\n"
    assert with_constants(text, {"B": 0.5}) == text.replace("B = tunable(1.0", "B = tunable(0.5")


@given(st.floats(-3, 4))
def test_written_values_are_read_back_exactly(value):
    changed = with_constants(TEXT, {"W_GPU": value})
    assert read_constants(changed)[1].value == value
    assert ast.dump(ast.parse(with_constants(changed, {"W_GPU": -1.0}))) == ast.dump(
        ast.parse(TEXT.replace("( -1 ,", "( -1.0 ,"))
    )


def test_a_value_outside_its_bounds_is_not_written():
    with pytest.raises(PolicyError, match=r"W_CPU is 2\.5"):
        with_constants(TEXT, {"W_CPU": 2.5})


def test_an_unknown_constant_is_named_with_those_that_exist():
    with pytest.raises(UnknownName) as caught:
        with_constants(TEXT, {"W_CPV": 1.0})
    assert "W_CPU" in caught.value.hint


@pytest.mark.parametrize(
    "call", ["tunable(1.0)", "tunable(x, 0, 1)", "tunable(3, 0, 1)", "tunable(1, 0, high=2)"]
)
def test_a_declaration_that_cannot_be_read_names_its_line(call):
    with pytest.raises(PolicyError) as caught:
        read_constants(f"\nA = {call}\n")
    assert caught.value.where == "line 2"


def test_a_list_of_new_values_over_several_lines_keeps_the_lines_before_it():
    text = "A = tunable(-\\\n 1.0, -2.0, 2.0)\nB = 1\n"
    assert with_constants(text, {"A": 2}) == "A = tunable(2.0, -2.0, 2.0)\nB = 1\n"
