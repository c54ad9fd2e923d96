import json

import pytest

from podium.errors import InputError
from podium.search.generators.llm.budget import Charge
from podium.search.generators.llm.cassette import Player, Recorder, difference, read_cassette
from podium.search.generators.llm.exchange import Exchange, Reply, Try

QUESTION = {"models": ["m"], "temperature": 1.0, "user": "one\ntwo\nthree", "seed": [1, 2]}
EXCHANGE = Exchange(
    (
        Try("m", ("seed",), Reply(429, "{}", "3"), Charge(), 0.25),
        Try("m", ("seed",), Reply(200, '{"a": "\u2028 ä"}'), Charge(5, 6, None), 0.5),
    )
)
SPENT = Exchange(spent="all is spent")


@pytest.fixture
def tape(tmp_path):
    """Records two exchanges."""
    path = tmp_path / "folder" / "tape.jsonl"
    recorder = Recorder(path)
    recorder.add(QUESTION, EXCHANGE)
    recorder.add(QUESTION | {"seed": [1, 3]}, SPENT)
    recorder.close()
    return path


def test_what_was_recorded_is_given_back(tape):
    player = Player(tape)
    assert player.find(QUESTION) == EXCHANGE
    assert player.find(QUESTION | {"seed": [1, 3]}) == SPENT
    assert player.find(QUESTION) == EXCHANGE


def test_a_cassette_is_lines_of_json(tape):
    rows = [json.loads(line) for line in tape.read_text().splitlines()]
    assert rows[0] == {"cassette": "podium", "version": 1}
    assert [row["question"]["seed"] for row in rows[1:]] == [[1, 2], [1, 3]]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"temperature": 0.5}, "temperature is 0.5, recorded 1.0"),
        ({"models": ["m", "n"]}, "models is ['m', 'n'], recorded ['m']"),
        ({"user": "one\nzwei\nthree"}, "user, line 2, is 'zwei', recorded 'two'"),
        ({"user": "one\ntwo"}, "user, line 3, is nothing, recorded 'three'"),
        ({"seed": [9, 9]}, "seed is [9, 9], recorded [1, "),
    ],
)
def test_a_request_that_was_never_made_says_what_differs(tape, change, told):
    with pytest.raises(InputError, match="does not contain this request") as raised:
        Player(tape).find(QUESTION | change)
    assert told in str(raised.value)
    assert str(tape) in str(raised.value)


def test_a_difference_beyond_what_is_asked_is_said_too():
    assert difference(QUESTION | {"more": 1}, QUESTION) == "it was recorded differently"


def test_a_recording_goes_on_after_a_crash(tape):
    whole = tape.read_bytes()
    tape.write_bytes(whole[:-20])
    assert len(read_cassette(tape)) == 1
    recorder = Recorder(tape)
    recorder.add(QUESTION | {"seed": [1, 4]}, SPENT)
    recorder.close()
    assert Player(tape).find(QUESTION) == EXCHANGE
    assert Player(tape).find(QUESTION | {"seed": [1, 4]}) == SPENT


def test_the_last_of_equal_requests_counts(tape):
    recorder = Recorder(tape)
    recorder.add(QUESTION, SPENT)
    recorder.close()
    assert Player(tape).find(QUESTION) == SPENT


@pytest.mark.parametrize(
    "text",
    ["", "hello\n", "[]\n", '{"cassette": "podium", "version": 9}\n',
     '{"cassette": "podium", "version": 1}\n{"question": {}}\n',
     '{"cassette": "podium", "version": 1}\nnonsense\n'],
)  # fmt: skip
def test_another_file_is_not_taken_for_a_cassette(tmp_path, text):
    path = tmp_path / "tape.jsonl"
    path.write_text(text)
    with pytest.raises(InputError, match="not a cassette"):
        Player(path)


def test_another_file_is_not_written_to(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("my notes\n")
    with pytest.raises(InputError, match="not a cassette"):
        Recorder(path)
    assert path.read_text() == "my notes\n"


def test_a_cassette_that_is_not_there_is_named(tmp_path):
    with pytest.raises(InputError, match=r"tape\.jsonl"):
        Player(tmp_path / "tape.jsonl")


@pytest.mark.parametrize("text", ["mine", None])
def test_a_link_is_not_recorded_to(tmp_path, text):
    path, victim = tmp_path / "cassette.jsonl", tmp_path / "victim"
    if text is not None:
        victim.write_text(text)
    path.symlink_to(victim)
    with pytest.raises(InputError, match="cannot be recorded to"):
        Recorder(path)
    assert (victim.read_text() if victim.exists() else None) == text
