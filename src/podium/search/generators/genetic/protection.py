"""Protects what can fail: denominators above zero, roots of what is not negative."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from podium.search.program.bounds import UNSOUND, Known, bounds_of, is_sound
from podium.search.program.expression import Expression, apply, number, with_arguments
from podium.search.program.program import Block, Function, Guard, Program, Statement, Term

LEAST_RATIO = 0.01
LARGEST_EXPONENT = 50
_DIVISIONS = ("/", "//", "%")
_GUARDED = frozenset([*_DIVISIONS, "sqrt", "log", "exp"])


def protect(program: Program) -> Program:
    """Wraps what could be zero or negative where it must not be."""
    if program.functions and not is_sound(program):
        program = replace(program, functions=tuple(_function(program)))
    return replace(program, block=_block(program.block, Known.of(program)))


def _function(program: Program) -> Iterator[Function]:
    """Wraps what functions compute, where some call of theirs may fail."""
    known = Known.of(program)
    for function in program.functions:
        given = dict.fromkeys(function.parameters, UNSOUND)
        inner = Known(known.names | given, known.functions)
        yield replace(function, expression=protected(function.expression, inner))


def _block(block: Block, known: Known) -> Block:
    statements: list[Statement] = []
    for statement in block.statements:
        if isinstance(statement, Term):
            is_known = statement.name in known.names
            expression = statement.expression
            expression = expression if is_known else protected(expression, known)
            known.define(statement.name, expression)
            statements.append(Term(statement.name, expression))
        else:
            condition = protected(statement.condition, known)
            statements.append(Guard(condition, _block(statement.block, known)))
    return Block(tuple(statements), protected(block.result, known))


def protected(expression: Expression, known: Known) -> Expression:
    """Wraps the parts of an expression that need it."""
    if not expression.arguments:
        return expression
    arguments = tuple(protected(part, known) for part in expression.arguments)
    if expression.head in _GUARDED:
        arguments = _guarded(expression.head, arguments, known)
    if arguments == expression.arguments:
        return expression
    return with_arguments(expression, arguments)


def _guarded(head: str, arguments: tuple[Expression, ...], known: Known) -> tuple[Expression, ...]:
    last = arguments[-1]
    bounds = bounds_of(last, known)
    least = number(1 if bounds.is_whole else LEAST_RATIO)
    if (head in _DIVISIONS and bounds.has_zero) or (head == "log" and bounds.low <= 0):
        last = apply("max", least, last)
    elif head == "sqrt" and bounds.low < 0:
        last = apply("max", number(0), last)
    elif head == "exp" and bounds.high > LARGEST_EXPONENT:
        last = apply("min", number(LARGEST_EXPONENT), last)
    return (*arguments[:-1], last)
