"""Checks what a candidate calls: listed functions, its own without recursion, plain arguments."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from podium.errors import PolicyError
from podium.policies.language.translation import circular
from podium.search.constants import declared_call, read_constants
from podium.search.syntax import walked
from podium.search.vocabulary import BUILTINS, RECORDS

Problems = Iterator[tuple[int, str]]


def call_problems(tree: ast.Module) -> Problems:
    """Yields (line, reason) for calls that are not allowed."""
    own = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    yield from _declaration_problems(tree)
    yield from _binding_problems(tree, {*own, "math", "tunable"})
    calls = {name: _calls_in(function) for name, function in own.items()}
    for each in calls.values():
        for call in each:
            yield from _one_call(call, own)
    yield from _recursion_problems(own, calls)


def _declaration_problems(tree: ast.Module) -> Problems:
    for statement in tree.body:
        if not declared_call(statement):
            continue
        try:
            read_constants(ast.unparse(statement))
        except PolicyError as error:
            yield statement.lineno, f"{error.message}; {error.hint}"


def _binding_problems(tree: ast.Module, fixed: set[str]) -> Problems:
    """Refuses functions as values, and their names for anything else."""
    defined: set[str] = set()
    for statement in tree.body:
        if isinstance(statement, ast.FunctionDef):
            if statement.name in defined:
                yield statement.lineno, f"defines {statement.name}() twice"
            defined.add(statement.name)
    nodes = walked(tree)
    used = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
    used |= {id(node.value) for node in nodes if isinstance(node, ast.Attribute)}
    for node in nodes:
        if isinstance(node, ast.arg) and node.arg in fixed:
            yield node.lineno, f"names an argument {node.arg}, which is a function's name"
        elif not isinstance(node, ast.Name) or node.id not in fixed:
            continue
        elif not isinstance(node.ctx, ast.Load):
            yield node.lineno, f"assigns to {node.id}, which is a function's name"
        elif id(node) not in used:
            yield node.lineno, f"uses {node.id} without calling it"


def _one_call(call: ast.Call, own: dict[str, ast.FunctionDef]) -> Problems:
    if call.keywords or any(isinstance(each, ast.Starred) for each in call.args):
        yield call.lineno, "calls with named or starred arguments; give plain arguments"
    if isinstance(call.func, ast.Attribute):
        is_math = isinstance(call.func.value, ast.Name) and call.func.value.id == "math"
        if not is_math:
            yield call.lineno, f"calls the method .{call.func.attr}(); only functions of math"
    elif not isinstance(call.func, ast.Name):
        yield call.lineno, "calls the result of an expression"
    elif call.func.id in own:
        yield from _own_call(call, own[call.func.id])
    elif call.func.id not in BUILTINS | {"range"}:
        yield call.lineno, f"calls {call.func.id}(); allowed are {', '.join(sorted(BUILTINS))}"
    if not (isinstance(call.func, ast.Name) and call.func.id in own):
        yield from _record_arguments(call)


def _own_call(call: ast.Call, function: ast.FunctionDef) -> Problems:
    names = [argument.arg for argument in function.args.args]
    if len(call.args) != len(names):
        counts = f"{len(call.args)} arguments, it takes {len(names)}"
        yield call.lineno, f"calls {function.name}() with {counts}"
    for name, given in zip(names, call.args, strict=False):
        record = given.id if isinstance(given, ast.Name) and given.id in RECORDS else ""
        if (name in RECORDS or record) and name != record:
            yield call.lineno, f"gives {function.name}() a record under another name than its own"


def _record_arguments(call: ast.Call) -> Problems:
    for given in call.args:
        if isinstance(given, ast.Name) and given.id in RECORDS:
            yield call.lineno, f"uses the record {given.id} itself; read one of its fields"


def _recursion_problems(
    own: dict[str, ast.FunctionDef], calls: dict[str, list[ast.Call]]
) -> Problems:
    for name in circular({name: _called(each) & own.keys() for name, each in calls.items()}):
        yield own[name].lineno, f"{name}() calls itself, directly or through others; use a loop"


def _calls_in(function: ast.FunctionDef) -> list[ast.Call]:
    return [node for node in walked(function) if isinstance(node, ast.Call)]


def _called(calls: list[ast.Call]) -> set[str]:
    return {call.func.id for call in calls if isinstance(call.func, ast.Name)}
