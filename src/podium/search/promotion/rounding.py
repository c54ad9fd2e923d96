"""Shortens the numbers of a program."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from podium.search.candidate.constants import declared_call, number_of

DIGITS = (1, 2, 3)
"""Significant digits that a number is rounded to, the fewest first."""


def roundings(text: str) -> Iterator[tuple[str, str]]:
    """Lists shorter writings of a program's numbers: all at once first, then each by itself."""
    tree = ast.parse(text)
    longest = [number for number in _numbers(tree) if number.value != _shorter(number, DIGITS[-1])]
    for digits in DIGITS[1:]:
        if len(longest) > 1:
            told = f"{len(longest)} numbers -> {digits} significant digits"
            yield _written(text, digits, range(len(_numbers(tree)))), told
    for index, number in enumerate(_numbers(tree)):
        for digits in DIGITS:
            if number.value != _shorter(number, digits):
                told = f"{number.value!r} -> {_shorter(number, digits)!r}"
                yield _written(text, digits, [index]), told


def _written(text: str, digits: int, which: range | list[int]) -> str:
    tree = ast.parse(text)
    numbers = _numbers(tree)
    for index in which:
        numbers[index].value = _shorter(numbers[index], digits)
    return ast.unparse(tree) + "\n"


def _shorter(number: ast.Constant, digits: int) -> float:
    return float(f"{number_of(number):.{digits}g}")


def _numbers(tree: ast.Module) -> list[ast.Constant]:
    """Finds the decimal numbers; of a tunable constant its value, not its bounds."""
    bounds = set()
    for statement in tree.body:
        declared = declared_call(statement)
        if declared:
            bounds |= {id(n) for each in declared[1].args[1:] for n in ast.walk(each)}
    return [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, float)
        and number_of(node) is not None
        and id(node) not in bounds
    ]
