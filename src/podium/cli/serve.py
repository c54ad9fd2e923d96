"""Serves scores, observations and assignments over HTTP."""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from podium.cli.failure import INTERRUPTED, Told
from podium.cli.group import new_app
from podium.cli.options import StoreUrl, read_settings
from podium.cli.render import Screen

if TYPE_CHECKING:
    from podium.store import Store

app = new_app()


@app.command()
def serve(
    ctx: typer.Context,
    host: Annotated[
        str | None, typer.Option("--host", help="Address to listen on.", show_default=False)
    ] = None,
    port: Annotated[
        int | None,
        typer.Option("--port", help="Port to listen on; 0: any free one.", show_default=False),
    ] = None,
    token_file: Annotated[
        Path | None,
        typer.Option("--token-file", help="File with the bearer token.", show_default=False),
    ] = None,
    tls_cert: Annotated[
        Path | None, typer.Option("--tls-cert", help="TLS certificate (PEM).", show_default=False)
    ] = None,
    tls_key: Annotated[
        Path | None,
        typer.Option("--tls-key", help="Its private key (PEM).", show_default=False),
    ] = None,
    store: StoreUrl = None,
    log_level: Annotated[
        str | None,
        typer.Option("--log-level", help="debug, info, warning or error.", show_default=False),
    ] = None,
) -> None:
    """Serves scores, observations and assignments over HTTP.

    Shuts down gracefully on SIGTERM or Ctrl+C: requests are finished, observations stored, and
    what was learned is saved. Logs are JSON lines on standard error.
    """
    from podium.service import importing, need_extra

    need_extra()
    with importing():
        from podium.service.start import run_service

    settings = read_settings(
        ctx,
        {
            "serve.host": host,
            "serve.port": port,
            "serve.token_file": token_file,
            "serve.tls_cert": tls_cert,
            "serve.tls_key": tls_key,
            "serve.log_level": log_level,
            "store.url": store,
        },
    )
    screen = Screen(settings.display)

    def announce(url: str, store: Store | None) -> None:
        if sys.stderr.isatty():  # the log says the same as JSON
            stored = "" if store is None else f" and stores observations in {store.label}"
            screen.note(f"Podium listens on {url}{stored}")

    if run_service(settings, announce) == signal.SIGINT:
        raise typer.Exit(Told(INTERRUPTED))
