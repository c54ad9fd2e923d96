"""Rewrites one operation into a smaller one with the same value, to the bit."""

from __future__ import annotations

import math
from collections.abc import Callable, Set
from dataclasses import replace
from typing import Any

from podium.policies.language.arithmetic import power
from podium.search.program.bounds import UNSOUND, Known, bounds_of
from podium.search.program.expression import (
    ALWAYS,
    COMPARISONS,
    Expression,
    apply,
    field,
    mapped,
    name,
    number,
    with_arguments,
)
from podium.search.program.functions import with_few_functions
from podium.search.program.ingredients import genuine
from podium.search.program.program import (
    Block,
    Function,
    Guard,
    Program,
    Statement,
    Term,
    names_used,
    terms,
)

_OPERATIONS: dict[str, Callable[..., Any]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
    "//": lambda a, b: a // b,
    "%": lambda a, b: a % b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "neg": lambda a: -a,
    "abs": abs,
    "int": int,
    "min": min,
    "max": max,
    "power": power,
    "sqrt": math.sqrt,
    "exp": math.exp,
    "log": math.log,
    "tanh": math.tanh,
    "floor": math.floor,
    "ceil": math.ceil,
}


def folded(expression: Expression) -> Expression:
    """Replaces operations on numbers by their result, where there is one."""
    if not expression.arguments or expression.head in ("sum", "smallest", "largest"):
        return expression
    parts = [folded(part) for part in expression.arguments]
    values = [part.value for part in parts if part.head == "number"]
    operation = _OPERATIONS.get(expression.head)
    if operation is None or len(values) < len(parts):
        return Expression(expression.head, tuple(parts), expression.value)
    try:
        result = operation(*values)
    except (ArithmeticError, ValueError):
        return expression
    is_finite = isinstance(result, int | float) and math.isfinite(result)
    return number(result) if is_finite else expression


TRUE, FALSE = number(1), number(0)
_OPPOSITE = {"<": ">=", ">=": "<", ">": "<=", "<=": ">", "==": "!=", "!=": "=="}
_Rule = Callable[[Expression, Known], Expression]


def reduced(expression: Expression, known: Known) -> Expression:
    """Applies the rules of the head until none changes anything."""
    for _ in range(4):
        smaller = _once(expression, known)
        if smaller == expression or not smaller.arguments:
            return smaller
        expression = smaller
    return expression


def _once(expression: Expression, known: Known) -> Expression:
    if all(part.head == "number" for part in expression.arguments):
        found = folded(expression)
        if found.head == "number":
            return number(int(found.value)) if isinstance(found.value, bool) else found
    rule = _RULES.get(expression.head)
    return rule(expression, known) if rule else expression


def _is(part: Expression, value: float) -> bool:
    return part.head == "number" and bool(part.value == value)


def _sum(expression: Expression, _known: Known) -> Expression:
    left, right = expression.arguments
    if _is(left, 0):
        return right
    if _is(right, 0):
        return left
    if right.head == "neg":
        return apply("-", left, right.arguments[0])
    if left.head == "neg":
        return apply("-", right, left.arguments[0])
    if right.head == "number" and right.value < 0:
        return apply("-", left, number(-right.value))
    return expression


def _difference(expression: Expression, _known: Known) -> Expression:
    left, right = expression.arguments
    if _is(right, 0) or left == right:
        return left if _is(right, 0) else number(0)
    if _is(left, 0):
        return apply("neg", right)
    if right.head == "neg":
        return apply("+", left, right.arguments[0])
    if right.head == "number" and right.value < 0:
        return apply("+", left, number(-right.value))
    return expression


def _product(expression: Expression, _known: Known) -> Expression:
    left, right = expression.arguments
    if _is(left, 0) or _is(right, 0):
        return number(0)
    if _is(right, 1):
        return left
    if _is(left, 1):
        return right
    if _is(left, -1) or _is(right, -1):
        return apply("neg", right if _is(left, -1) else left)
    if left.head == "neg" and right.head == "neg":
        return apply("*", left.arguments[0], right.arguments[0])
    return expression


def _quotient(expression: Expression, known: Known) -> Expression:
    left, right = expression.arguments
    if _is(right, 1) and expression.head == "/":
        return left
    if _is(left, 0) and not bounds_of(right, known).has_zero:
        return number(0)
    if left == right and expression.head == "/" and not bounds_of(right, known).has_zero:
        return number(1)
    return expression


def _negation(expression: Expression, _known: Known) -> Expression:
    part = expression.arguments[0]
    if part.head == "neg":
        return part.arguments[0]
    if part.head == "-":
        return apply("-", part.arguments[1], part.arguments[0])
    return expression


def _size(expression: Expression, known: Known) -> Expression:
    part = expression.arguments[0]
    if part.head in ("abs", "neg"):
        return part if part.head == "abs" else apply("abs", part.arguments[0])
    return part if bounds_of(part, known).low >= 0 else expression


def _whole(expression: Expression, known: Known) -> Expression:
    part = expression.arguments[0]
    return part if bounds_of(part, known).is_whole else expression


def _extreme(expression: Expression, known: Known) -> Expression:
    parts = list(dict.fromkeys(expression.arguments))
    if len(parts) == 1:
        return parts[0]
    ranges = [bounds_of(part, known) for part in parts]
    sign = 1 if expression.head == "max" else -1
    for one, kept in enumerate(ranges):
        for other, dropped in enumerate(ranges):
            low = kept.low if sign > 0 else -kept.high
            high = dropped.high if sign > 0 else -dropped.low
            if one != other and low >= high and dropped.is_sound:
                del parts[other]
                return parts[0] if len(parts) == 1 else apply(expression.head, *parts)
    return apply(expression.head, *parts) if len(parts) < len(ranges) else expression


def _comparison(expression: Expression, known: Known) -> Expression:
    left, right = expression.arguments
    if left == right:
        return TRUE if expression.head in ("<=", ">=", "==") else FALSE
    one, other = bounds_of(left, known), bounds_of(right, known)
    if not (one.is_sound and other.is_sound):
        return expression
    decided = _decided(expression.head, (one.low, one.high), (other.low, other.high))
    return expression if decided is None else (TRUE if decided else FALSE)


def _decided(head: str, one: tuple[float, float], other: tuple[float, float]) -> bool | None:
    if head in (">", ">="):
        return _decided("<" if head == ">" else "<=", other, one)
    if head in ("==", "!="):
        return head == "!=" if one[1] < other[0] or other[1] < one[0] else None
    if head == "<":
        return True if one[1] < other[0] else (False if one[0] >= other[1] else None)
    return True if one[1] <= other[0] else (False if one[0] > other[1] else None)


def _junction(expression: Expression, _known: Known) -> Expression:
    stops, passes = (FALSE, TRUE) if expression.head == "and" else (TRUE, FALSE)
    parts = [part for part in dict.fromkeys(expression.arguments) if part != passes]
    if stops in parts:
        return stops
    if len(parts) < 2:
        return parts[0] if parts else passes
    return expression if len(parts) == len(expression.arguments) else apply(expression.head, *parts)


def _not(expression: Expression, _known: Known) -> Expression:
    part = expression.arguments[0]
    if part.head == "not":
        return part.arguments[0]
    if part.head in COMPARISONS:
        return apply(_OPPOSITE[part.head], *part.arguments)
    return expression


def _choice(expression: Expression, _known: Known) -> Expression:
    condition, then, otherwise = expression.arguments
    if condition.head == "number":
        return then if condition.value else otherwise
    if condition.head == "not":
        return apply("if", condition.arguments[0], otherwise, then)
    return then if then == otherwise else expression


def _reduction(expression: Expression, known: Known) -> Expression:
    value, condition, start = expression.arguments
    if condition == FALSE or (expression.head == "sum" and _is(value, 0)):
        return start
    if condition == TRUE:
        return with_arguments(expression, (value, ALWAYS, start))
    if expression.head == "sum" and value == field("left") and condition == ALWAYS:
        # Slots beyond the node's GPUs have nothing free.
        return Expression("sum", expression.arguments, "gpus")
    if expression.head == "sum" and value == number(1) and condition == ALWAYS and _is(start, 0):
        return field("node.gpu_count") if expression.value == "gpus" else expression
    return _bounded(expression, known)


def _bounded(expression: Expression, known: Known) -> Expression:
    value, _, start = expression.arguments
    bounds = bounds_of(value, known)
    if expression.head == "smallest" and bounds.low >= start.value:
        return start
    if expression.head == "largest" and bounds.high <= start.value:
        return start
    return expression


_RULES: dict[str, _Rule] = {
    "+": _sum,
    "-": _difference,
    "*": _product,
    "/": _quotient,
    "//": _quotient,
    "neg": _negation,
    "abs": _size,
    "int": _whole,
    "floor": _whole,
    "ceil": _whole,
    "min": _extreme,
    "max": _extreme,
    "and": _junction,
    "or": _junction,
    "not": _not,
    "if": _choice,
    "sum": _reduction,
    "smallest": _reduction,
    "largest": _reduction,
    **dict.fromkeys(COMPARISONS, _comparison),
}


ROUNDS = 8


def simplify(program: Program) -> Program:
    """Folds, prunes and merges until nothing changes."""
    for _ in range(ROUNDS):
        smaller = _without_unused(with_few_functions(_simplified(program)))
        if smaller == program:
            return program
        program = smaller
    return program


def _simplified(program: Program) -> Program:
    step = _Pass(Known.of(program), genuine(terms(program.block)).keys())
    functions = tuple(_simpler(each, step.known) for each in program.functions)
    return replace(program, block=step.block(program.block, {}, {}), functions=functions)


def _simpler(function: Function, known: Known) -> Function:
    # Anything may be given to a function: what holds for all arguments is little.
    given = dict.fromkeys(function.parameters, UNSOUND)
    step = _Pass(Known(known.names | given, known.functions), frozenset())
    return replace(function, expression=step.shorter(function.expression, {}, {}))


class _Pass:
    def __init__(self, known: Known, fixed: Set[str]) -> None:
        self.known = known
        self.fixed = fixed  # ingredients, which cannot be simpler

    def block(
        self, block: Block, aliases: dict[str, Expression], seen: dict[Expression, str]
    ) -> Block:
        statements: list[Statement] = []
        for statement in block.statements:
            if isinstance(statement, Term):
                self._term(statement, aliases, seen, statements)
                continue
            condition = self.shorter(statement.condition, aliases, seen)
            inner = self.block(statement.block, dict(aliases), dict(seen))
            if condition == TRUE:
                return Block((*statements, *inner.statements), inner.result)
            if condition != FALSE:
                statements.append(Guard(condition, inner))
        result = self.shorter(block.result, aliases, seen)
        return Block(tuple(_without_repeats(statements, result)), result)

    def _term(
        self, term: Term, aliases: dict[str, Expression], seen: dict[Expression, str],
        statements: list[Statement],
    ) -> None:  # fmt: skip
        expression = term.expression
        if term.name not in self.fixed or not expression.names.isdisjoint(aliases):
            expression = self.shorter(expression, aliases, seen)
        elif expression in seen:
            expression = name(seen[expression])
        if expression.is_leaf:
            aliases[term.name] = expression
            return
        self.known.define(term.name, expression)
        seen[expression] = term.name
        statements.append(Term(term.name, expression))

    def shorter(
        self, expression: Expression, aliases: dict[str, Expression], seen: dict[Expression, str]
    ) -> Expression:
        """Simplifies an expression where some names stand for leaves, and some parts have names."""
        change = self._change(aliases, seen)
        return mapped(expression, change)

    def _change(
        self, aliases: dict[str, Expression], seen: dict[Expression, str]
    ) -> Callable[[Expression], Expression]:
        def change(part: Expression) -> Expression:
            if part.head == "name":
                return aliases.get(part.value, part)
            if not part.arguments:
                return part
            smaller = reduced(part, self.known)
            title = seen.get(smaller) if smaller.arguments else None
            return name(title) if title else smaller

        return change


def _without_repeats(statements: list[Statement], result: Expression) -> list[Statement]:
    """Drops last guards that return what is returned anyway."""
    while statements:
        last = statements[-1]
        if isinstance(last, Term) or last.block != Block((), result):
            break
        statements.pop()
    return statements


def _without_unused(program: Program) -> Program:
    used = names_used(program)
    kept = tuple(constant for constant in program.constants if constant.name in used)
    return replace(program, constants=kept, block=_pruned(program.block, used))


def _pruned(block: Block, used: set[str]) -> Block:
    statements: list[Statement] = []
    for statement in block.statements:
        if isinstance(statement, Guard):
            statements.append(Guard(statement.condition, _pruned(statement.block, used)))
        elif statement.name in used:
            statements.append(statement)
    return Block(tuple(statements), block.result)
