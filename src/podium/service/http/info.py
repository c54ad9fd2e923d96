"""Answers what the service is, how it is, and its metrics; asking changes nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fastapi import APIRouter, FastAPI
from fastapi.responses import HTMLResponse, JSONResponse, Response
from pydantic import create_model

from podium import __version__
from podium.service.components import Components, Service
from podium.service.http.metrics import CONTENT_TYPE, Metrics
from podium.service.http.page import content_policy, page_of
from podium.service.http.problem import Problem, unready
from podium.service.http.replies import ErrorReply, InfoReply, StatusReply
from podium.settings import shown

SERVICE_TAG = ("service", "What the service is, whether it is ready, and its metrics.")


def info_router(app: FastAPI, service: Service, counted: Metrics) -> APIRouter:
    """Builds the routes that every service has, whatever its components."""
    router = APIRouter()
    unavailable: dict[int | str, dict[str, Any]] = {503: {"model": ErrorReply}}
    unauthorized: dict[int | str, dict[str, Any]] = {401: {"model": ErrorReply}}

    @router.get("/", response_model=InfoReply, responses=unauthorized)
    async def info() -> JSONResponse:
        """Describes this service and its settings, without secrets."""
        return JSONResponse(described(service))

    @router.get("/healthz", response_model=StatusReply, responses=unavailable)
    async def healthz() -> JSONResponse:
        """Reports whether the service is alive: no component is broken for good.

        What may pass, such as an API server or a store that is away, does not count.
        """
        return JSONResponse(liveness(service.components))

    @router.get("/readyz", response_model=_ready_reply(service.components), responses=unavailable)
    async def readyz() -> JSONResponse:
        """Reports whether the service is ready: every component is, and it is not shutting down.

        A store that cannot be written for a while is reported, but scores do not need it.
        """
        return JSONResponse(readiness(service.components))

    @router.get("/metrics", response_class=Response, responses=_text(CONTENT_TYPE))
    def metrics() -> Response:
        """Prints all figures in Prometheus's text format."""
        return Response(counted.text(), media_type=CONTENT_TYPE)

    @router.get("/docs", response_class=HTMLResponse, responses=_text("text/html"))
    async def docs() -> HTMLResponse:
        """Describes all routes for people."""
        headers = {"content-security-policy": content_policy()}
        return HTMLResponse(page_of(app.openapi()), headers=headers)

    return router


def liveness(components: Components) -> dict[str, str]:
    """Reports that nothing is broken for good.

    Raises:
        Problem: a component is.
    """
    for life in components:
        failure = life.component.failure
        if failure is not None:
            message = f"{life.component.name} is beyond recovery: {type(failure).__name__}"
            raise Problem(503, message, hint="restart the service; its log has the details")
    return {"status": "healthy"}


def readiness(components: Components) -> dict[str, str]:
    """Reports that all components are ready, with what they add.

    Raises:
        Problem: one of them is not, or the service is ending.
    """
    if components.is_draining:
        headers = {"retry-after": "1"}
        raise Problem(503, "the service is shutting down", hint="try again", headers=headers)
    waiting = components.not_ready()
    if waiting:
        raise unready(waiting)
    return {"status": "ready", **components.details()}


def _ready_reply(components: Components) -> type[StatusReply]:
    fields: dict[str, Any] = {
        name: kind for life in components for name, kind in life.component.ready_fields.items()
    }
    meaning = "The service is ready; components add fields of their own."
    return create_model("ReadyReply", __base__=StatusReply, __doc__=meaning, **fields)


def described(service: Service) -> dict[str, Any]:
    """Returns the settings that matter here, and what each component adds."""
    parts = [life.component for life in service.components]
    sections = {"serve", *(name for each in parts for name in each.sections)}
    settings = {
        row.path: str(row.value) if isinstance(row.value, Path) else row.value
        for row in shown(service.settings)
        if row.path.split(".")[0] in sections
    }
    config = {name: value for each in parts for name, value in each.config().items()}
    return {"service": "podium", "version": __version__, "config": config, "settings": settings}


def _text(media_type: str) -> dict[int | str, dict[str, Any]]:
    error = {"schema": {"$ref": "#/components/schemas/ErrorReply"}}
    return {
        200: {"content": {media_type.split(";")[0]: {"schema": {"type": "string"}}}},
        401: {"description": "unauthorized", "content": {"application/json": error}},
    }
