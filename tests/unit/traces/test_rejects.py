import pytest

from podium.errors import InputError
from podium.traces.rejects import LISTED, Rejects


def test_a_bad_row_stops_the_reading_and_says_how_to_go_on():
    with pytest.raises(InputError, match="bad") as caught:
        Rejects().add(InputError("bad"))
    assert "--skip-bad" in caught.value.hint


def test_a_hint_of_its_own_stays():
    with pytest.raises(InputError) as caught:
        Rejects().add(InputError("bad", hint="own"))
    assert caught.value.hint == "own"


def test_skipped_rows_are_listed():
    rejects = Rejects(is_skipping=True)
    rejects.add(InputError.at("f.csv", "bad", line=3))
    assert rejects.notes() == ["left out: f.csv, line 3: bad"]


def test_beyond_a_number_skipped_rows_are_counted():
    rejects = Rejects(is_skipping=True)
    for line in range(LISTED + 7):
        rejects.add(InputError.at("f.csv", "bad", line=line + 1))
    assert len(rejects.notes()) == LISTED + 1
    assert rejects.notes()[-1] == "left out: 7 more"
