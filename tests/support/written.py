"""Runs a policy's text in Python itself, as it is written, and says what it scores.

Only what docs/policies.md names as an exception is taken from Podium: powers of fractional numbers,
`math.hypot`, and the sign of zero.
"""

from __future__ import annotations

import ast
import math
from types import SimpleNamespace

from podium.policies.language.arithmetic import hypotenuse, power, signed, turned


def written(text):
    """Defines what a text defines; its score function is that of Python."""
    tree = ast.parse(text)
    tree = ast.fix_missing_locations(_Powers().visit(tree))
    own = {"hypot": hypotenuse, "copysign": signed, "atan2": turned, "pow": power}
    names = {
        "math": SimpleNamespace(**{**vars(math), **own}),
        "pow": raised,
        "power of Podium": raised,
    }
    exec(compile(tree, "written", "exec", dont_inherit=True), names)
    return names


def raised(base, exponent):
    """Raises to a power: whole numbers as Python does, others as Podium does."""
    is_whole = isinstance(base, int) and isinstance(exponent, int) and exponent >= 0
    return base**exponent if is_whole else power(base, exponent)


class _Powers(ast.NodeTransformer):
    """Calls Podium's powers; those at the top of the file are Python's own."""

    def __init__(self):
        self.is_inside = False

    def visit_FunctionDef(self, node):
        self.is_inside = True
        self.generic_visit(node)
        self.is_inside = False
        return node

    def visit_BinOp(self, node):
        self.generic_visit(node)
        if not isinstance(node.op, ast.Pow) or not self.is_inside:
            return node
        name = ast.Name("power of Podium", ast.Load())
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
