"""Translates Python's expressions into those of a program."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from dataclasses import field as attribute
from typing import Any, Literal

from podium.errors import PolicyError
from podium.search.program.expression import (
    CALLS,
    COMPARISONS,
    FUNCTIONS,
    HOLD,
    JUNCTIONS,
    REDUCTIONS,
    Expression,
    apply,
    field,
    number,
)
from podium.search.program.program import Statement
from podium.search.program.units import BOOLEAN, FIELDS, HERE, unit_of

_BINARY: dict[type[ast.AST], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%",
    ast.Pow: "power",
}  # fmt: skip
_COMPARED: dict[type[ast.AST], str] = {
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=",
}  # fmt: skip

_ANSWERS = (*COMPARISONS, *JUNCTIONS, "not")
_WHOLE_OF_WHOLE = ("+", "-", "*", "//", "%", "neg", "abs", "min", "max")

LARGEST = 600
"""The most parts of a program, and of what is being read."""

Sort = Literal["truth", "whole"]

Call = Callable[[ast.Call, "Environment"], Expression]
"""Writes a function into the place of a call."""


@dataclass(slots=True)
class Environment:
    """Knows what each name stands for at one place of a policy."""

    names: dict[str, Expression]
    loop: tuple[str, str] = ("", "")  # inside a loop: the names of the slot and of its free part
    functions: Mapping[str, Call] = attribute(default_factory=dict)  # of the policy itself
    statements: list[Statement] | None = None  # to go before; None where it may not be reached
    sorts: dict[str, Sort] = attribute(default_factory=dict)  # of terms and constants, by name
    passing: list[Expression] = attribute(default_factory=list)  # computed, but maybe not kept

    def copy(self) -> Environment:
        """Returns a copy that can change independently."""
        return replace(self, names=dict(self.names))

    def unsure(self) -> Environment:
        """Returns a copy for a place that may not be reached: nothing is computed before it."""
        if self.statements is None or not self.functions:
            return self
        return replace(self, statements=None)

    def is_truth(self, part: Expression) -> bool:
        """Returns whether a value is 0 or 1 as the answer to a question, not as a number."""
        if part.head == "name":
            return self.sorts.get(part.value) == "truth"
        if part.head == "number":
            return part.value in (0, 1)
        if part.head == "if":
            return all(map(self.is_truth, part.arguments[1:]))
        return part.head in _ANSWERS

    def is_whole(self, part: Expression) -> bool:
        """Returns whether a value is a whole number, which is added up alike in any order."""
        if part.head in ("name", "number"):
            is_int = isinstance(part.value, int)
            return is_int if part.head == "number" else part.value in self.sorts
        if part.head in REDUCTIONS:
            return self.is_whole(part.arguments[0]) and self.is_whole(part.arguments[2])
        if part.head == "if":
            return all(map(self.is_whole, part.arguments[1:]))
        if part.head in _WHOLE_OF_WHOLE:
            return all(map(self.is_whole, part.arguments))
        return part.head in (*_ANSWERS, "field", "int", "floor", "ceil")

    def note(self, title: str, value: Expression) -> None:
        """Remembers what sort of value a name stands for, which nothing changes any more."""
        if self.is_truth(value):
            self.sorts[title] = "truth"
        elif self.is_whole(value):
            self.sorts[title] = "whole"


BEYOND = "cannot be bred: "
"""Begins the reason why a policy does not read as a program."""


def refuse(node: ast.AST | None, what: str) -> PolicyError:
    """Raises PolicyError for what cannot be part of a program, with its line."""
    line = getattr(node, "lineno", 0)
    return PolicyError(
        f"{BEYOND}it has {what}",
        where=f", line {line}" if line else "",
        hint="terms, loops over GPU slots that add up or compare, guards and returns can",
    )


def translated(node: ast.expr, environment: Environment) -> Expression:
    """Translates one expression."""
    translate = _TRANSLATORS.get(type(node))
    if translate is None:
        raise refuse(node, f'"{ast.unparse(node)}"')
    found = translate(node, environment)
    if found.size > LARGEST:  # before anything walks it: names may double it line by line
        raise refuse(node, f"more than {LARGEST} parts")
    return found


def condition(node: ast.expr, environment: Environment) -> Expression:
    """Translates an expression of which only matters whether it is true."""
    if isinstance(node, ast.BoolOp):
        return _joined(node, environment, condition)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return apply("not", condition(node.operand, environment))
    return translated(node, environment)


def _constant(node: ast.Constant, _environment: Environment) -> Expression:
    if isinstance(node.value, bool):
        return number(int(node.value))
    if not isinstance(node.value, int | float):
        raise refuse(node, f"{node.value!r}")
    return number(node.value)


def _name(node: ast.Name, environment: Environment) -> Expression:
    slot, left = environment.loop
    if node.id == slot and slot:
        return field("slot")
    if node.id == left and left:
        return field("left")
    if node.id in environment.names:
        return environment.names[node.id]
    if node.id == "HOLD":
        return HOLD
    raise refuse(node, f'the unknown name "{node.id}"')


def _read(node: ast.Attribute | ast.Subscript, environment: Environment) -> Expression:
    text = ast.unparse(node)
    slot, left = environment.loop
    if slot and text == f"node.gpu_milli_left[{slot}]":
        return field("left")
    is_other_gpu = left == "gpu" or environment.names.get("gpu") != field("gpu")
    if text not in FIELDS or (text == HERE and is_other_gpu):
        raise refuse(node, f'"{text}"')
    return field(text)


def _binary(node: ast.BinOp, environment: Environment) -> Expression:
    head = _BINARY.get(type(node.op))
    if head is None:
        raise refuse(node, f'"{ast.unparse(node)}"')
    left, right = translated(node.left, environment), translated(node.right, environment)
    return apply(head, counted(left), counted(right))


def counted(part: Expression) -> Expression:
    """Turns a condition that is used as a number into one."""
    return apply("if", part, number(1), number(0)) if unit_of(part, {}) == BOOLEAN else part


def _unary(node: ast.UnaryOp, environment: Environment) -> Expression:
    if isinstance(node.op, ast.Not):
        return condition(node, environment)
    operand = translated(node.operand, environment)
    if isinstance(node.op, ast.UAdd):
        return operand
    if isinstance(node.op, ast.Invert):
        raise refuse(node, f'"{ast.unparse(node)}"')
    return apply("neg", operand)


def _compared(node: ast.Compare, environment: Environment) -> Expression:
    first, second, *rest = (node.left, *node.comparators)
    sides = [translated(side, environment) for side in (first, second)]
    sides += [translated(side, environment.unsure()) for side in rest]
    found = []
    for index, operator in enumerate(node.ops):
        head = _COMPARED.get(type(operator))
        if head is None:
            raise refuse(node, f'"{ast.unparse(node)}"')
        found.append(apply(head, sides[index], sides[index + 1]))
    return found[0] if len(found) == 1 else apply("and", *found)


def _junction(node: ast.BoolOp, environment: Environment) -> Expression:
    # As a value it is one of its sides, which is 0 or 1 only where both of them are.
    found = _joined(node, environment, translated)
    if not all(map(environment.is_truth, found.arguments)):
        raise refuse(node, f'"{ast.unparse(node)}" as a value')
    return found


def _joined(
    node: ast.BoolOp, environment: Environment,
    translate: Callable[[ast.expr, Environment], Expression],
) -> Expression:  # fmt: skip
    head = "and" if isinstance(node.op, ast.And) else "or"
    first, *rest = node.values
    unsure = environment.unsure()
    return apply(head, translate(first, environment), *(translate(value, unsure) for value in rest))


def _conditional(node: ast.IfExp, environment: Environment) -> Expression:
    unsure = environment.unsure()
    arms = (translated(part, unsure) for part in (node.body, node.orelse))
    return apply("if", condition(node.test, environment), *arms)


def _call(node: ast.Call, environment: Environment) -> Expression:
    if isinstance(node.func, ast.Name) and node.func.id in environment.functions:
        return environment.functions[node.func.id](node, environment)
    called = ast.unparse(node.func).removeprefix("math.")
    arguments = [counted(translated(each, environment)) for each in node.args]
    if node.keywords or not arguments:
        raise refuse(node, f'"{ast.unparse(node)}"')
    if called == "float" and len(arguments) == 1:
        return apply("*", number(1.0), arguments[0])
    if called == "pow" and len(arguments) == 2:
        return apply("power", *arguments)
    is_known = called in CALLS or called in FUNCTIONS
    if not is_known or (len(arguments) > 1) != (called in ("min", "max")):
        raise refuse(node, f'"{ast.unparse(node)}"')
    return apply(called, *arguments)


_TRANSLATORS: dict[type[ast.AST], Callable[[Any, Environment], Expression]] = {
    ast.Constant: _constant,
    ast.Name: _name,
    ast.Attribute: _read,
    ast.Subscript: _read,
    ast.BinOp: _binary,
    ast.UnaryOp: _unary,
    ast.Compare: _compared,
    ast.BoolOp: _junction,
    ast.IfExp: _conditional,
    ast.Call: _call,
}
