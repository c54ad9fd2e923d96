"""Computes what a syntax tree says about numbers alone, and drops what cannot matter."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable
from typing import Any

from podium.search.candidate.constants import number_of
from podium.search.candidate.vocabulary import LARGEST_INTEGER

_BINARY: dict[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul,
    ast.Div: operator.truediv, ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod,
}  # fmt: skip
_COMPARED: dict[type[ast.AST], Callable[[Any, Any], bool]] = {
    ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge,
    ast.Eq: operator.eq, ast.NotEq: operator.ne,
}  # fmt: skip
_CALLS: dict[str, Callable[..., Any]] = {"abs": abs, "int": int, "max": max, "min": min}


def written(value: float) -> ast.expr:
    """Writes a number as Python reads it: a negative one is the negation of another."""
    if isinstance(value, bool) or value >= 0:
        return ast.Constant(value)
    return ast.UnaryOp(ast.USub(), ast.Constant(-value))


def plain_number(node: ast.expr) -> float | None:
    """Reads a number with its type: 1 is not 1.0."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = plain_number(node.operand)
        return None if inner is None else -inner
    return node.value if number_of(node) is not None and isinstance(node, ast.Constant) else None  # type: ignore[return-value]


def truth(node: ast.expr) -> bool | None:
    """Reads True or False as written."""
    is_truth = isinstance(node, ast.Constant) and isinstance(node.value, bool)
    return bool(node.value) if is_truth and isinstance(node, ast.Constant) else None


class Folder(ast.NodeTransformer):
    """Folds a tree in place."""

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        """Computes with numbers, and leaves out neutral ones."""
        self.generic_visit(node)
        left, right = plain_number(node.left), plain_number(node.right)
        compute = _BINARY.get(type(node.op))
        if left is not None and right is not None and compute is not None:
            return _computed(node, compute, left, right)
        return _without_neutral(node, left, right)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        """Joins signs, and negates truths."""
        self.generic_visit(node)
        operand = node.operand
        if isinstance(node.op, ast.UAdd):
            return operand
        if isinstance(node.op, ast.USub):
            is_twice = isinstance(operand, ast.UnaryOp) and isinstance(operand.op, ast.USub)
            if plain_number(operand) == 0 and not is_twice:
                return operand
            return operand.operand if isinstance(operand, ast.UnaryOp) and is_twice else node
        value = truth(operand)
        is_negated = isinstance(node.op, ast.Not) and value is not None
        return ast.Constant(not value) if is_negated else node

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        """Compares numbers."""
        self.generic_visit(node)
        left, right = plain_number(node.left), plain_number(node.comparators[0])
        compare = _COMPARED.get(type(node.ops[0]))
        if len(node.ops) > 1 or left is None or right is None or compare is None:
            return node
        return ast.Constant(compare(left, right))

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        """Leaves out conditions that are no conditions."""
        self.generic_visit(node)
        neutral = isinstance(node.op, ast.And)
        if any(truth(value) == (not neutral) for value in node.values):
            return ast.Constant(not neutral)
        node.values = [value for value in node.values if truth(value) is None]
        if not node.values:
            return ast.Constant(neutral)
        return node if len(node.values) > 1 else node.values[0]

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        """Takes the branch that is always taken."""
        self.generic_visit(node)
        value = truth(node.test)
        if value is None and ast.dump(node.body) != ast.dump(node.orelse):
            return node
        return node.orelse if value is False else node.body

    def visit_Call(self, node: ast.Call) -> ast.expr:
        """Computes with numbers, and leaves out repeated arguments."""
        self.generic_visit(node)
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if name in ("max", "min") and not _is_list(node):
            node.args = list({ast.dump(each): each for each in node.args}.values())
            if len(node.args) == 1:
                return node.args[0]
        numbers = [plain_number(each) for each in node.args]
        if name not in _CALLS or None in numbers or not numbers:
            return node
        return _computed(node, _CALLS[name], *numbers)

    def visit_If(self, node: ast.If) -> ast.stmt | list[ast.stmt]:
        """Takes the branch that is always taken, and drops a choice between equals."""
        self.generic_visit(node)
        value = truth(node.test)
        if value is None and _dumped(node.body) != _dumped(node.orelse):
            return node
        return node.orelse if value is False else node.body


def _dumped(body: list[ast.stmt]) -> list[str]:
    return [ast.dump(each) for each in body]


def _is_list(call: ast.Call) -> bool:
    return len(call.args) == 1 and isinstance(call.args[0], ast.Attribute)


def _computed(node: ast.expr, compute: Callable[..., Any], *numbers: float | None) -> ast.expr:
    try:
        value = compute(*numbers)
    except (ArithmeticError, ValueError):
        return node
    if not math.isfinite(value) or abs(value) > LARGEST_INTEGER:
        return node
    return written(value)


def _without_neutral(node: ast.BinOp, left: float | None, right: float | None) -> ast.expr:
    if isinstance(node.op, ast.Add) and 0 in (left, right):
        return node.right if left == 0 else node.left
    if isinstance(node.op, ast.Sub) and 0 in (left, right):
        return node.left if right == 0 else ast.UnaryOp(ast.USub(), node.right)
    if isinstance(node.op, ast.Mult) and 0 in (left, right):
        return ast.Constant(0)
    if isinstance(node.op, ast.Mult) and 1 in (left, right):
        return node.right if left == 1 else node.left
    if isinstance(node.op, ast.Div) and (left == 0 or right == 1):
        return node.left
    return node.left if isinstance(node.op, ast.Pow) and right == 1 else node
