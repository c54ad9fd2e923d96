"""Checks a candidate's syntax tree against what a score function needs, and nothing more.

Stricter than purity: whatever is not listed is refused, so that a candidate can reach no file,
no environment and no attribute but the fields of its two records.
"""

from __future__ import annotations

import ast

from podium.search import vocabulary
from podium.search.bounds import bound_problems
from podium.search.calls import call_problems
from podium.search.constants import declared_call
from podium.search.constructs import (
    Problem,
    Problems,
    annotation_problems,
    expression_problem,
    shortened,
    target_problems,
    walk_problems,
)
from podium.search.syntax import walked
from podium.search.vocabulary import RECORDS, RESERVED, said

_CONSTANT_PARTS = (
    ast.BinOp, ast.UnaryOp, ast.Tuple, ast.Name, ast.Constant, *vocabulary.OPERATORS
)  # fmt: skip


def problems(tree: ast.Module) -> list[Problem]:
    """Lists (line, reason) for everything that a candidate may not contain, by line."""
    found = list(bound_problems(tree))
    if found:  # what is too large is not looked into
        return found[:1]
    found += _module_problems(tree)
    at_top = _names_at_top(tree)
    for function in functions(tree).values():
        found += _function_problems(function, at_top)
    found += call_problems(tree)
    return sorted(set(found))


def functions(tree: ast.Module) -> dict[str, ast.FunctionDef]:
    """Finds the functions at the top of a file."""
    return {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}


def is_docstring(statement: ast.stmt, body: list[ast.stmt]) -> bool:
    """Tells whether a statement documents the body that it opens."""
    if statement is not body[0] or not isinstance(statement, ast.Expr):
        return False
    return isinstance(statement.value, ast.Constant) and isinstance(statement.value.value, str)


def _module_problems(tree: ast.Module) -> Problems:
    known = _names_at_top(tree) - functions(tree).keys() - {"math", "tunable"}
    for statement in tree.body:
        if isinstance(statement, ast.Import | ast.ImportFrom):
            yield from _import_problems(statement)
        elif isinstance(statement, ast.Assign):
            yield from _constant_problems(statement, known)
        elif not isinstance(statement, ast.FunctionDef) and not is_docstring(statement, tree.body):
            yield statement.lineno, _not_at_top(statement)


def _not_at_top(statement: ast.stmt) -> str:
    return (
        f"uses {said(statement)} at the top of the file; only a docstring, imports of math and of "
        "HOLD and tunable, constants and functions stand there"
    )


def _import_problems(statement: ast.Import | ast.ImportFrom) -> Problems:
    names = {alias.name for alias in statement.names}
    module = statement.module if isinstance(statement, ast.ImportFrom) else None
    is_plain = not any(alias.asname for alias in statement.names)
    is_math = isinstance(statement, ast.Import) and names == {"math"}
    known = vocabulary.IMPORTS.get(module or "", frozenset())
    is_own = names <= known and getattr(statement, "level", 0) == 0 and module in vocabulary.IMPORTS
    if not (is_plain and (is_math or is_own)):
        yield (
            statement.lineno,
            f"`{shortened(statement)}`; a candidate imports nothing but `import math` and "
            "`from podium.policies import HOLD, tunable`",
        )


def _constant_problems(statement: ast.Assign, known: set[str]) -> Problems:
    yield from target_problems(statement.targets)
    if declared_call(statement):
        return
    for node in walked(statement.value):
        if isinstance(node, ast.Name) and node.id not in known:
            yield node.lineno, f"uses {node.id}, which is defined nowhere and is not allowed"
        elif isinstance(node, _CONSTANT_PARTS):
            yield from expression_problem(node, statement)
        elif not isinstance(node, ast.expr_context):
            yield (
                statement.lineno,
                f"sets a constant to `{shortened(statement.value)}`; constants are numbers, tuples "
                "of numbers, or tunable(value, low, high)",
            )
            return


def _function_problems(function: ast.FunctionDef, at_top: set[str]) -> Problems:
    yield from _signature_problems(function)
    arguments = {argument.arg for argument in function.args.args}
    known = arguments | _stored(function) | at_top | vocabulary.BUILTINS | {"range"}
    for statement in function.body:
        if not is_docstring(statement, function.body):
            yield from walk_problems(statement, known)


def _signature_problems(function: ast.FunctionDef) -> Problems:
    line, given = function.lineno, function.args
    if function.name in RESERVED or function.name.startswith("_"):
        yield line, f"names a function {function.name}, which is reserved"
    if function.decorator_list:
        yield line, "uses a decorator; define plain functions"
    special = (given.vararg, given.kwarg, *given.kwonlyargs, *given.posonlyargs, *given.defaults)
    if any(special):
        yield line, f"{function.name} takes more than plain arguments; no defaults, * or **"
    for argument in given.args:
        if argument.arg in RESERVED - RECORDS.keys() or argument.arg.startswith("_"):
            yield line, f"names an argument {argument.arg}, which is reserved"
        yield from annotation_problems(argument.annotation)
    yield from annotation_problems(function.returns)


def _stored(part: ast.AST) -> set[str]:
    return {
        node.id
        for node in walked(part)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }


def _names_at_top(tree: ast.Module) -> set[str]:
    names = set(functions(tree))
    for statement in tree.body:
        if isinstance(statement, ast.Assign):
            names |= _stored(statement)
        if isinstance(statement, ast.Import | ast.ImportFrom):
            names |= {alias.name for alias in statement.names}
    return names
