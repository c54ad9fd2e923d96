"""Answers travel in one segment: head and body are written together."""

import asyncio

import pytest

from podium.service.http.protocol import JoinedWrites


class Transport:
    """Notes what is written."""

    def __init__(self):
        self.written = []
        self.is_closed = False

    def write(self, data):
        assert not self.is_closed
        self.written.append(data)

    def close(self):
        self.is_closed = True

    def is_closing(self):
        return self.is_closed


@pytest.fixture
def transport():
    return Transport()


@pytest.fixture
def writes(transport):
    return JoinedWrites(transport)


HEAD = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n"
STREAM = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


def test_head_and_body_are_one_write(writes, transport):
    writes.write(HEAD)
    assert transport.written == []
    writes.write(b"ok")
    assert transport.written == [HEAD + b"ok"]


def test_more_of_the_body_is_written_as_it_comes(writes, transport):
    for part in (HEAD, b"o", b"k"):
        writes.write(part)
    assert transport.written == [HEAD + b"o", b"k"]


def test_the_head_of_a_stream_does_not_wait(writes, transport):
    writes.write(STREAM)
    writes.write(b"1\r\na\r\n")
    assert transport.written == [STREAM, b"1\r\na\r\n"]


def test_who_waits_before_it_sends_its_body_is_answered_at_once(writes, transport):
    for part in (CONTINUE, HEAD, b"ok"):
        writes.write(part)
    assert transport.written == [CONTINUE, HEAD + b"ok"]


def test_a_head_without_a_body_is_written_in_the_end(writes, transport):
    writes.write(HEAD)
    writes.flush()
    writes.flush()
    assert transport.written == [HEAD]


def test_nothing_is_lost_where_the_connection_is_closed(writes, transport):
    writes.write(HEAD)
    writes.close()
    assert transport.written == [HEAD]
    assert transport.is_closed
    assert writes.is_closing()


def test_a_transport_of_asyncio_has_all_that_is_used():
    assert all(hasattr(asyncio.Transport, name) for name in ("write", "close", "is_closing"))
