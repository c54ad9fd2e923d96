"""Reads assignments, and an `if` without a return as a choice between what its arms set."""

from __future__ import annotations

import ast

from podium.search.program.expression import Expression, apply, number
from podium.search.program.translation import (
    LARGEST,
    Environment,
    condition,
    refuse,
    translated,
)


def assigned(node: ast.stmt, environment: Environment) -> list[tuple[str, Expression]]:
    """Lists the names that a statement sets, each with its value."""
    if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
        name = ast.Name(node.target.id, ast.Load())
        whole = ast.copy_location(ast.BinOp(name, node.op, node.value), node)
        return [(node.target.id, translated(ast.fix_missing_locations(whole), environment))]
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value:
        return [(node.target.id, translated(node.value, environment))]
    if not isinstance(node, ast.Assign) or len(node.targets) != 1:
        raise refuse(node, f"this statement: {ast.unparse(node).splitlines()[0]}")
    target, value = node.targets[0], node.value
    if isinstance(target, ast.Name):
        return [(target.id, translated(value, environment))]
    titles = [each.id for each in getattr(target, "elts", ()) if isinstance(each, ast.Name)]
    given = value.elts if isinstance(value, ast.Tuple) else []
    if not titles or not len(titles) == len(given) == len(target.elts):  # type: ignore[attr-defined]
        raise refuse(node, "this assignment")
    return [(one, translated(other, environment)) for one, other in zip(titles, given, strict=True)]


Choices = dict[str, tuple[Expression, bool]]
"""What names stand for behind an `if`, and whether every way there sets them."""


def choice(node: ast.If, environment: Environment) -> Choices:
    """Turns assignments in both arms of an `if` into choices."""
    test = condition(node.test, environment)
    environment.passing.append(test)
    then, otherwise = _arm(node.body, environment), _arm(node.orelse, environment)
    found: Choices = {}
    for title in [*then, *(each for each in otherwise if each not in then)]:
        before = environment.names.get(title)
        # It is computed all the same: it may fail.
        unchanged = (number(0), False) if before is None else (before, True)
        one, other = then.get(title, unchanged), otherwise.get(title, unchanged)
        value = apply("if", test, one[0], other[0])
        if value.size > LARGEST:
            raise refuse(node, f"more than {LARGEST} parts")
        found[title] = value, one[1] and other[1]
    return found


def _arm(body: list[ast.stmt], environment: Environment) -> Choices:
    inner = environment.unsure().copy()
    changed: Choices = {}
    for node in body:
        if isinstance(node, ast.Pass):
            continue
        found = (
            choice(node, inner)
            if isinstance(node, ast.If)
            else {title: (value, True) for title, value in assigned(node, inner)}
        )
        environment.passing.extend(changed[title][0] for title in found if title in changed)
        changed |= found
        for title, (value, is_set) in found.items():
            if is_set:
                inner.names[title] = value
            else:
                inner.names.pop(title, None)
    return changed
