"""Answers what the service is, how it does and what it counted; nothing changes by asking."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fastapi import FastAPI
from fastapi.responses import HTMLResponse, JSONResponse, Response

from podium import __version__
from podium.service.http.metrics import CONTENT_TYPE
from podium.service.http.page import page_of
from podium.service.components import Parts
from podium.service.http.problem import Problem
from podium.service.learning.replies import ErrorReply, InfoReply, ReadyReply, StatusReply
from podium.settings import shown

SECTIONS = ("online", "serve", "store")


def add_info(app: FastAPI, parts: Parts) -> None:
    """Adds the routes."""
    unready: dict[int | str, dict[str, Any]] = {503: {"model": ErrorReply}}
    unauthorized: dict[int | str, dict[str, Any]] = {401: {"model": ErrorReply}}

    @app.get("/", response_model=InfoReply, responses=unauthorized)
    async def info() -> JSONResponse:
        """Says what this service is and how it is set, without secrets."""
        return JSONResponse(described(parts))

    @app.get("/healthz", response_model=StatusReply)
    async def healthz() -> JSONResponse:
        """Says that the process is alive."""
        return JSONResponse({"status": "healthy"})

    @app.get("/readyz", response_model=ReadyReply, responses=unready)
    async def readyz() -> JSONResponse:
        """Says whether requests are welcome: not while replaying or draining, nor without a file.

        A store that cannot be written for a while is said, but scores need none.
        """
        if not parts.phase.is_ready:
            raise parts.phase.problem()
        health = parts.memory.health
        if health.is_lost:
            raise Problem(
                503,
                "the file of the store was deleted, moved or replaced",
                hint="put it back, or start the service again",
                headers={"retry-after": "1"},
            )
        told = "unavailable" if health.is_troubled else "ok"
        return JSONResponse({"status": "ready", "store": told})

    @app.get("/metrics", response_class=Response, responses=_text(CONTENT_TYPE))
    def metrics() -> Response:
        """Gives all figures in Prometheus's text format."""
        return Response(parts.metrics.text(), media_type=CONTENT_TYPE)

    @app.get("/docs", response_class=HTMLResponse, responses=_text("text/html"))
    async def docs() -> HTMLResponse:
        """Describes all routes for people."""
        return HTMLResponse(page_of(app.openapi()))


def described(parts: Parts) -> dict[str, Any]:
    """Gives the effective configuration: the model's under its old names, and every setting."""
    values = {row.path: _plain(row.value) for row in shown(parts.settings)}
    settings = {path: value for path, value in values.items() if path.split(".")[0] in SECTIONS}
    config = {
        path.removeprefix("online."): value
        for path, value in values.items()
        if path.startswith("online.")
    }
    # Assignment is always there; callers of the agent before looked at this switch.
    return {
        "service": "podium",
        "version": __version__,
        "config": {**config, "enable_sinkhorn": True},
        "settings": settings,
    }


def _plain(value: Any) -> Any:
    return str(value) if isinstance(value, Path) else value


def _text(media_type: str) -> dict[int | str, dict[str, Any]]:
    error = {"schema": {"$ref": "#/components/schemas/ErrorReply"}}
    return {
        200: {"content": {media_type.split(";")[0]: {"schema": {"type": "string"}}}},
        401: {"description": "unauthorized", "content": {"application/json": error}},
    }
