"""Knows the names by which this machine alone is meant to call the service.

A page of a stranger can have its own name point at this machine (DNS rebinding). A browser then
sends that page's requests here, with the stranger's name in Host. Where no token keeps such a page
out and the service listens on a loopback address, other names and other pages are refused.
"""

from __future__ import annotations

import functools
import ipaddress
import re
import socket
from collections.abc import Mapping
from dataclasses import dataclass

from podium.service.http.problem import Problem

_HOST = re.compile(rb"(\[[0-9A-Fa-f:.]+\]|[^:\[\]]+)(:[0-9]*)?")
_CLOSE = {"connection": "close"}


@dataclass(frozen=True)
class OwnNames:
    """Is loopback addresses, localhost, and the name under which the service listens."""

    host: str

    def check(self, headers: Mapping[bytes, bytes]) -> None:
        """Refuses a request for another name, or of a page from elsewhere.

        Raises:
            Problem: it is one.
        """
        host, origin = headers.get(b"host"), headers.get(b"origin")
        if host is not None and not self.has(host):
            raise Problem(
                421,
                "this service answers to loopback names alone",
                hint="ask 127.0.0.1 or localhost, or set a token with --token-file",
                headers=_CLOSE,
            )
        if origin is not None and origin.partition(b"://")[2] != host:
            raise Problem(
                403,
                "the request comes from a page of another origin",
                hint="ask without a browser, or set a token with --token-file",
                headers=_CLOSE,
            )

    def has(self, host: bytes) -> bool:
        """Tells whether the value of a Host header names this machine, on any port."""
        return _is_one(host, self.host)


@functools.lru_cache(maxsize=256)
def _is_one(header: bytes, own: str) -> bool:
    found = _HOST.fullmatch(header)
    if found is None:
        return False
    name = found[1].decode("latin-1").lower().strip("[]")
    return name in ("localhost", own.lower()) or is_loopback(name)


def own_names(host: str, token: str | None) -> OwnNames | None:
    """Returns the only names that are answered to; None: all are."""
    return OwnNames(host) if token is None and is_local(host) else None


def is_local(host: str) -> bool:
    """Tells whether only this machine reaches who listens there."""
    try:
        found = socket.getaddrinfo(host, None)
    except (OSError, UnicodeError):
        return False
    return all(is_loopback(str(each[4][0])) for each in found)


@functools.lru_cache(maxsize=256)
def is_loopback(host: str) -> bool:
    """Tells whether an address never leaves its machine or pod; IPv4 may come mapped into IPv6."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return bool((mapped or address).is_loopback)
