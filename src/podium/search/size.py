"""Measures how much there is to read in a candidate."""

from __future__ import annotations

import ast

from podium.search.parsing import parse_text

_FREE = (ast.expr_context, ast.arguments, ast.arg, ast.Import, ast.ImportFrom, ast.alias)
"""Parts of a syntax tree that nobody reads, or that every candidate has."""


def complexity_of(text: str) -> int:
    r"""Counts the parts of a text's syntax tree; comments and docstrings are free.

    >>> complexity_of("def score(pod, node):\n    return -node.cpu_milli_left")
    6
    """
    return sum(not isinstance(node, _FREE) for node in _walk(parse_text(text)))


def _walk(tree: ast.AST) -> list[ast.AST]:
    found, waiting = [], [tree]
    while waiting:
        node = waiting.pop()
        if not _is_words(node):
            found.append(node)
            waiting.extend(ast.iter_child_nodes(node))
    return found[1:]


def _is_words(node: ast.AST) -> bool:
    value = getattr(node, "value", None) if isinstance(node, ast.Expr) else None
    return isinstance(value, ast.Constant) and isinstance(value.value, str)
