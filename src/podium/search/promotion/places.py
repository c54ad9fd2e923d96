"""Finds the parts of a program by their place in its syntax tree, and puts others there."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from podium.search.candidate.constants import number_of

Place = tuple[tuple[str, int | None], ...]
"""Leads from a tree to one of its nodes: fields, with an index where they are lists."""

Replacement = ast.AST | list[ast.stmt]
"""A list takes the place of a statement."""

_KEPT = {ast.Call: ("func",), ast.Subscript: ("value", "slice"), ast.For: ("target", "iter")}
"""What is not looked into: what is called, slots, and what loops run over."""


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


def is_protected(node: ast.AST, parent: ast.AST) -> bool:
    """Tells whether a divisor is kept above 0, maybe for nodes that no training case has."""
    if not isinstance(parent, ast.BinOp) or parent.right is not node:
        return False
    is_divided = isinstance(parent.op, ast.Div | ast.FloorDiv | ast.Mod)
    if not is_divided or not isinstance(node, ast.Call) or getattr(node.func, "id", "") != "max":
        return False
    return any((number_of(each) or 0.0) > 0 for each in node.args)
