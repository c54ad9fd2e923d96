"""Puts the application together."""

from __future__ import annotations

import asyncio
import functools
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from starlette.exceptions import HTTPException
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from podium import __version__
from podium.errors import PodiumError
from podium.service.http.body import BodyReader
from podium.service.http.middleware import OPEN, Gate, Rules
from podium.service.http.info import add_info
from podium.service.learning.routes import Learning
from podium.service.components import Parts
from podium.service.http.problem import CODES, Problem, problem_of
from podium.service.learning.replies import (
    AssignReply,
    ErrorReply,
    ForgetReply,
    ObserveReply,
    ScoreReply,
)
from podium.service.learning.requests import (
    EXAMPLES,
    AssignRequest,
    ForgetRequest,
    ObserveRequest,
    ScoreRequest,
)
from podium.service.http.route import Answer, body_app

ERRORS: dict[int | str, dict[str, Any]] = {
    status: {"model": ErrorReply, "description": name}
    for status, name in CODES.items()
    if status not in (404, 405, 500)
}
_KEY = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "description": "An observation that is sent again under the same key counts once.",
    "schema": {"type": "string", "maxLength": 256},
}


class Application(FastAPI):
    """Is a FastAPI application behind a gate."""

    gate: ASGIApp
    has_token: bool = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers a request."""
        await self.gate(scope, receive, send)

    def openapi(self) -> dict[str, Any]:
        """Describes all routes, and the token where one is needed."""
        document = super().openapi()
        if self.has_token and "security" not in document:
            scheme = {"type": "http", "scheme": "bearer"}
            document["components"]["securitySchemes"] = {"bearer": scheme}
            document["security"] = [{"bearer": []}]
            for path in OPEN:
                document["paths"][path]["get"]["security"] = []
        return document


def create_app(parts: Parts) -> Application:
    """Makes the application of these parts."""
    app = Application(
        title="Podium",
        version=__version__,
        description="Scores jobs on GPU types and learns from how long they ran.",
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        lifespan=_lifespan(parts),
    )
    serve = parts.settings.serve
    rules = Rules(parts.token, serve.max_in_flight, serve.log_requests == "all")
    gate = Gate(
        functools.partial(FastAPI.__call__, app), metrics=parts.metrics, log=parts.log, rules=rules
    )
    app.gate, app.has_token = gate, parts.token is not None
    _add_handlers(app)
    _add_learning(app, parts, gate)
    add_info(app, parts)
    parts.metrics.watch(parts.learner, parts.memory)
    return app


def _add_learning(app: FastAPI, parts: Parts, gate: Gate) -> None:
    serve = parts.settings.serve
    reader = BodyReader(serve.max_body_bytes, serve.read_limit_s)
    learning = Learning(parts, socket.gethostname())
    rows: tuple[tuple[str, Any, Any, Answer, dict[str, Any]], ...] = (
        ("/v1/score", ScoreRequest, ScoreReply, learning.score, {}),
        ("/v1/observe", ObserveRequest, ObserveReply, learning.observe, {"parameters": [_KEY]}),
        ("/v1/assign", AssignRequest, AssignReply, learning.assign, {}),
        ("/v1/forget", ForgetRequest, ForgetReply, learning.forget, {}),
    )
    for path, model, reply, answer, extra in rows:
        app.add_api_route(
            path,
            _documented(model, answer),
            methods=["POST"],
            response_model=reply,
            responses=ERRORS,
            openapi_extra={**extra, **_example(path)},
            name=path.rsplit("/", 1)[-1],
        )
        route = app.router.routes[-1]
        assert isinstance(route, Route)
        route.app = body_app(model, answer, reader, serve.max_batch)
        gate.shorten("POST", path, route.app)
    for path in ("/v1/observe", "/v1/forget"):  # those that wait for the store
        gate.separate(path, serve.max_observing)


def _example(path: str) -> dict[str, Any]:
    media = {"examples": {name: {"value": body} for name, body in EXAMPLES[path].items()}}
    return {"requestBody": {"content": {"application/json": media}}}


def _documented(model: Any, answer: Answer) -> Any:
    """Makes the function that FastAPI reads the documentation from; it is never called."""

    async def documented(body: Any) -> None:
        """Stands for the answer."""

    documented.__annotations__ = {"body": model}
    documented.__doc__ = answer.__doc__
    return documented


def _lifespan(parts: Parts) -> Any:
    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        waking = asyncio.create_task(parts.wake())
        yield
        waking.cancel()
        with suppress(asyncio.CancelledError):
            await waking
        await parts.rest()

    return lifespan


def _add_handlers(app: FastAPI) -> None:
    async def on_problem(_request: Request, error: Any) -> Response:
        return _problem(error).response()

    for kind in (Problem, HTTPException, RequestValidationError, PodiumError):
        app.add_exception_handler(kind, on_problem)


def _problem(error: Exception) -> Problem:
    if isinstance(error, Problem | PodiumError):
        return problem_of(error)
    if isinstance(error, HTTPException):
        hint = "GET /docs lists what there is"
        return Problem(error.status_code, error.detail, hint=hint, headers=error.headers)
    return Problem(422, "the request cannot be used", hint="GET /docs shows what it takes")
