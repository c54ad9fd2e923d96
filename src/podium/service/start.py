"""Builds the service from the settings: composes it, with a store if it learns, and runs it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, cast

from structlog.typing import FilteringBoundLogger

from podium.errors import PodiumError, UnknownName, UsageError
from podium.kube import need_extra as need_kube_extra
from podium.service import importing
from podium.service.components import Component, Components, Service
from podium.service.http.credentials import check_tls, read_token
from podium.service.http.logs import Log
from podium.service.http.own_names import is_local
from podium.service.http.server import listen, run
from podium.settings import Settings, secrets_of

if TYPE_CHECKING:
    from podium.service.learning.component import Learning
    from podium.store import Store

Maker = Callable[[Settings, "Store | None", FilteringBoundLogger], Component]


def _learning(settings: Settings, store: Store | None, log: FilteringBoundLogger) -> Component:
    from podium.service.learning.component import Learning

    assert store is not None
    return Learning(settings, store, log)


def _extender(settings: Settings, _store: Store | None, log: FilteringBoundLogger) -> Component:
    need_kube_extra()
    from podium.service.extender.component import Extender
    from podium.service.extender.following import follow_cluster

    return Extender(settings, log, follow_cluster)


def _webhook(settings: Settings, _store: Store | None, log: FilteringBoundLogger) -> Component:
    need_kube_extra()
    from podium.service.extender.webhook import Webhook

    return Webhook(settings, log)


MAKERS: Mapping[str, Maker] = {"learning": _learning, "extender": _extender, "webhook": _webhook}
"""Every component that `serve.components` can switch on; who is not, is not imported."""


def run_service(settings: Settings, on_listening: Callable[[str, Store | None], None]) -> int:
    """Serves until a signal comes, and returns that signal.

    Args:
        settings: of everything.
        on_listening: called with the address, and the store if there is one, once it listens.
    """
    token, is_encrypted = read_token(settings.serve), check_tls(settings.serve)
    names = component_names(settings)
    with _opened_store(settings, names) as store:
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
            with importing():
                service = compose(settings, store, log.logger, token)
            facts = {} if store is None else {"store": store.label}
            log.logger.info("listening", url=url, components=names, **facts, has_token=bool(token))
            if token is None and not is_local(settings.serve.host):
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


@contextmanager
def _opened_store(settings: Settings, names: Sequence[str]) -> Iterator[Store | None]:
    """Opens the store where somebody learns; nobody else needs one."""
    if "learning" not in names:
        yield None
        return
    from podium.service.learning.journal import LOCK_SHARE
    from podium.store import open_store

    with open_store(settings.store.url, settings.serve.store_limit_s * LOCK_SHARE) as store:
        yield store


def compose(
    settings: Settings, store: Store | None, log: FilteringBoundLogger, token: str | None = None
) -> Service:
    """Builds a service from the components that are switched on, on an open store if one learns."""
    names = component_names(settings)
    made = [MAKERS[name](settings, store, log) for name in names]
    components = Components(made, log)
    for name, each in zip(names, made, strict=True):
        if name == "learning":
            cast("Learning", each).selector.label_values = components.label_values
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
