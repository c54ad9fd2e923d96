"""Stands before all routes: names requests, lets callers in, measures, logs, hides what broke.

Routes that are asked thousands of times a second go the short way: straight to their application,
past the layers of the framework that do nothing for them.
"""

from __future__ import annotations

import hmac
import itertools
import re
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send
from structlog.typing import FilteringBoundLogger

from podium.errors import PodiumError, UsageError
from podium.service.logs import KIND
from podium.service.metrics import Metrics
from podium.service.problem import Problem, problem_of

OPEN = frozenset({"/healthz", "/readyz"})
"""Paths that need no token: probes have none."""

SLOW_S = 1.0
_ID = re.compile(rb"[A-Za-z0-9._:/+=@-]{1,128}")


class Names:
    """Gives requests names: the caller's own where it is plain, a new one otherwise."""

    def __init__(self) -> None:
        self._prefix = secrets.token_hex(6)
        self._count = itertools.count(1)

    def name(self, given: bytes) -> str:
        """Names a request."""
        if given and _ID.fullmatch(given):
            return given.decode()
        return f"{self._prefix}-{next(self._count):x}"


@dataclass(frozen=True, slots=True)
class Rules:
    """Says whom the gate lets in and what it logs."""

    token: str | None = None
    max_in_flight: int = 1000
    is_logging_all: bool = False


class Lane:
    """Bounds the requests of some routes that wait for their answers at the same time.

    Those that are let in without a token do not count, nor do answers that nobody reads: strangers
    must not be able to fill a lane.
    """

    __slots__ = ("_count", "_most")

    def __init__(self, most: int) -> None:
        self._most = most
        self._count = 0

    def enter(self) -> bool:
        """Takes a place, if there is one."""
        if self._count >= self._most:
            return False
        self._count += 1
        return True

    def leave(self) -> None:
        """Gives a place back."""
        self._count -= 1


class Gate:
    """Wraps the application."""

    def __init__(
        self, app: ASGIApp, *, metrics: Metrics, log: FilteringBoundLogger, rules: Rules
    ) -> None:
        self._app = app
        self._metrics = metrics
        self._log = log
        self._rules = rules
        self._token = None if rules.token is None else rules.token.encode()
        self._names = Names()
        self._in_flight = 0
        self._short: dict[tuple[str, str], ASGIApp] = {}
        self._lane = Lane(rules.max_in_flight)
        self._own_lanes: dict[str, Lane] = {}
        metrics.in_flight.set_function(lambda: self._in_flight)

    def shorten(self, method: str, path: str, app: ASGIApp) -> None:
        """Lets a route's application answer without the layers in between."""
        self._short[method, path] = app

    def separate(self, path: str, most: int) -> None:
        """Gives a route a lane of its own, so that those who wait there are in nobody's way."""
        self._own_lanes[path] = Lane(most)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Lets a request through, or not."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        path = scope["path"]
        headers = dict(scope["headers"])
        visit = Visit(send, self._names.name(headers.get(b"x-request-id", b"")))
        self._in_flight += 1
        try:
            self._admit(path, headers, visit)
            if scope["method"] == "HEAD":  # the server leaves the body of the answer out
                scope = {**scope, "method": "GET"}
            short = self._short.get((scope["method"], path))
            if short is not None:
                visit.route = path
            await (short or self._app)(scope, receive, visit.send)
        except (Problem, PodiumError) as error:
            self._note(error, visit)
            await problem_of(error).response()(scope, receive, visit.send)
        except Exception as error:  # noqa: BLE001 - the last stop before the caller
            await self._excuse(error, scope, receive, visit)
        finally:
            self._in_flight -= 1
            visit.leave()
            self._finish(scope, visit)

    def _admit(self, path: str, headers: Mapping[bytes, bytes], visit: Visit) -> None:
        if path in OPEN:
            return
        if self._token is not None and not _is_bearer(
            headers.get(b"authorization", b""), self._token
        ):
            raise Problem(
                401,
                "this needs a valid token",
                hint="send Authorization: Bearer TOKEN",
                headers={"www-authenticate": "Bearer", "connection": "close"},
            )
        lane = self._own_lanes.get(path, self._lane)
        if lane.enter():
            visit.lane = lane
        else:
            raise Problem(
                503,
                "too many requests are being answered",
                hint="try it again shortly",
                headers={"retry-after": "1", "connection": "close"},
            )

    def _note(self, error: Problem | PodiumError, visit: Visit) -> None:
        if isinstance(error, PodiumError) and not isinstance(error, UsageError):
            told = {"request_id": visit.id, "problem": str(error), "hint": error.hint}
            self._log.error("the store is in trouble", **told, **{KIND: "trouble with the store"})

    async def _excuse(self, error: Exception, scope: Scope, receive: Receive, visit: Visit) -> None:
        told = {"request_id": visit.id, "path": scope["path"][:200], KIND: "requests that failed"}
        self._log.error("the request failed", exc_info=error, **told)
        if visit.status:
            raise error
        problem = Problem(500, "the service failed", hint=f"report request {visit.id}")
        await problem.response()(scope, receive, visit.send)

    def _finish(self, scope: Scope, visit: Visit) -> None:
        seconds = time.perf_counter() - visit.started
        route = visit.route or getattr(scope.get("route"), "path", "unmatched")
        self._metrics.answered(route, visit.status, seconds)
        is_problem = visit.status >= 400 or seconds > SLOW_S
        if is_problem or self._rules.is_logging_all:
            write = self._log.warning if visit.status >= 500 else self._log.info
            facts = _facts(scope, visit, seconds)
            if is_problem:
                facts[KIND] = _kind(visit.status)
            write("request", **facts)


class Visit:
    """Follows one request: its name, when it began, and what was answered."""

    __slots__ = ("_header", "_send", "id", "lane", "route", "started", "status")

    def __init__(self, send: Send, id: str) -> None:
        self._send = send
        self._header = (b"x-request-id", id.encode())
        self.id = id
        self.lane: Lane | None = None
        self.route = ""
        self.status = 0  # nothing was answered
        self.started = time.perf_counter()

    async def send(self, message: Message) -> None:
        """Sends on, with the request's name in the headers."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.leave()
            message["headers"] = [*message.get("headers", ()), self._header]
        await self._send(message)

    def leave(self) -> None:
        """Gives the place among those who wait back, once."""
        if self.lane is not None:
            self.lane.leave()
            self.lane = None


def _facts(scope: Scope, visit: Visit, seconds: float) -> dict[str, Any]:
    client = scope.get("client")
    return {
        "request_id": visit.id,
        "method": scope["method"],
        "path": scope["path"][:200],
        "status": visit.status,
        "seconds": round(seconds, 6),
        "client": client[0] if client else "",
    }


def _kind(status: int) -> str:
    # Each answer by itself: who lacks a token must not push out what others do wrong.
    return f"requests answered with {status}" if status >= 400 else "slow requests"


def _is_bearer(given: bytes, token: bytes) -> bool:
    scheme, _, secret = given.partition(b" ")
    return scheme.lower() == b"bearer" and hmac.compare_digest(secret.strip(), token)
