from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.model.quantity import (
    parse_capacity_mib,
    parse_cpu_milli,
    parse_memory_mib,
    parse_quantity,
)

FACTORS = {
    "": Fraction(1),
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 10**3),
    "k": Fraction(10**3),
    "M": Fraction(10**6),
    "G": Fraction(10**9),
    "T": Fraction(10**12),
    "P": Fraction(10**15),
    "E": Fraction(10**18),
    "Ki": Fraction(2**10),
    "Mi": Fraction(2**20),
    "Gi": Fraction(2**30),
    "Ti": Fraction(2**40),
    "Pi": Fraction(2**50),
    "Ei": Fraction(2**60),
}

decimals = st.builds(
    lambda whole, places: f"{whole}.{places}" if places else whole,
    st.integers(0, 10**15).map(str),
    st.one_of(st.just(""), st.integers(0, 10**9).map(str)),
)


@given(decimals, st.sampled_from(sorted(FACTORS)), st.sampled_from(["", "+", "-"]))
def test_every_suffix_multiplies_exactly(number, suffix, sign):
    expected = Fraction(number) * FACTORS[suffix] * (-1 if sign == "-" else 1)
    assert parse_quantity(f"{sign}{number}{suffix}") == expected


@given(decimals, st.integers(-30, 30), st.sampled_from("eE"))
def test_exponents_are_powers_of_ten(number, power, letter):
    expected = Fraction(number) * Fraction(10) ** power
    assert parse_quantity(f"{number}{letter}{power}") == expected


@given(st.integers(0, 10**12))
def test_numbers_of_json_read_like_their_text(number):
    assert parse_quantity(number) == parse_quantity(str(number)) == number


def test_a_float_reads_as_the_decimal_it_is_written_as():
    assert parse_quantity(0.1) == Fraction(1, 10)


def test_a_point_may_stand_at_either_end():
    assert parse_quantity("1.") == 1
    assert parse_quantity(".5") == Fraction(1, 2)


def test_space_around_a_quantity_is_no_part_of_it():
    assert parse_quantity(" 4Gi ") == 4 * 2**30


@pytest.mark.parametrize(
    "bad",
    ["", " ", ".", "-", "abc", "1e", "1 Gi", "1ki", "1K", "Gi", "1.2.3", "0x10", "1_000", "nan",
     "inf", "1e1000", "--1", "1GiB", "1mi", "\u0661", float("nan"), float("inf"), True, False],
)  # fmt: skip
def test_anything_else_is_refused(bad):
    with pytest.raises(ValueError, match="is not a quantity"):
        parse_quantity(bad)


def test_a_number_of_thousands_of_digits_is_refused():
    with pytest.raises(ValueError, match="digits"):
        parse_quantity("9" * 5000)


@given(st.integers(0, 10**9), st.sampled_from(["n", "u", "m", ""]))
def test_a_request_for_cpu_is_never_understated(number, suffix):
    exact = Fraction(number) * FACTORS[suffix] * 1000
    milli = parse_cpu_milli(f"{number}{suffix}")
    assert 0 <= milli - exact < 1


@given(st.integers(0, 10**15))
def test_memory_is_rounded_up_for_requests_and_down_for_capacity(number):
    exact = Fraction(number, 2**20)
    assert 0 <= parse_memory_mib(number) - exact < 1
    assert 0 <= exact - parse_capacity_mib(number) < 1
