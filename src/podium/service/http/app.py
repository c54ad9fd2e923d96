"""Puts the components of a service behind one application."""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import Any, cast

from fastapi import APIRouter, Depends, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from starlette.exceptions import HTTPException
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from podium import __version__
from podium.errors import PodiumError
from podium.service.components import BytesRoute, Components, JsonRoute, Life, Service
from podium.service.http.at_once import QuickRoute
from podium.service.http.body import BodyReader
from podium.service.http.budget import MOST_BYTES, BodyBudget
from podium.service.http.info import SERVICE_TAG, info_router
from podium.service.http.metrics import Metrics
from podium.service.http.middleware import OPEN, AccessRules, Middleware
from podium.service.http.own_names import own_names
from podium.service.http.problem import CODES, Problem, problem_of, unready
from podium.service.http.replies import ErrorReply
from podium.service.http.route import bytes_app, json_app

ERRORS: dict[int | str, dict[str, Any]] = {
    status: {"model": ErrorReply, "description": name}
    for status, name in CODES.items()
    if status not in (403, 404, 405, 500)
}
_READING = {"GET", "HEAD"}


class Application(FastAPI):
    """A FastAPI application behind the middleware of the service."""

    middleware_app: Middleware
    has_token: bool = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers a request."""
        await self.middleware_app(scope, receive, send)

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


def create_app(service: Service) -> Application:
    """Builds the application of a service."""
    tags = [(each.component.name, each.component.description) for each in service.components]
    app = Application(
        title="Podium",
        version=__version__,
        description=" ".join(description for _, description in tags),
        openapi_tags=[{"name": name, "description": text} for name, text in (*tags, SERVICE_TAG)],
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        lifespan=_lifespan(service.components),
    )
    serve, metrics = service.settings.serve, Metrics()
    rules = AccessRules(
        service.token,
        serve.max_in_flight,
        serve.log_requests == "all",
        own_names(serve.host, service.token),
    )
    middleware = Middleware(
        functools.partial(FastAPI.__call__, app),
        metrics=metrics,
        log=service.log,
        rules=rules,
    )
    app.middleware_app, app.has_token = middleware, service.token is not None
    _add_handlers(app)
    budget = BodyBudget(max(MOST_BYTES, serve.max_body_bytes))
    middleware.at_once.budget = budget
    reader = BodyReader(serve.max_body_bytes, serve.read_limit_s, budget, middleware.turns)
    for life in service.components:
        _add_component(app, middleware, reader, serve.max_batch, life)
        metrics.add(life.component.collectors())
    app.include_router(info_router(app, service, metrics), tags=[SERVICE_TAG[0]])
    return app


def _add_component(
    app: FastAPI, middleware: Middleware, reader: BodyReader, max_batch: int, life: Life
) -> None:
    check = _start_check(life)
    for route in life.component.routes():
        if isinstance(route, APIRouter):
            _add_router(app, route, life, check)
            continue
        if isinstance(route, BytesRoute):
            _document(app, route, life.component.name)
            answer = bytes_app(route, replace(reader, max_bytes=route.max_body_bytes))
            is_quick = not (route.is_slow or inspect.iscoroutinefunction(route.answer))
            if middleware.has_plain_access and is_quick:
                quick = cast("Callable[[bytes], bytes]", route.answer)
                middleware.at_once.routes[route.path] = QuickRoute(quick, route.is_loopback_only)
        else:
            _document(app, route, life.component.name, route.parameters)
            answer = json_app(route, reader, max_batch, check)
            if route.max_in_flight is not None:
                middleware.limit_route(route.path, route.max_in_flight)
        added = app.router.routes[-1]
        assert isinstance(added, Route)
        added.app = answer
        middleware.add_fast_route("POST", route.path, answer)


def _add_router(app: FastAPI, router: APIRouter, life: Life, check: Callable[[], None]) -> None:
    """Adds routes that only read: bodies are bounded on JSON routes alone."""
    for route in router.routes:
        more = set(getattr(route, "methods", None) or ()) - _READING
        if more:
            path = getattr(route, "path", "")
            raise ValueError(f"{'/'.join(sorted(more))} {path} takes a body: make it a JsonRoute")

    async def started() -> None:
        check()

    app.include_router(router, tags=[life.component.name], dependencies=[Depends(started)])


def _document(
    app: FastAPI,
    route: JsonRoute | BytesRoute,
    tag: str,
    parameters: Sequence[Mapping[str, Any]] = (),
) -> None:
    """Documents a route; FastAPI never answers it."""

    async def documented(body: Any) -> None:
        """Declares the types of the answer for the documentation."""

    documented.__annotations__ = {"body": route.request}
    documented.__doc__ = route.answer.__doc__
    media = {"examples": {name: {"value": body} for name, body in route.examples.items()}}
    extra: dict[str, Any] = {"requestBody": {"content": {"application/json": media}}}
    if parameters:
        extra["parameters"] = list(parameters)
    app.add_api_route(
        route.path,
        documented,
        methods=["POST"],
        response_model=route.reply,
        responses=_other_replies(route),
        openapi_extra=extra,
        name=route.path.rsplit("/", 1)[-1],
        tags=[tag],
    )


def _other_replies(route: JsonRoute | BytesRoute) -> dict[int | str, dict[str, Any]]:
    if isinstance(route, BytesRoute) or not route.unfinished:
        return ERRORS
    return {202: {"model": route.reply, "description": route.unfinished}, **ERRORS}


def _start_check(life: Life) -> Callable[[], None]:
    """Refuses work before a component has started; while draining, accepted work is still done."""

    def check() -> None:
        if not life.is_started:
            raise unready({life.component.name: life.readiness()})

    return check


def _lifespan(components: Components) -> Any:
    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        starting = asyncio.create_task(components.start())
        yield
        starting.cancel()
        with suppress(asyncio.CancelledError):
            await starting
        await components.stop()

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
        hint = "GET /docs lists all routes"
        return Problem(error.status_code, error.detail, hint=hint, headers=error.headers)
    return Problem(422, "the request is invalid", hint="GET /docs shows what it takes")
