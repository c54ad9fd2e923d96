from pathlib import Path

import pytest

from podium.errors import InputError, UnknownName
from podium.policies.scheduler_config.section import Section


def section(**values):
    return Section(Path("s.yaml"), "profiles[0]", values)


def test_what_is_not_there_is_empty_or_the_default():
    empty = section()
    assert empty.section("a").values == {}
    assert empty.sections("a") == []
    assert empty.text("a", "x") == "x"
    assert empty.number("a", 0, 9, 5) == 5


def test_nested_sections_know_their_place():
    inner = section(a={"b": [{}, {"c": 3}]}).section("a").sections("b")[1]
    with pytest.raises(InputError) as raised:
        inner.text("c")
    assert raised.value.where == "s.yaml, profiles[0].a.b[1].c"
    assert raised.value.message == "3 is not a string"


@pytest.mark.parametrize("value", [True, "4", 4.0, 10, -1])
def test_a_number_is_whole_and_within_its_bounds(value):
    with pytest.raises(InputError, match="is not a whole number from 0 to 9"):
        section(a=value).number("a", 0, 9, 0)


def test_unknown_keys_get_a_suggestion():
    with pytest.raises(UnknownName, match='unknown setting "wieght"') as raised:
        section(wieght=1).only(("name", "weight"))
    assert raised.value.hint == "did you mean weight"


def test_long_values_are_shown_in_part():
    with pytest.raises(InputError, match=r"\.\.\. is not a mapping"):
        section(a=["x" * 100]).section("a")
