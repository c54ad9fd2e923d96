"""Lists the ways in which a program can be made smaller by one cut."""

from __future__ import annotations

import ast
import pickle
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from podium.search.constants import number_of
from podium.search.promotion.tidying import size, tidied

Place = tuple[tuple[str, int | None], ...]
"""Leads from a tree to one of its nodes: fields, with an index where they are lists."""

Replacement = ast.AST | list[ast.stmt]
"""A list takes the place of a statement."""

_KEPT = {ast.Call: ("func",), ast.Subscript: ("value", "slice"), ast.For: ("target", "iter")}
"""What is not looked into: what is called, slots, and what loops run over."""

_LOGICAL = (ast.Compare, ast.BoolOp)
_NUMERIC = (ast.BinOp, ast.Name, ast.Call, ast.IfExp, ast.Attribute, ast.Subscript)


@dataclass(frozen=True, slots=True, eq=False)
class Edit:
    """Holds one cut, and the whole program after it."""

    was: str
    becomes: str
    tree: ast.Module
    size: int

    @property
    def key(self) -> tuple[str, str]:
        """Recognises the same cut in another version of the program."""
        return self.was, self.becomes

    @property
    def text(self) -> str:
        """Writes the program after the cut."""
        return ast.unparse(self.tree) + "\n"


def edits(tree: ast.Module) -> list[Edit]:
    """Lists cuts that make a program smaller, each text once, the smallest first."""
    packed = pickle.dumps(tree)
    found: dict[str, Edit] = {}
    most = size(tree)
    for place, node in places(tree):
        if is_protected(node, part_at(tree, place[:-1])):
            continue
        for replacement in _replacements(node):
            edit = Edit(_shown(node), _shown(replacement), *_cut(packed, place, replacement))
            if edit.size < most:
                found.setdefault(ast.dump(edit.tree), edit)
    return sorted(found.values(), key=lambda edit: (edit.size, edit.key))


def is_protected(node: ast.AST, parent: ast.AST) -> bool:
    """Tells whether a divisor is kept above 0, maybe for nodes that no training case has."""
    if not isinstance(parent, ast.BinOp) or parent.right is not node:
        return False
    is_divided = isinstance(parent.op, ast.Div | ast.FloorDiv | ast.Mod)
    if not is_divided or not isinstance(node, ast.Call) or getattr(node.func, "id", "") != "max":
        return False
    return any((number_of(each) or 0.0) > 0 for each in node.args)


def without(tree: ast.Module, place: Place, replacement: Replacement) -> str:
    """Writes a program with another part in one place."""
    cut, _ = _cut(pickle.dumps(tree), place, replacement)
    return ast.unparse(cut) + "\n"


def places(tree: ast.Module) -> Iterator[tuple[Place, ast.AST]]:
    """Visits the statements and expressions of functions, except what is prepared before a run."""
    for index, function in enumerate(tree.body):
        if isinstance(function, ast.FunctionDef) and function.name != "prepare":
            for number, statement in enumerate(function.body):
                yield from _within((("body", index), ("body", number)), statement)


def _within(place: Place, node: ast.AST) -> Iterator[tuple[Place, ast.AST]]:
    yield place, node
    for name, value in ast.iter_fields(node):
        is_assigned = name in ("targets", "target", "annotation", "keywords", "ctx", "op", "ops")
        if is_assigned or name in _KEPT.get(type(node), ()):
            continue
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow) and name == "right":
            continue
        for step, child in _children(name, value):
            yield from _within((*place, step), child)


def _children(name: str, value: object) -> list[tuple[tuple[str, int | None], ast.AST]]:
    if isinstance(value, ast.AST):
        return [((name, None), value)]
    if not isinstance(value, list):
        return []
    return [((name, i), each) for i, each in enumerate(value) if isinstance(each, ast.AST)]


def part_at(tree: ast.AST, place: Place) -> Any:
    """Finds the node that a place leads to."""
    for name, index in place:
        tree = getattr(tree, name) if index is None else getattr(tree, name)[index]
    return tree


def put(tree: ast.Module, place: Place, replacement: Replacement) -> None:
    """Puts something else in a place, in the tree itself."""
    parent = part_at(tree, place[:-1])
    name, index = place[-1]
    if index is None:
        setattr(parent, name, replacement)
        return
    block = getattr(parent, name)
    block[index : index + 1] = replacement if isinstance(replacement, list) else [replacement]
    if name == "body" and not block:
        block.append(ast.Pass())


def _cut(packed: bytes, place: Place, replacement: Replacement) -> tuple[ast.Module, int]:
    tree: ast.Module = pickle.loads(packed)
    # Tidying changes nodes in place, and these are the original's.
    put(tree, place, pickle.loads(pickle.dumps(replacement)))
    tree = tidied(tree)
    return tree, size(tree)


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
