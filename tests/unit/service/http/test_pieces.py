"""What is received is cut into pieces that end with a head where one ends."""

from hypothesis import given
from hypothesis import strategies as st

from podium.service.http.protocol import _END_OF_HEAD, _MOST_PIECE, _end_of_piece

BYTES = st.lists(st.sampled_from([b"\r", b"\n", b"a", b"\r\n\r\n", b"x" * 4000]), max_size=12).map(
    b"".join
)


@given(BYTES, st.integers(0, 20), st.sampled_from([0, 5, 512]))
def test_a_piece_ends_with_the_first_head_or_at_its_limit(data, place, least):
    place = min(place, len(data))
    end = _end_of_piece(data, place, least)
    if len(data) - place <= least:
        assert end == len(data)
        return
    found = _END_OF_HEAD.search(data, place + least, place + _MOST_PIECE)
    assert end == (found.end() if found else min(place + _MOST_PIECE, len(data)))
