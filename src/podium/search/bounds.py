"""Measures a candidate's syntax tree: how large it is, how deep, and how its loops nest."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from podium.search import vocabulary
from podium.search.constants import number_of
from podium.search.syntax import children


def bound_problems(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yields (line, reason) for what is too large to look into."""
    count = 0
    waiting: list[tuple[ast.AST, int, int, int]] = [(tree, 0, 0, 1)]
    while waiting:
        node, depth, loops, line = waiting.pop()
        line = int(getattr(node, "lineno", line))
        count += 1
        loops += isinstance(node, ast.For | ast.While)
        reason = _reason(node, depth, loops)
        if reason:
            yield line, reason
            return
        held = children(node)
        waiting += [(child, depth + _step(node, child), loops, line) for child in held]
    if count > vocabulary.MOST_NODES:
        yield 1, f"has {count:,} parts; {vocabulary.MOST_NODES:,} at most"


def _step(node: ast.AST, child: ast.AST) -> int:
    # An elif is an if within the else of another: a person reads a chain of them as flat.
    return 0 if isinstance(node, ast.If) and isinstance(child, ast.If) else 1


def _reason(node: ast.AST, depth: int, loops: int) -> str:
    if depth > vocabulary.DEEPEST:
        return f"is nested deeper than {vocabulary.DEEPEST} levels"
    if loops > vocabulary.DEEPEST_LOOPS:
        return f"nests more than {vocabulary.DEEPEST_LOOPS} loops"
    if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "range":
        longest = max((abs(number_of(each) or 0.0) for each in node.args), default=0.0)
        if longest > vocabulary.LONGEST_RANGE:
            return f"loops over a range of {longest:g}; {vocabulary.LONGEST_RANGE:,} at most"
    return ""
