"""Keeps the functions of a program few: those that are called, each once, with what they use."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from podium.search.program.expression import Expression, mapped, name, renamed, with_arguments
from podium.search.program.program import (
    Function,
    Program,
    calls_used,
    roots,
    with_roots,
)

SMALLEST = 2
"""A function of so few parts is written into the places that call it."""


def with_few_functions(program: Program) -> Program:
    """Drops functions that nobody calls, and what they do not use; merges those that are alike."""
    if not program.functions:
        return program
    return _merged(_inlined(_narrowed(_called(program))))


def substituted(expression: Expression, given: dict[str, Expression]) -> Expression:
    """Returns the expression with names replaced by other expressions."""

    def change(part: Expression) -> Expression:
        return given.get(part.value, part) if part.head == "name" else part

    return mapped(expression, change)


def changed(program: Program, change: Callable[[Expression], Expression]) -> Program:
    """Changes every part of every expression, those of functions too."""
    block = with_roots(program.block, iter([mapped(r, change) for r in roots(program.block)]))
    functions = tuple(
        replace(each, expression=mapped(each.expression, change)) for each in program.functions
    )
    return replace(program, block=block, functions=functions)


def _called(program: Program) -> Program:
    used = calls_used(program)
    kept = tuple(each for each in program.functions if each.name in used)
    return program if len(kept) == len(program.functions) else replace(program, functions=kept)


def _narrowed(program: Program) -> Program:
    """Drops parameters that a function does not use."""
    for function in program.functions:
        used = [each in function.expression.names for each in function.parameters]
        if all(used) or not any(used):
            continue

        def change(part: Expression, own: Function = function) -> Expression:
            if part.head != "call" or part.value != own.name:
                return part
            return with_arguments(part, _kept(part.arguments, own))

        program = changed(program, change)
        parameters = tuple(
            each for each in function.parameters if each in function.expression.names
        )
        functions = tuple(
            replace(each, parameters=parameters) if each.name == function.name else each
            for each in program.functions
        )
        program = replace(program, functions=functions)
    return program


def _kept(arguments: tuple[Expression, ...], function: Function) -> tuple[Expression, ...]:
    pairs = zip(function.parameters, arguments, strict=True)
    return tuple(each for title, each in pairs if title in function.expression.names)


def _inlined(program: Program) -> Program:
    """Writes functions that are next to nothing into the places that call them."""
    small = {
        each.name: each
        for each in program.functions
        if each.expression.size <= SMALLEST or not each.expression.names & set(each.parameters)
    }
    if not small:
        return program

    def change(part: Expression) -> Expression:
        function = small.get(part.value) if part.head == "call" else None
        if function is None:
            return part
        given = dict(zip(function.parameters, part.arguments, strict=True))
        return substituted(function.expression, given)

    kept = tuple(each for each in program.functions if each.name not in small)
    return changed(replace(program, functions=kept), change)


def _merged(program: Program) -> Program:
    """Calls one of several functions that compute the same."""
    seen: dict[tuple[int, Expression], str] = {}
    names: dict[str, str] = {}
    kept: list[Function] = []
    for function in program.functions:
        own = replace(function, expression=renamed(function.expression, names))
        places = {each: f"@{index}" for index, each in enumerate(own.parameters)}
        key = (len(places), substituted(own.expression, {k: name(v) for k, v in places.items()}))
        if key in seen:
            names[own.name] = seen[key]
        else:
            seen[key] = own.name
            kept.append(own)
    if not names:
        return program
    block = with_roots(program.block, iter([renamed(r, names) for r in roots(program.block)]))
    return replace(program, block=block, functions=tuple(kept))
