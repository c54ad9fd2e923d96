"""Makes arithmetic mean the same in plain Python and in compiled code, to the bit.

Python calls the C library's `pow`, which may miss the nearest double by one unit; compilers
turn small powers into multiplications, roots, or powers of two. `math.hypot` is Python's own.
A policy's source is rewritten so that both do the same.
"""

from __future__ import annotations

import ast
import math

LARGEST_POWER = 64


def integer_power(base: float, exponent: int) -> float:
    """Multiplies by repeated squaring.

    >>> integer_power(3, 4), integer_power(2.0, -1)
    (81.0, 0.5)
    """
    result = 1.0
    square = base * 1.0
    remaining = abs(exponent)
    while remaining:
        if remaining & 1:
            result = result * square
        square = square * square
        remaining >>= 1
    return result if exponent >= 0 else 1.0 / result


def square_root(value: float) -> float:
    """Takes the correctly rounded square root."""
    return math.sqrt(value)


def power(base: float, exponent: float) -> float:
    """Calls the C library's pow; the zeros hide from compilers what they would put in its place.

    >>> power(2, 3), power(9, 0.5)
    (8.0, 3.0)
    """
    return (base + 0.0 * exponent) ** (exponent + 0.0)  # type: ignore[no-any-return]


def hypotenuse(one: float, other: float) -> float:
    """Takes the root of the sum of two squares.

    >>> hypotenuse(3, 4)
    5.0
    """
    return math.sqrt(one * one + other * other)


NAMES = {
    "_integer_power": integer_power,
    "_square_root": square_root,
    "_power": power,
    "_hypotenuse": hypotenuse,
}
"""What rewritten source refers to; goes into the policy's namespace."""

UNEQUAL = frozenset(["gamma", "lgamma"])
"""Functions of math that Python and compiled code round differently, and that stay so."""


class Rewriter(ast.NodeTransformer):
    """Replaces powers and hypotenuses by functions that mean one thing."""

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        """Rewrites `a ** b`, unless both are written as numbers."""
        self.generic_visit(node)
        if not isinstance(node.op, ast.Pow):
            return node
        if _number(node.left) is not None and _number(node.right) is not None:
            return node
        return _raised(node.left, node.right)

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        """Rewrites `a **= b`."""
        self.generic_visit(node)
        if not isinstance(node.op, ast.Pow) or not isinstance(node.target, ast.Name):
            return node
        base = ast.Name(node.target.id, ast.Load())
        return ast.Assign([node.target], _raised(base, node.value))

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Rewrites `pow(a, b)`, `math.pow(a, b)` and `math.hypot(a, b)`."""
        self.generic_visit(node)
        if len(node.args) != 2 or node.keywords:
            return node
        called = ast.unparse(node.func)
        if called in ("pow", "math.pow"):
            return _raised(*node.args)
        if called in ("hypot", "math.hypot"):
            return _call("_hypotenuse", *node.args)
        return node


def _raised(base: ast.expr, exponent: ast.expr) -> ast.Call:
    number = _number(exponent)
    if number == 0.5:
        return _call("_square_root", base)
    if number is not None and float(number).is_integer() and abs(number) <= LARGEST_POWER:
        return _call("_integer_power", base, ast.Constant(int(number)))
    return _call("_power", base, exponent)


def _number(node: ast.expr) -> float | None:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = _number(node.operand)
        return None if inner is None else -inner
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return node.value
    return None


def _call(name: str, *arguments: ast.expr) -> ast.Call:
    return ast.Call(ast.Name(name, ast.Load()), list(arguments), [])
