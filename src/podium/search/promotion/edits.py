"""Lists the ways in which a program can be made smaller by one cut."""

from __future__ import annotations

import ast
import pickle
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from podium.search.promotion.places import Place, Replacement, is_protected, part_at, places, put
from podium.search.promotion.tidying import tidied

_LOGICAL = (ast.Compare, ast.BoolOp)
_NUMERIC = (ast.BinOp, ast.Name, ast.Call, ast.IfExp, ast.Attribute, ast.Subscript)

Key = tuple[str, str, int]
"""Recognises a cut in another version of the program: from, to, and which of such cuts it is."""


@dataclass(frozen=True, slots=True, eq=False)
class Edit:
    """Names one cut: what takes the place of what."""

    key: Key
    place: Place
    replacement: Replacement
    saved: int  # parts that go at once; what nothing reads any more goes too

    @property
    def told(self) -> str:
        """Says what is cut."""
        was, becomes, _ = self.key
        return f"{was} -> {becomes or 'nothing'}"


def edits(tree: ast.Module) -> list[Edit]:
    """Lists cuts, the largest first."""
    found: list[Edit] = []
    seen: Counter[tuple[str, str]] = Counter()
    defined = _defined(tree)
    for place, node in places(tree):
        if is_protected(node, part_at(tree, place[:-1])):
            continue
        for replacement in _replacements(node):
            pair = _shown(node), _shown(replacement)
            saved = _count(node) - _count(replacement) + defined.get(pair[0], 0)
            found.append(Edit((*pair, seen[pair]), place, replacement, saved))
            seen[pair] += 1
    return sorted(found, key=lambda edit: (-edit.saved, edit.key))


def without(tree: ast.Module, place: Place, replacement: Replacement) -> str:
    """Writes a program with another part in one place, and tidied up after that."""
    # Tidying changes nodes in place, and these are the original's.
    copy, part = pickle.loads(pickle.dumps((tree, replacement)))
    put(copy, place, part)
    return ast.unparse(tidied(copy)) + "\n"


def _defined(tree: ast.Module) -> dict[str, int]:
    """Counts the parts that give each name its value, for names that are read once."""
    read = Counter(
        n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)
    )
    found: Counter[str] = Counter()
    for _, node in places(tree):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            found[node.targets[0].id] += _count(node)
    return {name: count for name, count in found.items() if read[name] == 1}


def _count(part: Replacement) -> int:
    if isinstance(part, list):
        return sum(_count(each) for each in part)
    return sum(isinstance(node, ast.stmt | ast.expr) for node in ast.walk(part))


def _shown(part: Replacement) -> str:
    if isinstance(part, list):
        return "\n".join(ast.unparse(each) for each in part)
    return ast.unparse(part)


def _replacements(node: ast.AST) -> Iterator[Replacement]:
    listed = _SPECIAL.get(type(node))
    if listed is not None:
        yield from listed(node)
    if isinstance(node, _LOGICAL):
        yield from (ast.Constant(True), ast.Constant(False))
    elif isinstance(node, _NUMERIC) and getattr(node, "id", "") != "HOLD":
        yield from (ast.Constant(0), ast.Constant(1))


def _of_operation(node: ast.BinOp) -> Iterator[Replacement]:
    yield node.left
    if isinstance(node.op, ast.Add | ast.Mult):
        yield node.right
    elif isinstance(node.op, ast.Sub):
        yield ast.UnaryOp(ast.USub(), node.right)


def _of_junction(node: ast.BoolOp) -> Iterator[Replacement]:
    for index in range(len(node.values)):
        rest = [value for i, value in enumerate(node.values) if i != index]
        yield ast.BoolOp(node.op, rest) if len(rest) > 1 else rest[0]


def _of_choice(node: ast.IfExp) -> Iterator[Replacement]:
    yield node.body
    yield node.orelse


def _of_call(node: ast.Call) -> Iterator[Replacement]:
    if len(node.args) == 1 and not isinstance(node.args[0], ast.Attribute):
        yield node.args[0]
    elif isinstance(node.func, ast.Name) and node.func.id in ("max", "min"):
        for index in range(len(node.args)):
            rest = [each for i, each in enumerate(node.args) if i != index]
            yield ast.Call(node.func, rest, []) if len(rest) > 1 else rest[0]


def _of_branch(node: ast.If) -> Iterator[Replacement]:
    yield list(node.orelse)
    yield list(node.body)


def _of_statement(_node: ast.stmt) -> Iterator[Replacement]:
    yield []


_SPECIAL: dict[type[ast.AST], Callable[[Any], Iterator[Replacement]]] = {
    ast.BinOp: _of_operation,
    ast.BoolOp: _of_junction,
    ast.IfExp: _of_choice,
    ast.Call: _of_call,
    ast.If: _of_branch,
    ast.Assign: _of_statement,
    ast.AugAssign: _of_statement,
    ast.For: _of_statement,
    ast.While: _of_statement,
}
