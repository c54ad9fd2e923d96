"""Writes a candidate as the clean policy file that ships."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from podium.errors import PolicyError
from podium.policies.language.literal import comment, literal
from podium.policies.language.literal import docstring as docstring_lines
from podium.search.candidate.allowlist import is_docstring
from podium.search.program.layout import INDENT, WIDTH, statement_lines
from podium.search.program.reader import parse
from podium.search.program.writer import write
from podium.search.promotion.naming import Named, name_numbers
from podium.search.promotion.wording import expression_of

_SCORE = "def score("


def policy_texts(text: str, docstring: str) -> Iterator[str]:
    """Writes a program with its numbers named and commented, the most readable way first.

    That way leaves sums and products in another order at times, and so may round otherwise.
    """
    tree, numbers = name_numbers(text)
    _drop_docstrings(tree)
    head = "\n".join(_head(tree, numbers, docstring))
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    bred = _bred(tree, numbers) if len(functions) == 1 else []
    plain = [line for function in functions for line in ("", "", *_plain(function))]
    for body in (["", "", *bred] if bred else [], plain):
        if body:
            yield "\n".join([head, *body]) + "\n"


def _drop_docstrings(tree: ast.Module) -> None:
    """Leaves out what a candidate says of itself: a file that ships tells what was measured."""
    for each in ast.walk(tree):
        if isinstance(each, ast.Module | ast.FunctionDef):
            each.body = [line for line in each.body if not is_docstring(line, each.body)]


def _head(tree: ast.Module, numbers: tuple[Named, ...], docstring: str) -> list[str]:
    used = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}
    imports = list(_imports(tree, used))
    constants = [*_constants(numbers), *_others(tree)]
    lines = docstring_lines(docstring.strip())
    lines += ["", *imports] if imports else []
    return [*lines, "", *constants] if constants else lines


def _imports(tree: ast.Module, used: set[str]) -> Iterator[str]:
    plain = [s for s in tree.body if isinstance(s, ast.Import)]
    yield from (ast.unparse(statement) for statement in plain)
    is_first = bool(plain)
    for statement in tree.body:
        if isinstance(statement, ast.ImportFrom):
            names = sorted(each.name for each in statement.names if each.name in used)
            if names:
                yield from [""] * is_first
                yield f"from {statement.module} import {', '.join(names)}"
                is_first = False


def _constants(numbers: tuple[Named, ...]) -> Iterator[str]:
    for number in numbers:
        yield from comment(number.comment, width=WIDTH)
        yield f"{number.name} = {number.value!r}"


def _others(tree: ast.Module) -> Iterator[str]:
    """Writes settings such as TIES, and tuples."""
    for statement in tree.body:
        if isinstance(statement, ast.Assign):
            targets = " = ".join(ast.unparse(each) for each in statement.targets)
            yield f"{targets} = {_value(statement.value)}"


def _value(value: ast.expr) -> str:
    if isinstance(value, ast.Constant) and isinstance(value.value, str):
        return literal(value.value)
    return ast.unparse(value)


def _plain(function: ast.FunctionDef) -> list[str]:
    words = "Scores a pod on a node; the highest score wins."
    told = words if function.name == "score" else f"Computes {function.name}."
    shown = ast.FunctionDef(
        function.name, function.args, [ast.Expr(ast.Constant(told)), *function.body], []
    )
    written = ast.unparse(ast.fix_missing_locations(shown))
    return [line for each in written.split("\n") for line in _broken(each)]


def _bred(tree: ast.Module, numbers: tuple[Named, ...]) -> list[str]:
    """Writes a score function as programs are written, with comments on its terms."""
    constants = [ast.parse(f"{each.name} = {each.value!r}").body[0] for each in numbers]
    whole = ast.Module([*constants, *tree.body], [])
    try:
        program = parse(ast.unparse(ast.fix_missing_locations(whole)))
    except PolicyError:
        return []
    text = write(program)
    names = {constant.name for constant in program.constants}
    is_kept = all(each.name in names and each.name in text for each in numbers)
    return text[text.index(_SCORE) :].rstrip("\n").split("\n") if is_kept else []


def _broken(line: str) -> list[str]:
    if len(line) <= WIDTH:
        return [line]
    indent = line[: len(line) - len(line.lstrip())]
    body = line.strip()
    try:
        (statement,) = ast.parse(f"def f():\n{INDENT}{body}").body[0].body  # type: ignore[attr-defined]
    except SyntaxError:
        return [line]
    value = getattr(statement, "value", None)
    if not isinstance(value, ast.expr):
        return [line]
    expression = expression_of(value)
    if expression is None:
        return [line]
    prefix = body[: len(body) - len(ast.unparse(value))]
    return statement_lines(prefix, expression, indent)
