"""Recognises candidates that compute the same and only look different."""

from __future__ import annotations

import ast
import hashlib

from podium.search.vocabulary import RESERVED

_FIXED = RESERVED | {"score", "gpu"}
_LEFT_OUT = frozenset(
    ["annotation", "ctx", "kind", "returns", "simple", "type_comment", "type_ignores"]
)
_IMPORTS = (ast.Import, ast.ImportFrom)


def fingerprint(tree: ast.Module) -> str:
    """Digests a syntax tree without its docstrings, layout, annotations and chosen names."""
    parts: list[str] = []
    _write(tree, parts, {})
    return hashlib.sha256("".join(parts).encode()).hexdigest()


def _write(node: object, parts: list[str], numbers: dict[str, str]) -> None:
    if isinstance(node, ast.AST):
        _write_node(node, parts, numbers)
    elif isinstance(node, list):
        parts.append("[")
        for each in node:
            _write(each, parts, numbers)
        parts.append("]")
    else:
        parts.append(f"{node!r},")


def _write_node(node: ast.AST, parts: list[str], numbers: dict[str, str]) -> None:
    # An annotated assignment is an assignment.
    kind = ast.Assign if isinstance(node, ast.AnnAssign) and node.value else type(node)
    parts.append(f"{kind.__name__}(")
    for name in node._fields:
        value = getattr(node, name)
        if name in _LEFT_OUT:
            continue
        if name in ("id", "arg", "name") and value not in _FIXED:
            value = numbers.setdefault(value, f"_{len(numbers)}")
        elif name == "body" and isinstance(node, ast.Module | ast.FunctionDef):
            value = _told(node.body)
        elif name == "target" and kind is ast.Assign:
            value = [value]
        _write(value, parts, numbers)
    parts.append(")")


def _told(body: list[ast.stmt]) -> list[ast.stmt]:
    first = body[0].value if body and isinstance(body[0], ast.Expr) else None
    is_docstring = isinstance(first, ast.Constant) and isinstance(first.value, str)
    return [each for each in body[is_docstring:] if not isinstance(each, _IMPORTS)]
