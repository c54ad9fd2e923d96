"""Hides the password in an address."""

from __future__ import annotations

import re

MASK = "********"

# Up to the last @: what is hidden by mistake does no harm.
_IN_AUTHORITY = re.compile(r"(?<=://)(?P<user>[^:/]*):.*(?=@)")
_IN_QUERY = re.compile(r"(?<=[?&])(?P<name>password|sslpassword)=[^&#]*", re.IGNORECASE)


def without_password(url: str) -> str:
    """Gives an address as it may be printed.

    >>> without_password("postgresql://ada:secret@db/podium?password=secret")
    'postgresql://ada:********@db/podium?password=********'
    """
    hidden = _IN_AUTHORITY.sub(rf"\g<user>:{MASK}", url)
    return _IN_QUERY.sub(rf"\g<name>={MASK}", hidden)
