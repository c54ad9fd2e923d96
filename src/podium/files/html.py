"""Writes small HTML tables for notebooks; every text is escaped, since names come from files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape


def html_fields(title: str, values: Mapping[str, object]) -> str:
    """Writes names and values, one pair a row.

    >>> html_fields("<run>", {"pods": 3})
    '<table><caption>&lt;run&gt;</caption><tr><th>pods</th><td>3</td></tr></table>'
    """
    rows = "".join(
        f"<tr>{_cell('th', name)}{_cell('td', each)}</tr>" for name, each in values.items()
    )
    return f"<table>{_caption(title)}{rows}</table>"


def html_table(title: str, titles: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Writes rows below their titles."""
    head = "".join(_cell("th", each) for each in titles)
    body = "".join(f"<tr>{''.join(_cell('td', each) for each in row)}</tr>" for row in rows)
    return f"<table>{_caption(title)}<tr>{head}</tr>{body}</table>"


def html_code(title: str, text: str) -> str:
    """Writes a program below its title."""
    return f"<p>{escape(title)}</p><pre>{escape(text)}</pre>"


def _caption(title: str) -> str:
    return f"<caption>{escape(title)}</caption>"


def _cell(tag: str, value: object) -> str:
    return f"<{tag}>{escape('' if value is None else str(value))}</{tag}>"
