"""Guards the terminal: what files and names contain is shown there, never acted upon.

A name may contain an escape sequence that clears the screen, retitles the window, or turns the
letters after it round. `Visible` stands before standard output and standard error for as long as
a command runs, and writes such characters as Python would; only what draws tables and bars, and
has made its texts visible before, writes past it.
"""

from __future__ import annotations

import json
import sys
import unicodedata
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO, cast


def visible(text: str) -> str:
    r"""Writes out what a terminal would act upon; lines and tabs stay.

    >>> print(visible("gpu\x1b[2J-node"))
    gpu\x1b[2J-node
    """
    return "\n".join("\t".join(map(on_one_line, line.split("\t"))) for line in text.split("\n"))


def on_one_line(text: str) -> str:
    r"""Writes out line ends as well: a name must not add a line to what it stands in.

    >>> print(on_one_line("node\n0 errors"))
    node\n0 errors
    """
    if text.isprintable():
        return text
    return "".join(c if _is_shown(c) else repr(c)[1:-1] for c in text)


def json_text(value: object, indent: int | None = None) -> str:
    """Writes JSON that a terminal shows as it is."""
    is_ascii = "utf" not in (sys.stdout.encoding or "utf").lower()
    text = json.dumps(value, indent=indent, ensure_ascii=is_ascii, allow_nan=False)
    return "\n".join(map(_json_line, text.split("\n")))


class Visible:
    """Writes to a stream what can be seen of a text."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        """Writes a text; returns its full length."""
        self.stream.write(visible(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Writes texts one after the other."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


@contextmanager
def guarding() -> Iterator[None]:
    """Makes whatever is printed visible, until the block ends."""
    output, errors = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = _guarded(output), _guarded(errors)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = output, errors


def unguarded(stream: TextIO) -> TextIO:
    """Returns the stream itself, for callers that style what they have made visible."""
    return stream.stream if isinstance(stream, Visible) else stream


def _guarded(stream: TextIO) -> TextIO:
    # A terminal of another encoding gets what it has no letter for as an escape.
    reconfigure = getattr(stream, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="backslashreplace")
    return cast("TextIO", Visible(stream))


def _json_line(line: str) -> str:
    if line.isprintable():
        return line
    return "".join(c if _is_shown(c) else json.dumps(c)[1:-1] for c in line)


def _is_shown(character: str) -> bool:
    # Spaces of other widths do not count as printable, but do no harm.
    return character.isprintable() or unicodedata.category(character) == "Zs"
