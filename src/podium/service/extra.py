"""Names what to install where the dependencies of the service are missing."""

from __future__ import annotations

from importlib.util import find_spec

from podium.errors import MissingExtra

MODULES = ("fastapi", "uvicorn", "prometheus_client", "structlog")


def need_extra() -> None:
    """Checks that the service can be imported.

    Raises:
        MissingExtra: a dependency is not installed.
    """
    if any(find_spec(name) is None for name in MODULES):
        raise MissingExtra.named("serve", "the service")
