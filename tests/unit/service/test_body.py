import asyncio

import pytest

from podium.service.http.body import BodyReader, Gone
from podium.service.http.problem import Problem
from support.service import JSON, OBSERVE, Service, scope_of

READER = BodyReader(max_bytes=10, limit_s=5.0)


def read(chunks, headers=JSON, reader=READER):
    """Reads a body that arrives in pieces; nothing stands for silence, text for an event."""
    messages = list(chunks)

    async def receive():
        if not messages:
            await asyncio.sleep(60)
        chunk = messages.pop(0)
        if isinstance(chunk, str):
            return {"type": chunk}
        return {"type": "http.request", "body": chunk, "more_body": chunk != b""}

    return asyncio.run(reader.read(scope_of("POST", "/", headers), receive))


def test_pieces_are_put_together():
    assert read([b"abc", b"def", b""]) == b"abcdef"


def test_a_body_of_the_largest_size_is_read_and_one_byte_more_is_not():
    assert read([b"x" * 10, b""]) == b"x" * 10
    with pytest.raises(Problem) as caught:
        read([b"x" * 10, b"y", b""])
    assert caught.value.status == 413
    assert caught.value.headers["connection"] == "close"


def test_a_length_that_is_too_large_is_refused_before_anything_arrives():
    with pytest.raises(Problem) as caught:
        read([], {**JSON, "content-length": 11})
    assert caught.value.status == 413


def test_a_body_that_does_not_come_is_not_waited_for():
    with pytest.raises(Problem) as caught:
        read([b"x"], reader=BodyReader(10, 0.05))
    assert caught.value.status == 408


def test_a_caller_that_hangs_up_needs_no_answer(tmp_path):
    with pytest.raises(Gone):
        read([b"x", "http.disconnect"])
    with Service(tmp_path) as service:
        gone = [{"type": "http.disconnect"}]
        exchange = service.exchange("POST", "/v1/score", JSON, gone)
        assert service.runner.run(exchange) is None


@pytest.mark.parametrize(
    "kind",
    [
        "application/json",
        "application/json; charset=utf-8",
        'Application/JSON; charset="UTF-8"',
        "application/vnd.podium+json",
    ],
)
def test_json_may_be_declared_in_several_ways(kind):
    assert read([b"{}", b""], {"content-type": kind}) == b"{}"


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"content-type": "text/json"},
        {"content-type": "application/json; charset=latin-1"},
        {**JSON, "content-encoding": "gzip"},
    ],
)
def test_what_is_not_declared_as_plain_json_is_refused(headers):
    with pytest.raises(Problem) as caught:
        read([b"{}", b""], headers)
    assert caught.value.status == 415


def test_chunks_reach_the_route(tmp_path):
    import json

    text = json.dumps(OBSERVE).encode()
    chunks = [
        {"type": "http.request", "body": text[i : i + 7], "more_body": True}
        for i in range(0, len(text), 7)
    ]
    with Service(tmp_path) as service:
        end = {"type": "http.request", "body": b"", "more_body": False}
        reply = service.runner.run(service.exchange("POST", "/v1/observe", JSON, [*chunks, end]))
        assert reply.status == 200
