"""Parses candidates for threads that work side by side."""

from __future__ import annotations

import ast
import threading

_TURN = threading.Lock()


def parse_text(text: str, path: str = "<unknown>") -> ast.Module:
    """Parses a text as `ast.parse` does, one thread at a time.

    CPython 3.11 up to 3.11.7 counts the depth of trees for all threads together, and fails with
    a SystemError when they mix (python/cpython#106905).
    """
    with _TURN:
        return ast.parse(text, path)
