"""Names what to install where dependencies of the service are missing; imports them faster."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
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


@contextmanager
def importing() -> Iterator[None]:
    """Looks for no garbage while the block imports, nor later among what is there by then.

    All of it stays; to look through it again and again takes a fifth of the time of the start.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
