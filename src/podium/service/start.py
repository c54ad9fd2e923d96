"""Builds the service from the settings: opens its store, composes it, and runs it to its end."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping

from structlog.typing import FilteringBoundLogger

from podium.errors import PodiumError, UnknownName, UsageError
from podium.kube import need_extra as need_kube_extra
from podium.service.components import Component, Components, Service
from podium.service.http.credentials import check_tls, read_token
from podium.service.http.logs import Log
from podium.service.http.server import listen, run
from podium.service.learning.component import Learning
from podium.service.learning.journal import LOCK_SHARE
from podium.settings import Settings, secrets_of
from podium.store import Store, open_store

LOOPBACK = ("127.0.0.1", "::1", "localhost")

Maker = Callable[[Settings, Store, FilteringBoundLogger], Component]


def _extender(settings: Settings, store: Store, log: FilteringBoundLogger) -> Component:
    need_kube_extra()
    from podium.service.extender.component import Extender
    from podium.service.extender.following import follow_cluster

    return Extender(settings, store, log, follow_cluster)


def _webhook(settings: Settings, store: Store, log: FilteringBoundLogger) -> Component:
    need_kube_extra()
    from podium.service.extender.webhook import Webhook

    return Webhook(settings, store, log)


MAKERS: Mapping[str, Maker] = {"learning": Learning, "extender": _extender, "webhook": _webhook}
"""Every component that `serve.components` can switch on."""


def run_service(settings: Settings, on_listening: Callable[[str, Store], None]) -> int:
    """Serves until a signal comes, and returns that signal.

    Args:
        settings: of everything.
        on_listening: called with the address and the store once the service listens.
    """
    token, is_encrypted = read_token(settings.serve), check_tls(settings.serve)
    names = component_names(settings)
    with open_store(settings.store.url, settings.serve.store_limit_s * LOCK_SHARE) as store:
        listener = listen(settings.serve)
        known = secrets_of(settings, os.environ, token=token or "")
        log = Log(sys.stderr, settings.serve.log_level, known)
        log.adopt("uvicorn")
        log.adopt("asyncio")
        try:
            host, port = listener.getsockname()[:2]
            shown = f"[{host}]" if ":" in host else host
            url = f"{'https' if is_encrypted else 'http'}://{shown}:{port}"
            on_listening(url, store)
            service = compose(settings, store, log.logger, token)
            facts = {"components": names, "store": store.label, "has_token": bool(token)}
            log.logger.info("listening", url=url, **facts)
            if token is None and settings.serve.host not in LOOPBACK:
                problem = "anyone who can reach this address can use the service"
                log.logger.warning(problem, hint="set a token with --token-file")
            return run(service, listener)
        except PodiumError as error:
            log.logger.error("failed", problem=str(error), hint=error.hint)  # noqa: TRY400 - no bug
            if sys.stderr.isatty():
                raise
            raise SystemExit(error.exit_code) from error  # the log has the reason, as JSON
        finally:
            log.close()


def compose(
    settings: Settings, store: Store, log: FilteringBoundLogger, token: str | None = None
) -> Service:
    """Builds a service from the components that are switched on, on an open store."""
    made = [MAKERS[name](settings, store, log) for name in component_names(settings)]
    components = Components(made, log)
    for each in made:
        if isinstance(each, Learning):
            each.selector.label_values = components.label_values
    return Service(settings, components, log, token)


def component_names(settings: Settings) -> list[str]:
    """Lists the components that are switched on.

    Raises:
        UnknownName: there is no such component.
        UsageError: none is switched on.
    """
    names = [name.strip() for name in settings.serve.components.split(",") if name.strip()]
    for name in names:
        if name not in MAKERS:
            raise UnknownName.among("component", name, MAKERS, where="serve.components")
    if not names:
        raise UsageError(
            "no component is switched on",
            where="serve.components",
            hint=f"list at least one of: {', '.join(MAKERS)}",
        )
    return names
