import pytest

from podium.files.json_text import MAX_DEPTH, JsonError, is_too_deep, parse_value


def nested(levels):
    return "[" * levels + "]" * levels


def test_a_value_is_read():
    assert parse_value('{"a": [1, 2.5, null]}') == {"a": [1, 2.5, None]}
    assert parse_value(nested(MAX_DEPTH)) is not None


@pytest.mark.parametrize(
    ("text", "problem", "line"),
    [
        ("[1,\n2", "Expecting ',' delimiter", 2),
        (nested(100_000), "it is nested too deeply", 0),
        (nested(MAX_DEPTH + 1), "it is nested too deeply", 0),
        ('{"a":' * 200 + "1" + "}" * 200, "it is nested too deeply", 0),
        ("9" * 5000, "a number has too many digits", 0),
    ],
    ids=["cut", "very deep", "deep", "deep objects", "digits"],
)
def test_whatever_is_wrong_is_one_kind_of_error(text, problem, line):
    with pytest.raises(JsonError, match=problem) as caught:
        parse_value(text)
    assert caught.value.line == line


def test_scalars_have_no_depth():
    assert not is_too_deep("x" * 1000)
