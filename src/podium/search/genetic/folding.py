"""Computes what needs no pod and no node."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from podium.policies.language.arithmetic import integer_power, power
from podium.search.genetic.expression import Expression, number

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
    "power": lambda a, b: _raised(a, b),
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


def _raised(base: float, exponent: float) -> float:
    if float(exponent).is_integer() and abs(exponent) <= 64:
        return integer_power(base, int(exponent))
    return math.sqrt(base) if exponent == 0.5 else power(base, exponent)
