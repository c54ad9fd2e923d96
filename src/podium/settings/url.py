"""Separates what is secret in an address from what may be shown.

What is known to be harmless is shown and everything else is hidden: a password under an option
that nobody has heard of stays one, and what is hidden by mistake does no harm.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import unquote_plus

MASK = "********"

# Of libpq and of services for language models; all others are hidden.
_OPEN_OPTIONS = frozenset(
    [
        "api-version", "application_name", "channel_binding", "client_encoding", "connect_timeout",
        "dbname", "fallback_application_name", "gssencmode", "host", "hostaddr", "keepalives",
        "keepalives_count", "keepalives_idle", "keepalives_interval", "load_balance_hosts",
        "model", "options", "passfile", "port", "requirepeer", "require_auth", "service",
        "ssl_max_protocol_version", "ssl_min_protocol_version", "sslcert", "sslcertmode", "sslcrl",
        "sslkey", "sslmode", "sslnegotiation", "sslrootcert", "sslsni", "target_session_attrs",
        "tcp_user_timeout", "user",
    ]
)  # fmt: skip
_NAMED_OPTIONS = frozenset(
    ["access_token", "api-key", "api_key", "key", "passwd", "password", "sslpassword", "token"]
)
"""Options that are hidden, but whose names are worth showing."""

_USERS = ("postgres", "sqlite", "mysql", "mariadb")
"""Schemes whose addresses begin with the name of a user; elsewhere that may be a token."""

_PORT = re.compile(r":(?P<port>[^\]/?#:]*)$")
_OPTION = re.compile(r"[^?&;#]+")
_OPTION_BEFORE_HOST = re.compile(r"[?&][^=@]*=")
_COLON = re.compile(r":|%3a", re.IGNORECASE)

Piece = tuple[str, bool]
"""A part of an address, and whether it is secret."""


def without_password(url: str) -> str:
    """Returns an address as it may be printed.

    >>> without_password("postgresql://ada:secret@db/podium?password=secret&sslmode=require")
    'postgresql://ada:********@db/podium?password=********&sslmode=require'
    """
    return "".join(MASK if is_secret else text for text, is_secret in pieces(url))


def secrets_in(url: str) -> list[str]:
    """Returns what `without_password` hides in an address, exactly as written.

    >>> secrets_in("postgresql://ada:s3%40cret@db/podium")
    ['s3%40cret']
    """
    return [text for text, is_secret in pieces(url) if is_secret]


def pieces(url: str) -> Iterator[Piece]:
    """Splits an address into pieces, in order; a text that is not one is one open piece."""
    scheme, separator, rest = url.partition("://")
    yield scheme + separator, False
    if not separator:
        return
    told, at, place = rest.rpartition("@")
    if told.endswith("/") and not _COLON.search(told):
        at, place = "", rest  # it begins a part of the path
    if at and _OPTION_BEFORE_HOST.search(told):
        yield rest, True  # whether the @ ends a password or stands in an option cannot be told
        return
    if at:
        yield from _account(scheme, told)
        yield "@", False
    yield from _place(place)


def _account(scheme: str, told: str) -> Iterator[Piece]:
    colon = _COLON.search(told)
    if not scheme.lower().startswith(_USERS):
        yield told, True
    elif colon is None:
        yield told, False
    else:
        yield told[: colon.start()] + ":", False
        yield told[colon.end() :], True


def _place(text: str) -> Iterator[Piece]:
    """Splits host, port, path and options."""
    authority = re.split(r"[/?#]", text, maxsplit=1)[0]
    port = _PORT.search(authority)
    if port is not None and port["port"].strip("0123456789"):
        # No port: somebody wrote user:password and forgot the host.
        yield authority[: port.start()] + ":", False
        yield port["port"], True
    else:
        yield authority, False
    rest = text[len(authority) :]
    options = len(re.split(r"[?#]", rest, maxsplit=1)[0])
    yield rest[:options], False
    last = options
    for found in _OPTION.finditer(rest, options):
        yield rest[last : found.start()], False
        yield from _option(found[0])
        last = found.end()
    yield rest[last:], False


def _option(text: str) -> Iterator[Piece]:
    name, equals, value = text.partition("=")
    plain = unquote_plus(name).lower()
    given = unquote_plus(value)
    if equals and plain in _OPEN_OPTIONS and not set("@=") & set(given) and "://" not in given:
        yield text, False
    elif equals and plain in _NAMED_OPTIONS:
        yield name + equals, False
        yield value, True
    else:
        yield text, True
