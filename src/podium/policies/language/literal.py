"""Writes texts into Python source so that they stay texts, whatever they hold.

Names come from files, and files come from anywhere: nothing but this door puts a text between the
quotes of generated source, or behind a `#`.
"""

from __future__ import annotations

import textwrap

_QUOTES = '"""'


def literal(text: str) -> str:
    r"""Writes a text as a literal on one line.

    >>> print(literal('a "b"'), literal("c\n"))
    "a \"b\"" "c\n"
    """
    return '"' + _escaped(text).replace('"', r"\"") + '"'


def docstring(text: str, indent: str = "") -> list[str]:
    r'''Writes a text as the lines of a docstring; its newlines stay, all else is escaped.

    >>> docstring("Packs.")
    ['"""Packs."""']
    '''
    return documented(text.split("\n"), indent)


def documented(lines: list[str], indent: str = "") -> list[str]:
    """Writes lines as a docstring; a newline inside one of them is escaped."""
    first, *rest = (_documented(line) for line in lines)
    if rest:
        return [f"{indent}{_QUOTES}{first}", *rest, f"{indent}{_QUOTES}"]
    return [f"{indent}{_QUOTES}{first}{_QUOTES}"]


def comment(text: str, indent: str = "", width: int = 100) -> list[str]:
    """Writes a text as comment lines."""
    lead = f"{indent}# "
    return textwrap.wrap(_escaped(text), width, initial_indent=lead, subsequent_indent=lead)


def _escaped(text: str) -> str:
    # repr() escapes what does not print: line ends of every kind, NUL, halves of surrogate pairs.
    return "".join(c if c == "'" else repr(c)[1:-1] for c in text)


def _documented(line: str) -> str:
    text = _escaped(line)
    if text.endswith('"'):  # it would join the quotes that end the docstring
        return text[:-1].replace(_QUOTES, r"\"\"\"") + r"\""
    return text.replace(_QUOTES, r"\"\"\"")
