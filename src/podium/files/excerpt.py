"""Shows values in messages, cut to one short line, however large they are."""

from __future__ import annotations

import reprlib
from typing import Any

_SHORT = reprlib.Repr()
_SHORT.maxlevel = 3
_SHORT.maxdict = _SHORT.maxlist = _SHORT.maxstring = _SHORT.maxother = 60


def excerpt(value: Any, most: int = 60, quote: str | None = None) -> str:
    """Shows a value; a text between such quotes, or as Python would.

    >>> excerpt({"a": [1, 2]}), excerpt("x" * 99, 12), excerpt("a b", quote='"')
    ("{'a': [1, 2]}", "'xxxxxxxx...", '"a b"')
    """
    if quote is not None and isinstance(value, str):
        shown = f"{quote}{value[: 4 * most]}{quote}"
    elif isinstance(value, str):
        shown = repr(value[: 4 * most])
    else:
        shown = _other(value)
    text = " ".join(shown.split())
    return text if len(text) <= most else text[: most - 3] + "..."


def escaped(text: str) -> str:
    r"""Shows a text with what would not print, such as control characters, as escapes.

    >>> print(escaped("gpu\x1b[2J-node"))
    gpu\x1b[2J-node
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def _other(value: Any) -> str:
    try:
        return _SHORT.repr(value)
    except ValueError:  # Python writes no whole number of more than 4,300 digits
        return "a number with thousands of digits"
