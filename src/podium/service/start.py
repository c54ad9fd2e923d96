"""Makes the parts of the service from the settings, and runs it to its end."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

from podium.errors import PodiumError
from podium.online import Parameters
from podium.service.http.credentials import check_tls, read_token
from podium.service.learning.learner import AgentLearner
from podium.service.http.logs import Log
from podium.service.learning.journal import LOCK_SHARE, Memory
from podium.service.components import Parts
from podium.service.http.server import listen, run
from podium.settings import Settings, secrets_of
from podium.store import Rhythm, Store, open_store

LOOPBACK = ("127.0.0.1", "::1", "localhost")


def run_service(settings: Settings, told: Callable[[str, Store], None]) -> int:
    """Serves until a signal comes; gives that signal.

    Args:
        settings: of everything.
        told: hears the address and the store once the service listens.
    """
    token, is_encrypted = read_token(settings.serve), check_tls(settings.serve)
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
            told(url, store)
            parts = made(settings, store, log, token)
            log.logger.info("listening", url=url, store=store.label, has_token=bool(token))
            if token is None and settings.serve.host not in LOOPBACK:
                problem = "everybody who reaches this address may use it"
                log.logger.warning(problem, hint="--token-file changes that")
            return run(parts, listener)
        except PodiumError as error:
            log.logger.error("failed", problem=str(error), hint=error.hint)  # noqa: TRY400 - no bug
            if sys.stderr.isatty():
                raise
            raise SystemExit(error.exit_code) from error  # the log has the reason, as JSON
        finally:
            log.close()


def made(settings: Settings, store: Store, log: Log, token: str | None = None) -> Parts:
    """Makes the parts of a service on an open store."""
    learner = AgentLearner(Parameters.of(settings.online))
    serve = settings.serve
    rhythm = Rhythm(serve.poll_s, serve.checkpoint_interval_s, serve.retention_observations)
    memory = Memory(store, learner, rhythm, log.logger, serve.store_limit_s)
    return Parts(settings, learner, memory, log.logger, token)
