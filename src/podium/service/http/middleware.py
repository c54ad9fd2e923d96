"""Wraps all routes: identifies, authenticates, limits, measures and logs requests.

Routes that are asked thousands of times a second are fast routes: they go straight to their
application, past the layers of the framework that do nothing for them.
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
from podium.service.http.at_once import AtOnce
from podium.service.http.logs import KIND
from podium.service.http.metrics import Metrics
from podium.service.http.own_names import OwnNames
from podium.service.http.problem import Problem, problem_of
from podium.service.http.turns import Turns

OPEN = frozenset({"/healthz", "/readyz"})
"""Paths that need no token: probes have none."""

SLOW_S = 1.0
_ID = re.compile(rb"[A-Za-z0-9._:/+=@-]{1,128}")


class RequestIds:
    """Identifies requests: by the caller's own id where it is plain, by a new one otherwise."""

    def __init__(self) -> None:
        self._prefix = secrets.token_hex(6)
        self._count = itertools.count(1)

    def id_for(self, sent: bytes) -> str:
        """Returns the id of a request."""
        if sent and _ID.fullmatch(sent):
            return sent.decode()
        return f"{self._prefix}-{next(self._count):x}"


@dataclass(frozen=True, slots=True)
class AccessRules:
    """Who is let in, how many at a time, and what is logged."""

    token: str | None = None
    max_in_flight: int = 1000
    is_logging_all: bool = False
    own_names: OwnNames | None = None  # the only ones that are answered to; None: all are


class InFlightLimit:
    """Bounds the requests of some routes that wait for their answers at the same time.

    Those that are let in without a token do not count, nor do answers that nobody reads: strangers
    must not be able to use up a limit.
    """

    __slots__ = ("_count", "_most")

    def __init__(self, most: int) -> None:
        self._most = most
        self._count = 0

    def enter(self) -> bool:
        """Takes a place and returns whether there was one."""
        if self._count >= self._most:
            return False
        self._count += 1
        return True

    def leave(self) -> None:
        """Frees a place."""
        self._count -= 1


class Middleware:
    """Wraps the application."""

    def __init__(
        self, app: ASGIApp, *, metrics: Metrics, log: FilteringBoundLogger, rules: AccessRules
    ) -> None:
        self._app = app
        self._metrics = metrics
        self._log = log
        self._rules = rules
        self._token = None if rules.token is None else rules.token.encode()
        self._ids = RequestIds()
        self._in_flight = 0
        self._fast_routes: dict[tuple[str, str], ASGIApp] = {}
        self._shared_limit = InFlightLimit(rules.max_in_flight)
        self._route_limits: dict[str, InFlightLimit] = {}
        self.turns = Turns()  # of what may take longer than a score
        metrics.in_flight.set_function(lambda: self._in_flight)
        self.at_once = AtOnce(self._ids.id_for, self._finish_at_once, rules.own_names)

    def add_fast_route(self, method: str, path: str, app: ASGIApp) -> None:
        """Makes the application of a route answer without the layers in between."""
        self._fast_routes[method, path] = app

    def limit_route(self, path: str, most: int) -> None:
        """Limits a route separately, so that requests that wait there block no others."""
        self._route_limits[path] = InFlightLimit(most)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers a request, or refuses it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        path = scope["path"]
        headers = dict(scope["headers"])
        exchange = Exchange(send, self._ids.id_for(headers.get(b"x-request-id", b"")))
        self._in_flight += 1
        try:
            self._admit(path, headers)
            if scope["method"] == "HEAD":  # the server leaves the body of the answer out
                scope = {**scope, "method": "GET"}
            fast = self._fast_routes.get((scope["method"], path))
            if fast is not None:
                exchange.route = path
                receive = self._entering(path, exchange, receive)
            elif path not in OPEN:
                self._enter(path, exchange)
                await self.turns.take()
            await (fast or self._app)(scope, receive, exchange.send)
        except (Problem, PodiumError) as error:
            self._log_error(error, exchange)
            await problem_of(error).response()(scope, receive, exchange.send)
        except Exception as error:  # noqa: BLE001 - the last stop before the caller
            await self._answer_failure(error, scope, receive, exchange)
        finally:
            self._in_flight -= 1
            exchange.leave()
            self._finish(scope, exchange)

    def _admit(self, path: str, headers: Mapping[bytes, bytes]) -> None:
        if self._rules.own_names is not None:
            self._rules.own_names.check(headers)
        if path in OPEN:
            return
        if self._token is not None and not _is_bearer(
            headers.get(b"authorization", b""), self._token
        ):
            raise Problem(
                401,
                "a valid token is required",
                hint="send Authorization: Bearer TOKEN",
                headers={"www-authenticate": "Bearer", "connection": "close"},
            )

    def _entering(self, path: str, exchange: Exchange, receive: Receive) -> Receive:
        """Takes a place once the body is here: who sends it slowly keeps nobody out."""

        async def received() -> Message:
            message = await receive()
            if message["type"] == "http.request" and not message.get("more_body"):
                self._enter(path, exchange)
            return message

        return received

    def _enter(self, path: str, exchange: Exchange) -> None:
        limit = self._route_limits.get(path, self._shared_limit)
        if limit.enter():
            exchange.limit = limit
        else:
            raise Problem(
                503,
                "too many requests in flight",
                hint="try again shortly",
                headers={"retry-after": "1", "connection": "close"},
            )

    def _log_error(self, error: Problem | PodiumError, exchange: Exchange) -> None:
        """Logs what made the service fail; the caller only learns that it did."""
        cause = error.__cause__ if isinstance(error, Problem) else error
        if isinstance(cause, PodiumError) and not isinstance(cause, UsageError):
            message = problem_of(error).message
            facts = {"request_id": exchange.id, "problem": str(cause), "hint": cause.hint}
            self._log.error(message, **facts, **{KIND: message})

    async def _answer_failure(
        self, error: Exception, scope: Scope, receive: Receive, exchange: Exchange
    ) -> None:
        facts = {
            "request_id": exchange.id,
            "path": scope["path"][:200],
            KIND: "failed requests",
        }
        self._log.error("request failed", exc_info=error, **facts)
        if exchange.status:
            raise error
        problem = Problem(500, "internal error", hint=f"report request {exchange.id}")
        await problem.response()(scope, receive, exchange.send)

    @property
    def has_plain_access(self) -> bool:
        """Returns whether everybody is let in, and no request is logged for itself."""
        return self._token is None and not self._rules.is_logging_all

    def _finish_at_once(
        self, route: str, scope: Mapping[str, Any], id: str, started_s: float
    ) -> None:
        seconds = time.perf_counter() - started_s
        self._metrics.answered(route, 200, seconds)
        if seconds > SLOW_S:
            facts = {"request_id": id, "path": route, "seconds": round(seconds, 6)}
            client = (scope["client"] or [""])[0]
            self._log.info("request", **facts, client=client, **{KIND: _kind(200)})

    def _finish(self, scope: Scope, exchange: Exchange) -> None:
        seconds = time.perf_counter() - exchange.started
        route = exchange.route or getattr(scope.get("route"), "path", "unmatched")
        self._metrics.answered(route, exchange.status, seconds)
        is_problem = exchange.status >= 400 or seconds > SLOW_S
        if is_problem or self._rules.is_logging_all:
            write = self._log.warning if exchange.status >= 500 else self._log.info
            facts = _facts(scope, exchange, seconds)
            if is_problem:
                facts[KIND] = _kind(exchange.status)
            write("request", **facts)


class Exchange:
    """Follows one request: its name, when it began, and what was answered."""

    __slots__ = ("_header", "_send", "id", "limit", "route", "started", "status")

    def __init__(self, send: Send, id: str) -> None:
        self._send = send
        self._header = (b"x-request-id", id.encode())
        self.id = id
        self.limit: InFlightLimit | None = None
        self.route = ""
        self.status = 0  # nothing was answered
        self.started = time.perf_counter()

    async def send(self, message: Message) -> None:
        """Sends a message on, with the id of the request in the headers."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.leave()
            message["headers"] = [*message.get("headers", ()), self._header]
        await self._send(message)

    def leave(self) -> None:
        """Gives up the place among requests in flight, once."""
        if self.limit is not None:
            self.limit.leave()
            self.limit = None


def _facts(scope: Scope, exchange: Exchange, seconds: float) -> dict[str, Any]:
    client = scope.get("client")
    return {
        "request_id": exchange.id,
        "method": scope["method"],
        "path": scope["path"][:200],
        "status": exchange.status,
        "seconds": round(seconds, 6),
        "client": client[0] if client else "",
    }


def _kind(status: int) -> str:
    # Each answer by itself: who lacks a token must not push out what others do wrong.
    return f"requests answered with {status}" if status >= 400 else "slow requests"


def _is_bearer(header: bytes, token: bytes) -> bool:
    scheme, _, secret = header.partition(b" ")
    return scheme.lower() == b"bearer" and hmac.compare_digest(secret.strip(), token)
