import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.settings.about import About
from podium.settings.key import Key
from podium.settings.value import advice, checked, from_text


def key(kind, **about):
    return Key("section", "name", kind, About("what it is for", **about))


@given(st.integers())
def test_whole_numbers_are_read_back_from_their_text(number):
    assert from_text(key(int), str(number)) == number


@given(st.floats(allow_nan=False))
def test_numbers_are_read_back_from_their_text(number):
    assert from_text(key(float), repr(number)) == number


@pytest.mark.parametrize("text", ["true", "1", "YES", " on "])
def test_words_for_true_are_true(text):
    assert from_text(key(bool), text) is True


@pytest.mark.parametrize("text", ["false", "0", "No", "off"])
def test_words_for_false_are_false(text):
    assert from_text(key(bool), text) is False


@pytest.mark.parametrize(
    ("kind", "text", "message"),
    [
        (int, "3.5", '"3.5" is not a whole number'),
        (float, "much", '"much" is not a number'),
        (bool, "maybe", '"maybe" is not true or false'),
    ],
)
def test_text_of_another_type_is_refused_in_words(kind, text, message):
    with pytest.raises(ValueError, match=message):
        from_text(key(kind), text)


@pytest.mark.parametrize(
    ("kind", "value"),
    [(int, "3"), (int, 3.5), (int, True), (float, "3"), (float, True), (bool, 1), (str, 3),
     (Path, 3), (int, [1]), (str, {"a": 1})],
)  # fmt: skip
def test_a_typed_value_of_another_type_is_refused(kind, value):
    with pytest.raises(ValueError, match="is not"):
        checked(key(kind), value, Path())


def test_a_whole_number_will_do_for_a_number():
    value = checked(key(float), 2, Path())
    assert value == 2.0
    assert isinstance(value, float)


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan])
def test_numbers_that_are_not_finite_are_refused(value):
    with pytest.raises(ValueError, match="not a finite number"):
        checked(key(float), value, Path())


def test_a_whole_number_beyond_every_float_is_refused():
    with pytest.raises(ValueError, match="too large for a number"):
        checked(key(float), 10**400, Path())


@given(st.integers())
def test_a_lower_bound_holds(number):
    bounded = key(int, at_least=3)
    if number >= 3:
        assert checked(bounded, number, Path()) == number
    else:
        with pytest.raises(ValueError, match="too small"):
            checked(bounded, number, Path())


def test_an_open_bound_excludes_its_end():
    with pytest.raises(ValueError, match=r"0\.0 is too small"):
        checked(key(float, above=0), 0.0, Path())


def test_an_upper_bound_includes_its_end():
    share = key(float, at_least=0, at_most=1)
    assert checked(share, 1, Path()) == 1.0
    with pytest.raises(ValueError, match=r"1\.5 is too large"):
        checked(share, 1.5, Path())


def test_a_choice_outside_the_list_is_refused_with_the_closest_one():
    choosing = key(str, choices=("replay", "inflation"))
    with pytest.raises(ValueError, match='"replai" is not one of replay, inflation'):
        checked(choosing, "replai", Path())
    assert advice(choosing, "replai") == "did you mean replay"


def test_advice_names_type_bound_and_purpose():
    assert advice(key(int, at_least=0), "x") == "give a whole number of at least 0 (what it is for)"
    assert advice(key(float, above=0), "x") == "give a number of more than 0 (what it is for)"
    share = key(float, at_least=0, at_most=1)
    assert advice(share, "x") == "give a number of at least 0, at most 1 (what it is for)"
    assert advice(key(bool), "x") == "give true or false (what it is for)"


def test_paths_are_relative_to_the_folder_of_their_file():
    assert checked(key(Path), "traces", Path("project")) == Path("project/traces")
    assert checked(key(Path), "/traces", Path("project")) == Path("/traces")
    assert checked(key(Path), "~/traces", Path("project")) == Path.home() / "traces"


@pytest.mark.parametrize("value", ["hunter2", 3])
def test_a_secret_is_never_repeated_in_a_complaint(value):
    secret = key(bool, is_secret=True)
    with pytest.raises(ValueError, match="is not true or false") as caught:
        checked(secret, value, Path())
    assert str(value) not in str(caught.value)


def test_a_secret_text_is_never_repeated_in_a_complaint():
    with pytest.raises(ValueError, match="is not a whole number") as caught:
        from_text(key(int, is_secret=True), "hunter2")
    assert "hunter2" not in str(caught.value)
