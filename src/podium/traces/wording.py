"""Words counts and lists of names for notes and findings."""

from __future__ import annotations

from collections.abc import Sequence


def counted(count: int, noun: str) -> str:
    """Words a count with its noun.

    >>> counted(1, "pod"), counted(2, "pod")
    ('1 pod', '2 pods')
    """
    return f"{count} {noun}{'' if count == 1 else 's'}"


def some(names: Sequence[str], most: int = 5) -> str:
    """Names the first few.

    >>> some(["a", "b", "c"], 2)
    'a, b, ...'
    """
    return ", ".join(names[:most]) + (", ..." if len(names) > most else "")
