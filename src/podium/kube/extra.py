"""Names what to install where the dependencies for live clusters are missing."""

from __future__ import annotations

from importlib.util import find_spec

from podium.errors import MissingExtra

MODULES = ("kubernetes_asyncio", "aiohttp", "msgspec")


def need_extra() -> None:
    """Checks that a cluster can be talked to.

    Raises:
        MissingExtra: a dependency is not installed.
    """
    if any(find_spec(name) is None for name in MODULES):
        raise MissingExtra.named("kube", "talking to a cluster")
