from pathlib import Path

import pytest

from podium.errors import InputError
from podium.files.json_items import parse_json


def parse(text):
    return [(line, value) for line, value, _ in parse_json(text, Path("f.json"))]


def test_an_object_comes_with_its_line():
    assert parse('\n\n {"a": [1, {"b": null}]}\n') == [(3, {"a": [1, {"b": None}]})]


def test_elements_of_an_array_come_with_their_lines():
    assert parse('[1,\n{"a": 2}\n, "x"]') == [(1, 1), (2, {"a": 2}), (3, "x")]


def test_items_come_with_their_lines_before_what_holds_them():
    text = '{"kind": "List",\n "items": [{"a": 1},\n{"b": 2}],\n "z": {}}'
    assert list(parse_json(text, Path("f.json"))) == [
        (2, {"a": 1}, True), (3, {"b": 2}, True),
        (1, {"kind": "List", "items": [], "z": {}}, False),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "key", "line"),
    [
        ('{"a": 1,\n "a": 2}', "a", 2),
        ('{"kind": "List", "items": [],\n\n"items": []}', "items", 3),
        ('{"items": [{"b": {"c": [1],\n "d": "a\\"c",\n"c": 2}}]}', "c", 3),
        ('[{"a": {"b": 1}},\n{"a": {"b": 1, "b": 2}}]', "b", 2),
    ],
)
def test_a_key_that_is_there_twice_is_an_error_with_its_line(text, key, line):
    with pytest.raises(InputError, match=f"the key `{key}` is there twice") as caught:
        parse(text)
    assert caught.value.where == f"f.json, line {line}"


def test_several_values_may_follow_each_other():
    assert parse('{"a": 1}\n{"b": 2}') == [(1, {"a": 1}), (2, {"b": 2})]


def test_empty_parts_are_allowed():
    assert parse("") == []
    assert parse("[]") == []
    assert parse("{}") == [(1, {})]
    assert parse('{"items": []}') == [(1, {"items": []})]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('{"a":\n}', 2),
        ('{"a": 1,}', 1),
        ('{"a": 1\n "b": 2}', 2),
        ("{'a': 1}", 1),
        ("{1: 2}", 1),
        ("[1,\n\n2", 3),
        ('{"items": [1,]}', 1),
        ("nope", 1),
        ('{"a": "\n"}', 1),
    ],
)
def test_bad_json_is_an_input_error_with_its_line(text, line):
    with pytest.raises(InputError, match="is not valid JSON") as caught:
        parse(text)
    assert caught.value.where == f"f.json, line {line}"


def test_deep_nesting_is_refused():
    with pytest.raises(InputError, match="nested too deeply"):
        parse('{"a": ' + "[" * 100_000)


def test_a_number_of_thousands_of_digits_is_refused():
    with pytest.raises(InputError, match="is not valid JSON"):
        parse('{"a": ' + "9" * 5000 + "}")
