"""Routes that are answered as soon as the body is there, on real connections."""

import asyncio
import itertools
import socket

import pytest
import uvicorn
from hypothesis import given, settings
from hypothesis import strategies as st
from uvicorn.server import ServerState

from podium.service.http.at_once import AtOnce, QuickRoute
from podium.service.http.budget import FREE_BYTES, BodyBudget
from podium.service.http.protocol import Connection, ConnectionLimits

NAMED = b"host: x\r\ncontent-type: application/json\r\n"


async def by_application(_scope, receive, send):
    """Answers what is not answered at once."""
    message = await receive()
    while message.get("more_body"):
        message = await receive()
    headers = [(b"content-length", b"3")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b"app"})


def answer(body):
    """Tells how long a body is, unless it is a bad one."""
    return b"%d of %d" % (len(body), 1 // (body != b"bad"))


def talk(chunks, route=None, limit_s=10.0, budget=None):
    """Sends bytes one after another, and gives all that comes back until the end."""
    finished = []
    at_once = AtOnce(lambda _: "id-1", lambda *told: finished.append(told[0]))
    at_once.budget = budget or at_once.budget
    at_once.routes["/quick"] = route or QuickRoute(answer)
    config = uvicorn.Config(by_application, log_config=None, access_log=False)
    config.load()
    own = {"at_once": at_once, "limits": ConnectionLimits(limit_s=limit_s)}
    kind = type("Own", (Connection,), own)

    async def run():
        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: kind(config, ServerState(), {}), "127.0.0.1", 0)
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        for chunk in chunks:
            writer.write(chunk)
            await writer.drain()
            await asyncio.sleep(0)
        try:
            return await asyncio.wait_for(reader.read(), 30)
        finally:
            writer.close()
            server.close()

    return asyncio.run(run()), finished


def asked(body=b"{}", *, path=b"/quick", more=b"", is_last=True):
    """Writes a request."""
    last = b"connection: close\r\n" if is_last else b""
    head = b"POST %s HTTP/1.1\r\n%s%scontent-length: %d\r\n" % (path, NAMED, last, len(body))
    return head + more + b"\r\n" + body


def test_an_answer_has_what_all_answers_have():
    told, finished = talk([asked(b"[1,2]")])
    head, _, body = told.partition(b"\r\n\r\n")
    assert body == b"5 of 1"
    assert head.split(b"\r\n") == [
        b"HTTP/1.1 200 OK", b"content-type: application/json", b"content-length: 6",
        b"x-request-id: id-1", b"connection: close",
    ]  # fmt: skip
    assert finished == ["/quick"]


@pytest.mark.parametrize(
    "sent",
    [asked(path=b"/other"), asked(more=b"x-request-id: mine\r\n"),
     asked(more=b"content-encoding: gzip\r\n"), asked().replace(b"application/json", b"text/plain"),
     asked().replace(b"HTTP/1.1", b"HTTP/1.0"), asked().replace(b"POST", b"PUT"),
     asked(more=b"expect: 200-ok\r\n"), asked(b"bad")],
)  # fmt: skip
def test_what_is_unusual_is_left_to_the_application(sent):
    told, finished = talk([sent])
    assert told.endswith(b"\r\n\r\napp")
    assert finished == []


def test_callers_from_elsewhere_are_left_to_the_application(monkeypatch):
    monkeypatch.setattr("podium.service.http.at_once.is_loopback", lambda _: False)
    assert talk([asked()], QuickRoute(answer, is_loopback_only=True))[0].endswith(b"app")


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 3), st.lists(st.integers(1, 200_000), max_size=4))
def test_bodies_may_come_in_any_pieces_and_requests_ahead_of_their_turn(ahead, cuts):
    bodies = [b"x" * 150_000, *[b"y" * number for number in range(ahead)]]
    sent = b"".join(asked(body, is_last=body is bodies[-1]) for body in bodies)
    places = sorted({0, *(cut for cut in cuts if cut < len(sent)), len(sent)})
    pairs = itertools.pairwise(places)
    told, finished = talk([sent[begin:end] for begin, end in pairs])
    found = [each.partition(b"\r\n\r\n")[2] for each in told.split(b"HTTP/1.1 200 OK")[1:]]
    assert found == [b"%d of 1" % len(body) for body in bodies]
    assert len(finished) == len(bodies)


def test_a_body_that_does_not_come_is_not_waited_for():
    told, finished = talk([asked(b"x" * 100)[:-50]], limit_s=0.05)
    assert told.startswith(b"HTTP/1.1 408")
    assert finished == []


def test_bodies_take_of_what_all_share_and_give_it_back():
    budget = BodyBudget(2**18)
    whole, large = asked(b"x" * 2**18), asked(b"x" * 2**19)
    over = large[: len(large) - 2**19 + 2**18 + FREE_BYTES + 1]
    assert talk([whole], budget=budget)[0].endswith(b"%d of 1" % 2**18)
    assert budget.left == 2**18
    told, finished = talk([over], budget=budget)
    assert told.startswith(b"HTTP/1.1 503")
    assert b"retry-after: 1" in told
    assert finished == []
    assert budget.left == 2**18
    assert talk([whole[:-10]], limit_s=0.05, budget=budget)[0].startswith(b"HTTP/1.1 408")
    assert budget.left == 2**18


def test_a_crowd_is_answered_by_turns():
    rounds, seen = [0], []

    def late(body):
        seen.append(rounds[0])
        return body

    def count_on():
        rounds[0] += 1
        asyncio.get_running_loop().call_soon(count_on)

    async def run():
        at_once = AtOnce(lambda _: "id-1", lambda *_: None, routes={"/quick": QuickRoute(late)})
        config = uvicorn.Config(by_application, log_config=None, access_log=False)
        config.load()
        kind = type("Own", (Connection,), {"at_once": at_once, "limits": ConnectionLimits()})
        ends = [socket.socketpair() for _ in range(8)]
        loop = asyncio.get_running_loop()
        for _, theirs in ends:
            await loop.connect_accepted_socket(lambda: kind(config, ServerState(), {}), theirs)
        count_on()
        for mine, _ in ends:
            mine.sendall(asked())
        while len(seen) < len(ends):
            await asyncio.sleep(0)
        for mine, _ in ends:
            mine.close()
        await asyncio.sleep(0)

    asyncio.run(run())
    assert len(set(seen)) == len(seen)
