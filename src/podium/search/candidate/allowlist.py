"""Checks a candidate's syntax tree against what a score function needs, and nothing more.

Stricter than purity: whatever is not listed is refused, so a candidate can reach no file,
no environment and no attribute but the fields of its two records.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator
from dataclasses import dataclass

from podium.errors import PolicyError
from podium.policies.language.translation import circular
from podium.search.candidate import vocabulary
from podium.search.candidate.constants import (
    Value,
    declared_call,
    number_of,
    read_constants,
    value_of,
)
from podium.search.candidate.constructs import (
    Problem,
    Problems,
    annotation_problems,
    expression_problem,
    shortened,
    target_problems,
    walk_problems,
)
from podium.search.candidate.text import children, walked
from podium.search.candidate.vocabulary import BUILTINS, RECORDS, RESERVED, said


def bound_problems(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yields (line, reason) for what is too large to be checked further."""
    count = 0
    waiting: list[tuple[ast.AST, _Depth, int]] = [(tree, _Depth(), 1)]
    while waiting:
        node, depth, line = waiting.pop()
        line = int(getattr(node, "lineno", line))
        count += 1
        reason = _reason(node, depth)
        if reason:
            yield line, reason
            return
        waiting += [(child, depth.of(node, child), line) for child in children(node)]
    if count > vocabulary.MOST_NODES:
        yield 1, f"has {count:,} parts; {vocabulary.MOST_NODES:,} at most"


@dataclass(frozen=True, slots=True)
class _Depth:
    levels: int = 0
    loops: int = 0
    choices: int = 0

    def of(self, node: ast.AST, child: ast.AST) -> _Depth:
        """Counts one level more, but for an `if` within another.

        An elif is an if within the else of another: a person reads a chain of them as flat.
        """
        is_choice = isinstance(node, ast.If) and isinstance(child, ast.If)
        return _Depth(
            self.levels + (not is_choice),
            self.loops + isinstance(child, ast.For | ast.While),
            self.choices + is_choice,
        )


def _reason(node: ast.AST, depth: _Depth) -> str:
    if depth.levels > vocabulary.DEEPEST:
        return f"is nested deeper than {vocabulary.DEEPEST} levels"
    if depth.loops > vocabulary.DEEPEST_LOOPS:
        return f"nests more than {vocabulary.DEEPEST_LOOPS} loops"
    if depth.choices > vocabulary.LONGEST_CHOICE:
        return f"goes on with elif more than {vocabulary.LONGEST_CHOICE} times"
    if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "range":
        longest = max((abs(number_of(each) or 0.0) for each in node.args), default=0.0)
        if longest > vocabulary.LONGEST_RANGE:
            return f"loops over a range of {longest:g}; {vocabulary.LONGEST_RANGE:,} at most"
    return ""


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
    """Returns whether a statement documents the body that it opens."""
    if statement is not body[0] or not isinstance(statement, ast.Expr):
        return False
    return isinstance(statement.value, ast.Constant) and isinstance(statement.value.value, str)


def _module_problems(tree: ast.Module) -> Problems:
    known = _names_at_top(tree) - functions(tree).keys() - {"math", "tunable"}
    values: dict[str, Value] = {"HOLD": -math.inf}
    for statement in tree.body:
        if isinstance(statement, ast.Import | ast.ImportFrom):
            yield from _import_problems(statement)
        elif isinstance(statement, ast.Assign):
            found = list(_constant_problems(statement, known))
            yield from found or _value_problems(statement, values)
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


def _value_problems(statement: ast.Assign, values: dict[str, Value]) -> Problems:
    """Computes a constant, so that nobody who loads the candidate computes what has no end."""
    declared = declared_call(statement)
    try:
        value = (
            number_of(declared[1].args[0]) or 0.0
            if declared and declared[1].args
            else value_of(statement.value, values)
        )
    except PolicyError as error:
        yield statement.lineno, error.message
        return
    for target in statement.targets:
        if isinstance(target, ast.Name):
            values[target.id] = value
            continue
        names = [each.id for each in getattr(target, "elts", ()) if isinstance(each, ast.Name)]
        if not isinstance(value, tuple) or len(names) != len(value):
            yield statement.lineno, f"does not unpack into `{shortened(target)}`"
        else:
            values |= dict(zip(names, value, strict=True))


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
