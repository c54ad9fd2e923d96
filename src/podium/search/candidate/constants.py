"""Reads and rewrites the constants that a policy file declares with `tunable`."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from podium.errors import PolicyError, UnknownName
from podium.search.candidate.text import parse_text
from podium.search.candidate.vocabulary import LARGEST_EXPONENT, LARGEST_INTEGER


@dataclass(frozen=True, slots=True)
class Constant:
    """One declared constant: `NAME = tunable(value, low, high)`."""

    name: str
    value: float
    low: float
    high: float
    line: int


def read_constants(text: str) -> tuple[Constant, ...]:
    """Lists the declared constants in the order of the file.

    >>> read_constants("W = tunable(0.5, 0, 2)")
    (Constant(name='W', value=0.5, low=0.0, high=2.0, line=1),)
    """
    return tuple(_constant(name, call) for name, call in _declarations(parse_text(text)))


def with_constants(text: str, values: Mapping[str, float]) -> str:
    """Writes new values into a source; every other character stays as it is.

    >>> with_constants("W = tunable(0.5, 0, 2)  # weight", {"W": 1.25})
    'W = tunable(1.25, 0, 2)  # weight'
    """
    declared = dict(_declarations(parse_text(text)))
    for name in values:
        if name not in declared:
            raise UnknownName.among("constant", name, declared)
    # The columns of the syntax tree count bytes; edits from the end leave the others in place.
    lines = text.encode().splitlines(keepends=True)
    placed = sorted(values, key=lambda name: _start(declared[name].args[0]), reverse=True)
    for name in placed:
        _check(_constant(name, declared[name]), values[name])
        _overwrite(lines, declared[name].args[0], _written(values[name]))
    return b"".join(lines).decode()


def declared_call(statement: ast.stmt) -> tuple[str, ast.Call] | None:
    """Reads a statement as `NAME = tunable(...)`, if it is one."""
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return None
    target, call = statement.targets[0], statement.value
    is_call = isinstance(call, ast.Call) and isinstance(call.func, ast.Name)
    if not isinstance(target, ast.Name) or not is_call:
        return None
    assert isinstance(call, ast.Call)
    return (target.id, call) if getattr(call.func, "id", "") == "tunable" else None


def number_of(node: ast.expr) -> float | None:
    """Reads a number as written, with its sign; nothing for anything else."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
        inner = number_of(node.operand)
        return -inner if inner is not None and isinstance(node.op, ast.USub) else inner
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        return _as_float(node.value)
    return None


Value = int | float | tuple[Any, ...]

_OPERATIONS: dict[type[ast.AST], Callable[..., Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Pow: operator.pow,
    ast.Div: operator.truediv, ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod,
    ast.BitAnd: operator.and_, ast.BitOr: operator.or_, ast.BitXor: operator.xor,
    ast.RShift: operator.rshift, ast.USub: operator.neg, ast.UAdd: operator.pos,
    ast.Not: operator.not_, ast.Invert: operator.invert,
}  # fmt: skip


def value_of(node: ast.expr, names: Mapping[str, Value]) -> Value:
    """Computes a constant as Python does, within bounds; raises PolicyError where it cannot.

    >>> value_of(ast.parse("(A + 1, -2 ** 2)", mode="eval").body, {"A": 3})
    (4, -4)
    """
    if isinstance(node, ast.Tuple):
        return tuple(value_of(each, names) for each in node.elts)
    if isinstance(node, ast.Name):
        if node.id not in names:
            raise PolicyError(f"uses {node.id} before it is set")
        return names[node.id]
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return node.value
    if not isinstance(node, ast.BinOp | ast.UnaryOp) or type(node.op) not in _OPERATIONS:
        raise PolicyError("computes a constant from more than numbers")
    parts = [node.left, node.right] if isinstance(node, ast.BinOp) else [node.operand]
    return _computed(_OPERATIONS[type(node.op)], [value_of(each, names) for each in parts])


def _computed(operation: Callable[..., Any], parts: Sequence[Value]) -> Value:
    if any(isinstance(each, tuple) for each in parts):
        raise PolicyError("computes a constant with a tuple; write its numbers one by one")
    if operation is operator.pow and abs(parts[1]) > LARGEST_EXPONENT:  # type: ignore[arg-type]
        raise PolicyError(f"raises to a power beyond {LARGEST_EXPONENT}")
    try:
        found = operation(*parts)
    except (ArithmeticError, TypeError, ValueError) as error:
        raise PolicyError(f"computes a constant that fails: {error}") from error
    if isinstance(found, complex):
        raise PolicyError("raises a negative number to a fractional power")
    if isinstance(found, int) and abs(found) > LARGEST_INTEGER:
        raise PolicyError("computes an integer beyond 2**53, which a score cannot hold exactly")
    return found  # type: ignore[no-any-return]


def _as_float(value: object) -> float:
    try:
        return float(value)  # type: ignore[arg-type]
    except OverflowError:
        return math.inf


def _declarations(tree: ast.Module) -> list[tuple[str, ast.Call]]:
    return [found for statement in tree.body if (found := declared_call(statement))]


def _constant(name: str, call: ast.Call) -> Constant:
    numbers = [number_of(argument) for argument in call.args]
    if len(numbers) != 3 or call.keywords or None in numbers:
        raise PolicyError(
            f"{name} = {ast.unparse(call)} is not read as a constant",
            where=f"line {call.lineno}",
            hint="write NAME = tunable(value, low, high) with three numbers",
        )
    value, low, high = (number or 0.0 for number in numbers)
    found = Constant(name, value, low, high, call.lineno)
    _check(found, value)
    return found


def _check(constant: Constant, value: float) -> None:
    bounds = (constant.low, constant.high)
    if not all(map(math.isfinite, (value, *bounds))) or not bounds[0] <= value <= bounds[1]:
        raise PolicyError(
            f"{constant.name} is {value}, not a number within {bounds[0]} and {bounds[1]}",
            where=f"line {constant.line}",
            hint="write tunable(value, low, high) with low <= value <= high",
        )


def _written(value: float) -> bytes:
    return repr(float(value)).encode()


def _start(node: ast.expr) -> tuple[int, int]:
    return node.lineno, node.col_offset


def _overwrite(lines: list[bytes], node: ast.expr, written: bytes) -> None:
    first, last = node.lineno - 1, (node.end_lineno or node.lineno) - 1
    before, after = lines[first][: node.col_offset], lines[last][node.end_col_offset :]
    lines[first : last + 1] = [before + written + after, *[b""] * (last - first)]
