"""Serves HTTP within limits that hold before a caller is authenticated.

What is not a request is answered in the one shape of errors. A head has a limited size and a
limited time, what a caller sends ahead of its answers stays unread, and a caller that does not read
answers is cut off: nobody can make the service remember more than a little for each connection.
What was sent ahead, and what is answered past the application, takes its turn, one request in each
round of the event loop: a new caller never waits for more than that, however much a crowd sent.
"""

from __future__ import annotations

import asyncio
import functools
import re
import select
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from podium.service.http.at_once import AtOnce, Quick
from podium.service.http.body import IS_GONE
from podium.service.http.problem import Problem
from podium.service.http.turns import Turns

MOST_HEAD_BYTES = 2**15
MOST_HEAD_FIELDS = 100
MOST_TARGET_BYTES = 2**13
LEAST_READ_BYTES_S = 1024
"""A caller that reads responses more slowly than this counts as not reading."""

# The parser cannot be stopped in the middle of what it is fed. Small pieces, each of which ends
# with a head where it can, keep the number of requests that are begun at the same time small.
# Blank lines alone end none: a piece for each of them would cost more than it is worth.
_LEAST_PIECE, _MOST_PIECE = 2**9, 2**13
_END_OF_HEAD = re.compile(rb"(?<=[^\r\n])\r?\n\r?\n")

_HUNG_UP: int | None = getattr(select, "POLLRDHUP", None)  # Linux alone tells it ahead of time

_CONTINUE = b"HTTP/1.1 100"
_OF_STREAM = b"transfer-encoding: chunked\r\n\r\n"  # uvicorn writes it last


def _ignore(count: int) -> None:
    del count


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """What connections may cost."""

    limit_s: float = 10.0  # for a head, and without any reading of answers
    max_connections: int = 2000
    on_crowd: Callable[[int], None] = _ignore  # hears how many connections are too many
    turns: Turns = field(default_factory=Turns)


class HeldFlowControl(FlowControl):
    """Reads nothing as long as something that was read waits for its turn."""

    is_held = False

    def resume_reading(self) -> None:
        """Continues reading, unless something that was read has not been handled yet."""
        if self.read_paused and not self.is_held:
            super().resume_reading()


class JoinedWrites:
    """Writes the head of an answer together with its body, so that both travel in one segment.

    In two, the second may have to wait until the first is acknowledged, which callers delay. The
    head of a stream, of which nobody knows when its body comes, does not wait.
    """

    __slots__ = ("_head", "_is_begun", "_transport")

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._head = b""
        self._is_begun = False

    def write(self, data: bytes) -> None:
        """Writes data, or keeps it until more comes."""
        if self._head:
            data, self._head = self._head + data, b""
        elif not self._is_begun and data[:12] != _CONTINUE:
            self._is_begun = True
            if not data.endswith(_OF_STREAM):
                self._head = data
                return
        self._transport.write(data)

    def flush(self) -> None:
        """Writes what was kept: the head of an answer without a body."""
        if self._head:
            self.write(b"")

    def close(self) -> None:
        """Closes the connection once all is written."""
        self.flush()
        self._transport.close()

    def is_closing(self) -> bool:
        """Returns whether the connection is closed or being closed."""
        return self._transport.is_closing()


class Connection(HttpToolsProtocol):
    """One connection. Bodies are bounded where they are read."""

    limits = ConnectionLimits()
    at_once: AtOnce | None = None
    flow: HeldFlowControl
    _quick: Quick | None = None  # the request that is read is one of these
    _pieces: list[bytes]  # of its body
    _held = b""  # came ahead of its turn, from _place on
    _place = 0
    _is_by_turns = False  # the request that begins was sent ahead
    _silent = 0  # bytes since the parser last found the end of something
    _is_in_head = True
    _is_over = False  # the last request is here as a whole
    _idle_since_s = 0.0
    _unread = 0  # bytes of answers that wait to be read
    _late: asyncio.TimerHandle | None = None
    _stuck: asyncio.TimerHandle | None = None
    _objection: Problem | None = None
    _last_word: Problem | None = None  # is said once what came before it is answered

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Waits for a first request, where there is room for one more connection."""
        super().connection_made(transport)
        self.flow = HeldFlowControl(transport)
        self._idle_since_s = time.monotonic()
        if len(self.connections) > self.limits.max_connections and not self._make_room():
            headers = {"retry-after": "1"}
            problem = "too many connections"
            self._refuse(Problem(503, problem, hint="try again shortly", headers=headers))
            return
        self._late = self.loop.call_later(self.limits.limit_s, self._give_up)

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancels the timers of the connection."""
        self._cancel()
        self._cancel_stuck()
        self._held = b""
        if self._quick is not None:
            self._quick.share.give_back()
        super().connection_lost(exc)

    # What comes in.

    def data_received(self, data: bytes) -> None:
        """Handles received bytes; those ahead of their turn are buffered, and reading pauses."""
        if self.transport.is_closing() or self._last_word is not None:
            return
        if self._held:  # the transport had it in hand when it was told to pause
            self._held, self._place = self._held[self._place :] + data, 0
        elif len(data) > _LEAST_PIECE or self._is_answering():
            self._feed(data)
        else:  # nearly always: one request, or a part of one
            self._take(data)
            if self._silent or self._late is not None or self._quick is not None:
                self._watch()

    def on_message_begin(self) -> None:
        """Notes that a head began."""
        self._is_in_head, self._is_over = True, False
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Begins to answer, unless the head is too large."""
        if len(self.url) > MOST_TARGET_BYTES:
            problem = f"the URL is longer than {MOST_TARGET_BYTES:,} bytes"
            self._object(Problem(414, problem, hint="use a shorter URL"))
        if len(self.headers) > MOST_HEAD_FIELDS:
            self._object(_large_head())
        hosts = [name for name, _ in self.headers].count(b"host")
        if hosts != 1 and (hosts or self.parser.get_http_version() != "1.0"):
            self._object(Problem(400, "not one Host header", hint="send Host once"))
        self._is_in_head, self._silent = False, 0
        HttpToolsProtocol.on_headers_complete(self)
        if self.parser.should_upgrade():  # nothing is: what follows could not be told apart
            self.cycle.keep_alive = False

    def on_body(self, body: bytes) -> None:
        """Passes on a part of the body."""
        self._silent = 0
        if self._quick is None:
            HttpToolsProtocol.on_body(self, body)
        else:
            self._pieces.append(body)
            try:
                self._quick.share.take(len(body))
            except Problem as problem:
                self._object(problem)

    def on_message_complete(self) -> None:
        """Notes that a request is complete."""
        self._is_over, self._silent = True, 0
        HttpToolsProtocol.on_message_complete(self)
        if self._quick is not None:
            answer = functools.partial(self._answer_at_once, self.cycle, self._quick, self._pieces)
            self.limits.turns.wait(self.loop, answer)
            self._quick = None

    def on_response_complete(self) -> None:
        """Turns to the next request."""
        is_next = bool(self.pipeline)
        self._is_by_turns = True
        super().on_response_complete()
        self._is_by_turns = False
        self._idle_since_s = time.monotonic()
        if self._last_word is not None:
            if not is_next and not self.transport.is_closing():
                self._refuse(self._last_word)
        elif self._held:
            self.limits.turns.wait(self.loop, self._go_on)
        elif not self._is_over:
            self._watch()

    def _unsupported_upgrade_warning(self) -> None:
        """Logs nothing: anybody may ask for another protocol, as often as they like."""

    def _start_asgi_task(self, cycle: Any, app: Any) -> None:
        writes, on_response = JoinedWrites(cycle.transport), cycle.on_response

        def finish() -> None:
            writes.flush()
            on_response()

        cycle.transport, cycle.on_response = writes, finish
        cycle.scope["extensions"] = {IS_GONE: functools.partial(self._is_gone, cycle)}
        if self._is_by_turns:
            begin = functools.partial(self._begin, cycle, app)
            self.limits.turns.wait(self.loop, begin)
        elif self.at_once is not None and not self.flow.write_paused:
            self._quick, self._pieces = self.at_once.take(cycle.scope), []
            if self._quick is None:
                super()._start_asgi_task(cycle, app)
        else:
            super()._start_asgi_task(cycle, app)

    def _answer_at_once(self, cycle: Any, quick: Quick, pieces: list[bytes]) -> None:
        """Answers a request whose body is here, or has the application do it."""
        quick.share.give_back()
        if self.transport.is_closing() or self._is_gone(cycle):
            return
        body, is_last = b"".join(pieces), not cycle.keep_alive
        assert self.at_once is not None
        more = self.server_state.default_headers
        try:
            answer = self.at_once.answered(quick, body, cycle.scope, more, is_last=is_last)
        except Exception:  # noqa: BLE001 - the application knows how to tell of it
            cycle.body = bytearray(body)
            super()._start_asgi_task(cycle, self.app)
            return
        cycle.response_started = cycle.response_complete = True
        self.transport.write(answer)
        if is_last:
            self.transport.close()
        cycle.on_response()

    def _is_gone(self, cycle: Any) -> bool:
        """Returns whether the caller has hung up, and closes where that was not read yet."""
        if not cycle.disconnected and self._has_hung_up():
            cycle.disconnected = True
            self.transport.abort()
        return bool(cycle.disconnected)

    def _has_hung_up(self) -> bool:
        if _HUNG_UP is None:
            return False
        waiting = select.poll()
        waiting.register(self.transport.get_extra_info("socket").fileno(), _HUNG_UP)
        return bool(waiting.poll(0))

    def _begin(self, cycle: Any, app: Any) -> None:
        if not self.transport.is_closing():
            super()._start_asgi_task(cycle, app)

    def _feed(self, data: bytes, place: int = 0) -> None:
        while place < len(data) and not self._is_answering():
            is_in_body = not (self._is_in_head or self._is_over)
            if self._quick is not None:
                end = place + self._quick.length - sum(map(len, self._pieces))
            else:
                end = _end_of_piece(data, place, _LEAST_PIECE if is_in_body else 0)
            self._take(data[place:end])
            if self.transport.is_closing() or self._last_word is not None:
                return
            place = end
        # All of it stays, until it is done with: what is left is not copied for each request.
        self._held, self._place = (data, place) if place < len(data) else (b"", 0)
        self.flow.is_held = bool(self._held)
        if self._held:
            self.flow.pause_reading()
        self._watch()

    def _take(self, piece: bytes) -> None:
        if self._quick is None:  # else it is of a body, whose length is known and bounded
            self._silent += len(piece)
        # The size of trailers and of what stands between requests is bounded here as well.
        if self._silent > MOST_HEAD_BYTES:
            self._refuse(_large_head())
            return
        HttpToolsProtocol.data_received(self, piece)
        if self._is_over or self.transport.is_closing():
            return
        if len(self.headers or ()) > MOST_HEAD_FIELDS:  # before its end, or among the trailers
            self._refuse(_large_head())

    def _is_answering(self) -> bool:
        return bool(self.pipeline) or (self._is_over and not self.cycle.response_complete)

    def _go_on(self) -> None:
        if self.transport.is_closing():
            return
        data, self._held = self._held, b""
        self._feed(data, self._place)
        self.flow.resume_reading()

    # What is waited for.

    def _watch(self) -> None:
        """Limits the time for what has begun: a head, or a body that nobody wants any more."""
        is_begun = self._is_in_head or (self._is_over and self._silent > 0)
        is_left_over = not self._is_over and self.cycle is not None and self.cycle.response_complete
        if not (is_begun or is_left_over or self._quick is not None):
            self._cancel()
        elif self._late is None and not self.transport.is_closing():
            self._late = self.loop.call_later(self.limits.limit_s, self._give_up)

    def _give_up(self) -> None:
        self._late = None
        if self._is_answering():  # the rest of the head is not read for that reason alone
            self._watch()
        elif not (self._is_in_head or self._is_over or self._quick):
            self.transport.close()
        else:
            problem = f"the request did not arrive within {self.limits.limit_s:g} s"
            self._refuse(Problem(408, problem, hint="send the whole request without delay"))

    def pause_writing(self) -> None:
        """Waits for a caller that does not read its answers, for a while."""
        super().pause_writing()
        self._unread = self.transport.get_write_buffer_size()
        self._stuck = self.loop.call_later(self.limits.limit_s, self._look_at_reader)

    def resume_writing(self) -> None:
        """Continues: the caller reads again."""
        self._cancel_stuck()
        super().resume_writing()

    def _look_at_reader(self) -> None:
        left = self.transport.get_write_buffer_size()
        if self._unread - left < LEAST_READ_BYTES_S * self.limits.limit_s:
            self._stuck = None
            self.transport.abort()
            return
        self._unread = left
        self._stuck = self.loop.call_later(self.limits.limit_s, self._look_at_reader)

    # What is refused.

    def send_400_response(self, msg: str) -> None:
        """Refuses what is not a request, or not an accepted one."""
        del msg
        no_request = Problem(400, "not a valid HTTP request", hint="use HTTP/1.1")
        self._refuse(self._objection or no_request)

    def _object(self, problem: Problem) -> None:
        """Stops the parser, by the only way it offers."""
        self._objection = problem
        raise problem

    def _make_room(self) -> bool:
        """Closes the idlest connection that is not being answered, if there is one."""
        self.limits.on_crowd(len(self.connections))
        others = (
            each for each in self.connections if isinstance(each, Connection) and each is not self
        )
        idle = min((each for each in others if each._may_go()), key=_idleness, default=None)
        if idle is not None:
            self.connections.discard(idle)
            idle.transport.abort()
        return idle is not None

    def _may_go(self) -> bool:
        """Returns whether nothing is being done for the caller; a partial request is no work."""
        return not self.pipeline and (self._is_answered() or self.cycle.more_body)

    def _is_answered(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def _owes_answer(self) -> bool:
        """Tests whether a request that came as a whole waits for its answer."""
        return not self._is_answered() and (self._is_in_head or self._is_over)

    def _refuse(self, problem: Problem) -> None:
        """Answers with a problem and closes; whatever came before it is answered first."""
        self._cancel()
        is_in_body = not (self._is_in_head or self._is_over)
        is_behind = bool(self.pipeline) and is_in_body
        if is_behind:
            self.pipeline.popleft()  # the newest: its own body is broken, and it has not begun
        if is_behind or self._owes_answer():
            self._last_word = self._last_word or problem
            self.flow.is_held = True  # the parser takes nothing more
            self.flow.pause_reading()
            return
        body = problem.response().body
        status = HTTPStatus(problem.status)
        more = "".join(f"{name}: {value}\r\n" for name, value in problem.headers.items())
        head = (
            f"HTTP/1.1 {status.value} {status.phrase}\r\ncontent-type: application/json\r\n"
            f"content-length: {len(body)}\r\n{more}connection: close\r\n\r\n"
        )
        self.transport.write(head.encode("ascii") + body)
        self.transport.close()

    def _cancel(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None

    def _cancel_stuck(self) -> None:
        if self._stuck is not None:
            self._stuck.cancel()
            self._stuck = None


def _end_of_piece(data: bytes, place: int, least: int) -> int:
    """Finds where the next piece ends: at the end of a head where there is one."""
    if len(data) - place <= least:
        return len(data)
    begin, end = place + least, place + _MOST_PIECE
    # A body of JSON has mostly no line to end, which is found out much faster.
    found = _END_OF_HEAD.search(data, begin, end) if data.find(b"\n", begin, end) >= 0 else None
    return found.end() if found else min(end, len(data))


def _large_head() -> Problem:
    problem = f"the headers have more than {MOST_HEAD_BYTES:,} bytes or {MOST_HEAD_FIELDS} fields"
    return Problem(431, problem, hint="send fewer and shorter header fields")


def _idleness(connection: Connection) -> tuple[bool, float]:
    """Orders connections: those in the middle of a body last, the longest idle first."""
    return not connection._is_answered(), connection._idle_since_s
