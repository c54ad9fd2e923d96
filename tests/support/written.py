"""Runs a policy's text in Python itself, as it is written, and says what it scores.

Only what docs/policies.md names as an exception is taken from Podium: powers, `math.hypot`, and the
sign of zero.
"""

from __future__ import annotations

import ast
import math
from types import SimpleNamespace

from podium.policies.language.arithmetic import hypotenuse, power, signed, turned


def written(text):
    """Defines what a text defines; its score function is that of Python."""
    tree = ast.parse(text)
    tree = ast.fix_missing_locations(_Powers(tree).visit(tree))
    own = {"hypot": hypotenuse, "copysign": signed, "atan2": turned, "pow": power}
    names = {
        "math": SimpleNamespace(**{**vars(math), **own}),
        "pow": power,
        "power of Podium": power,
        "folded of Podium": folded,
    }
    exec(compile(tree, "written", "exec", dont_inherit=True), names)
    return names


def folded(base, exponent):
    """Raises a constant to a constant power; whole numbers stay whole."""
    is_whole = isinstance(base, int) and isinstance(exponent, int) and exponent >= 0
    return base**exponent if is_whole else power(base, exponent)


class _Powers(ast.NodeTransformer):
    """Calls Podium's powers; those at the top of the file are Python's own."""

    def __init__(self, tree):
        self.constants = {name for each in tree.body for name in _set(each)}
        self.own = None  # names of the function that it is in

    def visit_FunctionDef(self, node):
        self.own = {argument.arg for argument in node.args.args} | set(_set(node, inside=True))
        self.generic_visit(node)
        self.own = None
        return node

    def visit_BinOp(self, node):
        is_inside = self.own is not None
        is_constant = is_inside and all(map(self.is_constant, (node.left, node.right)))
        self.generic_visit(node)
        if not isinstance(node.op, ast.Pow) or not is_inside:
            return node
        name = ast.Name(f"{'folded' if is_constant else 'power'} of Podium", ast.Load())
        return ast.Call(name, [node.left, node.right], [])

    def visit_AugAssign(self, node):
        self.generic_visit(node)
        if not isinstance(node.op, ast.Pow):
            return node
        read = ast.Name(node.target.id, ast.Load())
        call = ast.Call(ast.Name("power of Podium", ast.Load()), [read, node.value], [])
        return ast.Assign([node.target], call)

    def visit_Import(self, node):
        return None if node.names[0].name == "math" else node

    def is_constant(self, node):
        if isinstance(node, ast.UnaryOp):
            return self.is_constant(node.operand)
        if isinstance(node, ast.Name):
            return node.id in self.constants and node.id not in self.own
        return isinstance(node, ast.Constant)


def _set(statement, *, inside=False):
    if isinstance(statement, ast.FunctionDef) and not inside:
        return []
    parts = [each for each in ast.walk(statement) if isinstance(each, ast.Name)]
    return [each.id for each in parts if isinstance(each.ctx, ast.Store)]
