from fractions import Fraction

import pytest

from podium.traces import fields
from podium.traces.fields import FieldError


def test_what_is_absent_reads_as_empty():
    assert fields.mapping_at({}, "a", "a") == {}
    assert fields.mapping_at({"a": None}, "a", "a") == {}
    assert fields.list_at({"a": None}, "a", "a") == []
    assert fields.text_of(None, "a") == ""


@pytest.mark.parametrize(
    ("read", "value"),
    [
        (lambda v: fields.mapping_at({"a": v}, "a", "f"), "text"),
        (lambda v: fields.mapping_at({"a": v}, "a", "f"), []),
        (lambda v: fields.list_at({"a": v}, "a", "f"), {}),
        (lambda v: fields.mappings_at({"a": v}, "a", "f"), ["text"]),
        (lambda v: fields.text_of(v, "f"), {}),
        (lambda v: fields.texts_at({"a": v}, "a", "f"), {"k": []}),
        (lambda v: fields.whole_of(v, "f"), "1.5"),
        (lambda v: fields.whole_of(v, "f"), -1),
        (lambda v: fields.whole_of(v, "f"), None),
        (lambda v: fields.whole_of(v, "f"), True),
        (lambda v: fields.quantity_of(v, "f"), "-1"),
        (lambda v: fields.quantity_of(v, "f"), "1e40"),
        (lambda v: fields.quantity_of(v, "f"), "nan"),
        (lambda v: fields.quantity_of(v, "f"), {}),
        (lambda v: fields.number_of(v, "f"), "1e400"),
        (lambda v: fields.flag_of(v, "f"), "maybe"),
        (lambda v: fields.time_of(v, "f"), "yesterday"),
        (lambda v: fields.time_of(v, "f"), "2023-07-01T12:00:00"),
        (lambda v: fields.time_of(v, "f"), "2023-07-01"),
        (lambda v: fields.time_of(v, "f"), 5),
    ],
)
def test_the_wrong_kind_of_value_names_its_field(read, value):
    with pytest.raises(FieldError) as caught:
        read(value)
    assert caught.value.field.startswith("f")
    assert str(caught.value)


def test_scalars_read_as_the_text_they_were_written_as():
    assert [fields.text_of(v, "f") for v in (True, 5, 0.5, "x")] == ["true", "5", "0.5", "x"]


def test_flags_read_from_yaml_and_json():
    assert [fields.flag_of(v, "f") for v in (True, "true", "False", False)] == [
        True, True, False, False,
    ]  # fmt: skip


def test_quantities_stay_exact():
    assert fields.quantity_of("0.1", "f") == Fraction(1, 10)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1970-01-01T00:00:00Z", 0.0),
        ("1970-01-02T01:00:00+01:00", 86400.0),
        ("1970-01-01T00:00:00.250Z", 0.25),
        ("1969-12-31T23:59:59Z", -1.0),
    ],
)
def test_times_count_from_1970(text, seconds):
    assert fields.time_of(text, "f") == seconds


def test_long_values_are_cut_in_messages():
    assert len(fields.shown("x" * 500)) == 60
    assert fields.shown("two\nlines") == '"two lines"'
