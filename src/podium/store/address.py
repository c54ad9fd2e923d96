"""Turns what a user writes for a store into an address of SQLAlchemy."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from podium.errors import MissingExtra, UnknownName, UsageError
from podium.settings import hidden, without_password

if TYPE_CHECKING:
    from sqlalchemy import URL

SQLITE, POSTGRESQL = "sqlite", "postgresql"

_DRIVERS = {
    "sqlite": "sqlite+pysqlite",
    "sqlite+pysqlite": "sqlite+pysqlite",
    "postgres": "postgresql+psycopg",
    "postgresql": "postgresql+psycopg",
    "postgresql+psycopg": "postgresql+psycopg",
}
_ADVICE = "write sqlite:///FILE, postgresql://USER@HOST/DATABASE, or the path of a file"
_MEMORY = ":memory:"
_ENCODE = "percent-encode special characters: @ is %40, / is %2F, ? is %3F, # is %23"


def read_address(text: str) -> URL:
    """Reads a URL, or the path of a SQLite file.

    Raises:
        UsageError: it is no address of a database that Podium can use.
        MissingExtra: it is one of PostgreSQL, and its driver is not installed.
    """
    scheme, separator, _ = text.partition("://")
    if not text.strip():
        raise UsageError("the address of the store is empty", hint=_ADVICE)
    if not separator:
        _refuse_strange(text)
        return _sqlite_file(text)
    if scheme.lower() not in _DRIVERS:
        known = UnknownName.among("scheme", scheme, (SQLITE, POSTGRESQL)).hint
        shown = f'"{scheme}"' if re.fullmatch(r"[\w+.-]+", scheme) else "this"
        where = without_password(text)
        raise UsageError(
            f"{shown} is not a supported database", where=where, hint=f"{known}; {_ADVICE}"
        )
    url = _parsed(text).set(drivername=_DRIVERS[scheme.lower()])
    if url.get_backend_name() == SQLITE:
        return _sqlite_url(url, text)
    _need_psycopg()
    return url


def file_of(url: URL) -> Path | None:
    """Names the file of a SQLite store; nothing for other stores."""
    return Path(url.database or "") if url.get_backend_name() == SQLITE else None


def label_of(url: URL) -> str:
    """Names a store in messages, without its password."""
    file = file_of(url)
    if file is not None:
        return str(file)
    return without_password(url.set(drivername=POSTGRESQL).render_as_string(hide_password=True))


def _parsed(text: str) -> URL:
    from sqlalchemy import make_url
    from sqlalchemy.exc import ArgumentError

    try:
        url = make_url(text)
    except (ArgumentError, ValueError):
        where = without_password(text)
        # Not "from error": that would quote a part of the address, which may be of the password.
        raise UsageError("this is not a valid address", where=where, hint=_ADVICE) from None
    if "@" in (url.host or "") or re.search(r"\?\w+=", str(url.password or "")):
        # A part of the password would be taken for a host, and be named in messages.
        raise UsageError(
            "it is unclear where its password ends", where=without_password(text), hint=_ENCODE
        )
    return url


def _refuse_strange(text: str) -> None:
    """Refuses what was meant as an address and would become the name of a file."""
    scheme = text.partition(":")[0].lower()
    if (scheme != text.lower() and scheme in _DRIVERS) or hidden(text) != text:
        # Not quoted: where a password begins and ends in it cannot be told.
        raise UsageError("this is not a valid address", hint=_ADVICE)


def _sqlite_url(url: URL, text: str) -> URL:
    if url.host or url.query:
        problem = "the address of a SQLite file has neither a host nor options"
        advice = "write sqlite:///FILE with three slashes, four for a path from the root"
        raise UsageError(problem, where=without_password(text), hint=advice)
    return _sqlite_file(url.database or _MEMORY)


def _sqlite_file(path: str) -> URL:
    from sqlalchemy import URL

    if path == _MEMORY:
        problem = "a store in memory would be lost"
        raise UsageError(problem, where=path, hint="name a file: sqlite:///FILE")
    return URL.create(_DRIVERS[SQLITE], database=str(Path(path).expanduser()))


def _need_psycopg() -> None:
    try:
        import psycopg  # noqa: F401 - whether it is there is the question
    except ImportError as error:
        raise MissingExtra.named("postgres", "a store in PostgreSQL") from error
