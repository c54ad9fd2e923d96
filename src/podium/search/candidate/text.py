"""Parses a candidate's text, walks its syntax tree, and measures and fingerprints it."""

from __future__ import annotations

import ast
import hashlib
import threading
from dataclasses import dataclass

from podium.search.candidate.vocabulary import RESERVED

_TURN = threading.Lock()


def parse_text(text: str, path: str = "<unknown>") -> ast.Module:
    """Parses a text as `ast.parse` does, one thread at a time.

    CPython 3.11 up to 3.11.7 counts the depth of trees for all threads together, and fails with
    a SystemError when they mix (python/cpython#106905).
    """
    with _TURN:
        return ast.parse(text, path)


def children(node: ast.AST) -> list[ast.AST]:
    """Lists what a node holds, as `ast.iter_child_nodes` does."""
    found: list[ast.AST] = []
    for name in node._fields:
        value = getattr(node, name, None)
        if isinstance(value, list):
            found += [each for each in value if isinstance(each, ast.AST)]
        elif isinstance(value, ast.AST):
            found.append(value)
    return found


def walked(node: ast.AST) -> list[ast.AST]:
    """Lists a node and all that it holds, as `ast.walk` does.

    >>> [type(each).__name__ for each in walked(ast.parse("a = -1"))]
    ['Module', 'Assign', 'Name', 'UnaryOp', 'Store', 'USub', 'Constant']
    """
    found = [node]
    for each in found:  # grows while it is walked through
        found += children(each)
    return found


_FREE = (ast.expr_context, ast.arguments, ast.arg, ast.Import, ast.ImportFrom, ast.alias)
"""Parts of a syntax tree that are not counted: every candidate has them, or nobody reads them."""


def complexity_of(text: str) -> int:
    r"""Counts the parts of a text's syntax tree; comments and docstrings are free.

    >>> complexity_of("def score(pod, node):\n    return -node.cpu_milli_left")
    6
    """
    return complexity(parse_text(text))


def complexity(tree: ast.Module) -> int:
    """Counts the parts of a syntax tree as `complexity_of` does."""
    return sum(not isinstance(node, _FREE) for node in _walk(tree))


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


_FIXED = RESERVED | {"score", "gpu"}
_LEFT_OUT = frozenset(
    ["annotation", "ctx", "kind", "returns", "simple", "type_comment", "type_ignores"]
)
_IMPORTS = (ast.Import, ast.ImportFrom)


def fingerprint(tree: ast.Module) -> str:
    """Digests a syntax tree without its docstrings, layout, annotations and chosen names."""
    parts: list[str] = []
    numbers: dict[str, str] = {}
    waiting: list[object] = [tree]
    while waiting:  # a chain of elif is deeper than functions may call one another
        node = waiting.pop()
        if isinstance(node, _Words):
            parts.append(node.text)
        elif isinstance(node, _Chosen):
            parts.append(f"{numbers.setdefault(node.name, f'_{len(numbers)}')!r},")
        elif isinstance(node, ast.AST):
            waiting += reversed(_written(node))
        elif isinstance(node, list):
            waiting += [_Words("]"), *reversed(node), _Words("[")]
        else:
            parts.append(f"{node!r},")
    return hashlib.sha256("".join(parts).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class _Words:
    text: str  # written as it is


@dataclass(frozen=True, slots=True)
class _Chosen:
    name: str  # written as a number, by first appearance


def _written(node: ast.AST) -> list[object]:
    # An annotated assignment is an assignment.
    kind = ast.Assign if isinstance(node, ast.AnnAssign) and node.value else type(node)
    found: list[object] = [_Words(f"{kind.__name__}(")]
    for name in node._fields:
        value = getattr(node, name)
        if name in _LEFT_OUT:
            continue
        if name in ("id", "arg", "name") and value not in _FIXED:
            value = _Chosen(value)
        elif name == "body" and isinstance(node, ast.Module | ast.FunctionDef):
            value = _told(node.body)
        elif name == "target" and kind is ast.Assign:
            value = [value]
        found.append(value)
    return [*found, _Words(")")]


def _told(body: list[ast.stmt]) -> list[ast.stmt]:
    first = body[0].value if body and isinstance(body[0], ast.Expr) else None
    is_docstring = isinstance(first, ast.Constant) and isinstance(first.value, str)
    return [each for each in body[is_docstring:] if not isinstance(each, _IMPORTS)]
