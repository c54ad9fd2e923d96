import os
import struct
import time

import pytest

from podium.search.sandbox.channel import (
    LONGEST,
    Channel,
    ChannelClosed,
    ChannelGarbled,
    ChannelTimeout,
)


@pytest.fixture
def ends():
    """Gives a channel that hears itself, and the writing end of its pipe."""
    reading, writing = os.pipe()
    yield Channel(reading, writing), writing
    for end in (reading, writing):
        try:
            os.close(end)
        except OSError:
            continue


def test_a_message_arrives_as_it_was_sent(ends):
    channel, _ = ends
    channel.send({"text": "é\n", "numbers": [1, 2.5]})
    assert channel.receive(time.monotonic() + 60) == {"text": "é\n", "numbers": [1, 2.5]}


def test_what_may_wait_arrives_before_the_message_that_is_sent_next(ends):
    channel, _ = ends
    channel.put({"case": 0})
    channel.put({"case": 1})
    with pytest.raises(ChannelTimeout):
        channel.receive(time.monotonic() + 0.01)
    channel.send({"gate": "training"})
    heard = [channel.receive(time.monotonic() + 60) for _ in range(3)]
    assert heard == [{"case": 0}, {"case": 1}, {"gate": "training"}]


def test_silence_ends_at_the_deadline(ends):
    channel, _ = ends
    with pytest.raises(ChannelTimeout):
        channel.receive(time.monotonic() + 0.01)


def test_half_a_message_ends_at_the_deadline(ends):
    channel, writing = ends
    os.write(writing, b"\0\0\0\5{")
    with pytest.raises(ChannelTimeout):
        channel.receive(time.monotonic() + 0.01)


def test_a_closed_pipe_is_told(ends):
    channel, writing = ends
    os.close(writing)
    with pytest.raises(ChannelClosed):
        channel.receive()


@pytest.mark.parametrize("body", [b"[1]", b"{", b"\xff", b"[" * 100_000])
def test_what_is_no_object_is_refused(ends, body):
    channel, writing = ends
    os.set_blocking(writing, False)
    os.write(writing, struct.pack(">I", min(len(body), 60_000)) + body[:60_000])
    with pytest.raises(ChannelGarbled):
        channel.receive(time.monotonic() + 60)


def test_a_message_beyond_the_limit_is_refused_unread(ends):
    channel, writing = ends
    os.write(writing, struct.pack(">I", LONGEST + 1))
    with pytest.raises(ChannelGarbled):
        channel.receive(time.monotonic() + 60)


def test_a_number_that_json_does_not_know_is_not_sent(ends):
    channel, _ = ends
    with pytest.raises(ValueError, match="not JSON compliant"):
        channel.send({"score": float("nan")})
