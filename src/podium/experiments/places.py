"""Names the place of a mistake: the flag, variable or file that a value came from."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from podium.errors import PodiumError, UnknownName
from podium.settings import Settings

_LISTS = {"policy": "podium policies list", "trace": "podium traces list"}


def place_of(settings: Settings, path: str) -> str:
    """Describes where a setting was made, for errors about its value; empty for a default."""
    section, name = path.split(".")
    origin = settings.origins[path]
    return "" if origin == "default" else f"{origin}, [{section}] {name}"


def traces_folder(settings: Settings) -> Path | None:
    """Names the folder of original traces: the one that is set, or what was fetched."""
    has_fetched = any(settings.traces.cache.glob("openb_*.csv"))
    return settings.traces.folder or (settings.traces.cache if has_fetched else None)


@contextmanager
def blaming(where: str, advice: str = "") -> Iterator[None]:
    """Adds a place and advice to errors that have none, and the command that lists all names."""
    try:
        yield
    except PodiumError as error:
        error.where = error.where or where
        error.hint = error.hint or advice
        kind = error.message.split('"')[0] if isinstance(error, UnknownName) else ""
        for noun, verb in _LISTS.items():
            if noun in kind:
                error.hint += f"; {verb} shows all"
        raise
