"""Makes powers mean the same in plain Python and in compiled code, to the bit.

Python calls the C library's `pow`, which may miss the nearest double by one unit; compilers
turn small powers into multiplications. A policy's source is rewritten so that both multiply.
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


NAMES = {"_integer_power": integer_power, "_square_root": square_root}
"""What rewritten source refers to; goes into the policy's namespace."""


class PowerRewriter(ast.NodeTransformer):
    """Replaces powers with a whole exponent by multiplication, and ** 0.5 by a square root."""

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:  # noqa: N802 - the name that ast calls
        """Rewrites one power."""
        self.generic_visit(node)
        exponent = _number(node.right) if isinstance(node.op, ast.Pow) else None
        if exponent is None or _number(node.left) is not None:
            return node
        if exponent == 0.5:
            return _call("_square_root", node.left)
        if float(exponent).is_integer() and abs(exponent) <= LARGEST_POWER:
            return _call("_integer_power", node.left, ast.Constant(int(exponent)))
        return node


def _number(node: ast.expr) -> float | None:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = _number(node.operand)
        return None if inner is None else -inner
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return node.value
    return None


def _call(name: str, *arguments: ast.expr) -> ast.Call:
    return ast.Call(ast.Name(name, ast.Load()), list(arguments), [])
