"""Recognises candidates that compute the same and only look different."""

from __future__ import annotations

import ast
import copy
import hashlib

from podium.search.vocabulary import BUILTINS, RESERVED

_FIXED = RESERVED | BUILTINS | {"score", "gpu"}


def fingerprint(tree: ast.Module) -> str:
    """Digests a syntax tree without its docstrings, layout, annotations and chosen names."""
    renamed = _Renamer().visit(copy.deepcopy(tree))
    return hashlib.sha256(ast.dump(renamed).encode()).hexdigest()


class _Renamer(ast.NodeTransformer):
    """Numbers names in order of appearance."""

    def __init__(self) -> None:
        self._numbers: dict[str, str] = {}

    def visit_Module(self, node: ast.Module) -> ast.Module:
        """Leaves imports out: what is used says enough."""
        node.body = [
            each for each in node.body if not isinstance(each, ast.Import | ast.ImportFrom)
        ]
        self._drop_docstring(node)
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        """Leaves the docstring and what is said of types out."""
        node.name = self._new(node.name)
        node.returns = None
        self._drop_docstring(node)
        return node

    def visit_arg(self, node: ast.arg) -> ast.arg:
        """Renames an argument."""
        return ast.arg(self._new(node.arg))

    def visit_Name(self, node: ast.Name) -> ast.Name:
        """Renames a name."""
        return ast.Name(self._new(node.id), node.ctx)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        """Reads an annotated assignment as a plain one."""
        self.generic_visit(node)
        if node.value is None:
            return node
        return ast.Assign([node.target], node.value)

    def _drop_docstring(self, node: ast.Module | ast.FunctionDef) -> None:
        first = node.body[0] if node.body else None
        value = first.value if isinstance(first, ast.Expr) else None
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            node.body = node.body[1:]
        self.generic_visit(node)

    def _new(self, name: str) -> str:
        if name in _FIXED:
            return name
        return self._numbers.setdefault(name, f"_{len(self._numbers)}")
