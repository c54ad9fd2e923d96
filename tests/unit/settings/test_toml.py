import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.errors import SettingsError
from podium.settings.toml import key_lines, read_document

NAMES = st.from_regex(r"[a-z][a-z_]{0,8}", fullmatch=True)
VALUES = st.sampled_from(
    ["1", '"a"', "[\n  1,\n  2,\n]", '"""\n[not.a.header]\nkey = 1\n"""', "true"]
)
GAPS = st.sampled_from(["", "\n", "# a comment\n", "\n\n"])


@st.composite
def documents(draw):
    """Writes a document and notes, on the way, the line of each key."""
    text, expected = "", {}
    for section in draw(st.lists(NAMES, unique=True, max_size=4)):
        text += draw(GAPS)
        expected[(section,)] = text.count("\n") + 1
        text += f"[{section}]\n"
        for key in draw(st.lists(NAMES, unique=True, max_size=4)):
            text += draw(GAPS)
            expected[(section, key)] = text.count("\n") + 1
            text += f"{key} = {draw(VALUES)}\n"
    return text, expected


@given(documents())
def test_every_key_is_found_on_the_line_where_it_begins(document):
    text, expected = document
    assert key_lines(text) == expected


def test_dotted_keys_and_inline_tables_have_lines_too():
    lines = key_lines("simulate.seed = 1\n\ndisplay = {progress = true}\n")
    assert lines["simulate", "seed"] == 1
    assert lines["display", "progress"] == 3


def test_a_file_that_is_not_there_reads_as_empty(tmp_path):
    document = read_document(tmp_path / "podium.toml", "podium.toml")
    assert document.data == {}
    assert document.place("simulate") == "podium.toml"


def test_text_that_is_not_toml_is_reported_with_line_and_column(tmp_path):
    path = tmp_path / "podium.toml"
    path.write_text("[simulate]\nseed = \n")
    with pytest.raises(SettingsError, match="not TOML: Invalid value") as caught:
        read_document(path, "podium.toml")
    assert caught.value.where == "podium.toml, line 2, column 8"


def test_a_file_that_cannot_be_read_is_reported(tmp_path):
    with pytest.raises(SettingsError, match="the file cannot be read"):
        read_document(tmp_path, "podium.toml")


def test_bytes_that_are_no_text_are_reported(tmp_path):
    path = tmp_path / "podium.toml"
    path.write_bytes(b"\xff\xf0")
    with pytest.raises(SettingsError, match="the file cannot be read"):
        read_document(path, "podium.toml")
