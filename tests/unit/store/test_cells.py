import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.store.cells import text_cell, text_of

# Few characters, so that those which need care meet each other.
CAREFUL = st.text(st.sampled_from("\x00\x1a0a"), max_size=12)


@given(CAREFUL | st.text(st.characters(exclude_categories=["Cs"])))
def test_a_text_comes_back_and_its_cell_has_no_nul(text):
    cell = text_cell(text, "")
    assert "\x00" not in cell
    assert text_of(cell) == text


@given(CAREFUL, CAREFUL)
def test_different_texts_have_different_cells(one, other):
    assert (text_cell(one, "") == text_cell(other, "")) is (one == other)


@pytest.mark.parametrize("text", ["", "plain", "Füllt 🙂\n\t"])
def test_an_ordinary_text_is_kept_as_it_is(text):
    assert text_cell(text, "") == text
