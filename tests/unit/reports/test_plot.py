import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.reports.plot import spread

heights = st.dictionaries(st.text(min_size=1, max_size=3), st.floats(-1e3, 1e3), max_size=12)


@given(heights, st.floats(0.1, 50.0))
def test_labels_keep_apart_and_in_their_order(wanted, gap):
    found = spread(wanted, gap)
    ordered = sorted(found, key=lambda name: found[name])
    assert set(found) == set(wanted)
    for lower, upper in itertools.pairwise(ordered):
        assert found[upper] - found[lower] >= gap * (1 - 1e-9) - 1e-9
        assert wanted[lower] <= wanted[upper]


def test_labels_that_have_room_stay_where_they_are():
    assert spread({"a": 0.0, "b": 10.0}, 2.0) == {"a": 0.0, "b": 10.0}


def test_labels_that_overlap_move_about_their_middle():
    assert spread({"a": 4.0, "b": 5.0}, 2.0) == pytest.approx({"a": 3.5, "b": 5.5})
