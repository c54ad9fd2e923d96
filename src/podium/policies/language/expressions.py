"""Translates the expressions of one function of a policy."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from podium.errors import advice_on, meant
from podium.policies.language import kind as kinds
from podium.policies.language.arithmetic import LARGEST_POWER, power
from podium.policies.language.kind import (
    BOOL,
    FIELDS,
    FLOAT,
    MOST_WHOLE,
    SLOT_MILLI,
    Kind,
    NotPortable,
    clipped,
    join,
    whole,
)
from podium.policies.language.translation import Function, as_kind, call, constant, resolved

if TYPE_CHECKING:
    from podium.policies.language.translation import Program

Typed = tuple[ast.expr, Kind | None]
"""A translated expression and its kind, which may not be known yet."""

_SUMS: dict[type[ast.operator], tuple[str, Callable[[Kind, Kind], Kind]]] = {
    ast.Add: ("add", kinds.added),
    ast.Sub: ("subtract", kinds.subtracted),
    ast.Mult: ("multiply", kinds.multiplied),
}
_DIVISIONS: dict[type[ast.operator], tuple[str, Callable[[Kind, Kind], Kind]]] = {
    ast.FloorDiv: ("floor_divide", kinds.divided),
    ast.Mod: ("remainder", kinds.remainder),
}
_COMPARISONS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq)
_BITS = (ast.BitAnd, ast.BitOr, ast.BitXor)
_SHIFTS = (ast.LShift, ast.RShift)


class Expressions:
    """Translates expressions, given what is known of the function's names."""

    names: set[str]  # arguments, and names that the function sets
    known: frozenset[str]  # those that are set for sure where it is now

    def __init__(self, program: Program, function: Function) -> None:
        self.program, self.function = program, function
        self.rows: set[tuple[str, str]] = set()  # (table, row) of the loops that it is in
        self.by_type: dict[type[ast.expr], Callable[[Any], Typed]] = {
            ast.Constant: lambda node: constant(node.value, node.lineno),
            ast.Name: self._name,
            ast.Attribute: self._attribute,
            ast.Subscript: self._subscript,
            ast.BinOp: self._operation,
            ast.UnaryOp: self._sign,
            ast.Compare: self._comparison,
            ast.BoolOp: self._junction,
            ast.IfExp: self._choice,
            ast.Tuple: self._tuple,
        }

    def expression(self, node: ast.expr) -> Typed:
        """Translates any expression."""
        translate = self.by_type.get(type(node))
        if translate is None:
            raise NotPortable(f"uses {_said(node)}", node.lineno)
        found, kind = translate(node)
        if kind is None:
            self.program.note_unknown(node)
        return ast.copy_location(found, node), kind

    def number(self, node: ast.expr) -> Typed:
        """Translates an expression that must be a number; a truth becomes 0 or 1."""
        return counted(self.expression(node), node)

    def real(self, node: ast.expr) -> ast.expr:
        """Translates a number for a function of real ones."""
        found, kind = self.number(node)
        return as_kind(found, kind, FLOAT)

    def index(self, node: ast.expr) -> Typed:
        """Translates an expression that must be a whole number."""
        found, kind = self.number(node)
        if kind is not None and kind.tag != "int":
            raise NotPortable(f"needs `{shortened(node)}` to be a whole number", node.lineno)
        return found, kind

    def truth(self, node: ast.expr) -> ast.expr:
        """Translates a condition."""
        found, kind = self.expression(node)
        if kind is not None and not kind.is_number:
            raise NotPortable(f"asks whether `{shortened(node)}` is true", node.lineno)
        return found

    def resolved(self, node: ast.expr) -> Any:
        """Finds the object outside the function that a name stands for."""
        return resolved(node, self.function, self.names.__contains__)

    def _name(self, node: ast.Name) -> Typed:
        if node.id not in self.names:
            if node.id not in self.function.outer:
                raise self.undefined(node)
            return self._outer(self.function.outer[node.id], node)
        kind = self.function.kind(node.id)
        kind = kind and clipped(kind)
        if node.id in self.known:
            return node, kind
        if node.id not in self.function.unset:
            self.function.unset.add(node.id)
            self.program.has_changed = True
        flag = ast.Name(f"podium_has_{node.id}", ast.Load())
        return call("checked", node, flag), kind

    def _outer(self, value: object, node: ast.expr) -> Typed:
        if callable(value) or inspect.ismodule(value):
            raise NotPortable(f"uses `{shortened(node)}` without calling it", node.lineno)
        return constant(value, node.lineno)

    def _attribute(self, node: ast.Attribute) -> Typed:
        value = self.resolved(node)
        if value is not None:
            return self._outer(value, node)
        if inspect.ismodule(module := self.resolved(node.value)):
            reason = f"uses `{shortened(node)}`, which is defined nowhere"
            raise NotPortable(reason, node.lineno, meant(node.attr, dir(module)))
        owner, kind = self.expression(node.value)
        if kind is None:
            return node, None
        fields = FIELDS.get(kind.tag, {})
        if node.attr not in fields:
            hint = advice_on(node.attr, fields) if fields else ""
            raise NotPortable(f"reads `{shortened(node)}`", node.lineno, hint)
        return ast.Attribute(owner, node.attr, ast.Load()), fields[node.attr]

    def undefined(self, node: ast.Name) -> NotPortable:
        """Refuses an undefined name, and suggests a similar one."""
        reason = f"uses {node.id}, which is defined nowhere"
        hint = meant(node.id, {*self.names, *self.function.outer}) or "define it, or spell it right"
        return NotPortable(reason, node.lineno, hint)

    def _subscript(self, node: ast.Subscript) -> Typed:
        inner = node.value
        if isinstance(inner, ast.Subscript) and isinstance(inner.value, ast.Name):
            owner, kind = self.expression(inner.value)
            if kind is not None and kind.tag == "table" and not isinstance(inner.slice, ast.Tuple):
                return self._cell(owner, inner.slice, node.slice)
        owner, kind = self.expression(node.value)
        if kind is None:
            return node, None
        if kind.tag == "table" and isinstance(node.slice, ast.Tuple):
            if len(node.slice.elts) != 2:
                raise NotPortable("reads a table by more than two numbers", node.lineno)
            return self._cell(owner, *node.slice.elts)
        place, place_kind = self.index(node.slice)
        if kind.tag == "table":
            return call("entry", owner, place), FLOAT
        if kind.tag == "gpus":
            # Neither tier reads beyond the end; only plain Python counts back from it.
            is_counted_on = place_kind is not None and place_kind.low >= 0
            read = ast.Subscript(owner, place, ast.Load())
            return (read if is_counted_on else call("slot", owner, place)), SLOT_MILLI
        if kind.tag == "tuple":
            return self._item(owner, kind, place, place_kind, node.lineno)
        raise NotPortable(f"indexes `{shortened(node.value)}`", node.lineno)

    def _cell(self, table: ast.expr, row: ast.expr, column: ast.expr) -> Typed:
        (place, _), (across, kind) = self.index(row), self.index(column)
        key = (getattr(table, "id", ""), getattr(row, "id", ""))
        is_inside = key in self.rows and kind is not None and kind.low >= 0
        return call("row_cell" if is_inside else "cell", table, place, across), FLOAT

    def _item(
        self, owner: ast.expr, kind: Kind, place: ast.expr, at: Kind | None, line: int
    ) -> Typed:
        size = len(kind.parts)
        is_plain = isinstance(place, ast.Constant | ast.Name)  # anything else may fail
        if is_plain and at is not None and at.low == at.high and -size <= at.low < size:
            index = at.low % size
            return ast.Subscript(owner, ast.Constant(index), ast.Load()), kind.parts[index]
        found: Kind | None = None
        for part in kind.parts:
            if found is not None and (part.tag != found.tag or not part.is_number):
                raise NotPortable("picks from a tuple whose items are not alike", line)
            found = join(found, part)
        if found is None or not found.is_number:
            raise NotPortable("picks from a tuple that holds no numbers", line)
        return call("item", owner, place), found

    def _operation(self, node: ast.BinOp) -> Typed:
        if isinstance(node.op, ast.Pow):
            return self._power(self.number(node.left), self.number(node.right), node.lineno)
        sides = self.expression(node.left), self.expression(node.right)
        if isinstance(node.op, _BITS) and sides[0][1] == sides[1][1] == BOOL:
            return ast.BinOp(sides[0][0], node.op, sides[1][0]), BOOL
        (left, one), (right, other) = counted(sides[0], node.left), counted(sides[1], node.right)
        if one is None or other is None:
            return ast.BinOp(left, node.op, right), None
        if isinstance(node.op, ast.Div):
            return ast.BinOp(left, node.op, right), FLOAT
        return operation(node, left, right, one, other)

    def _power(self, base: Typed, exponent: Typed, line: int) -> Typed:
        (left, one), (right, other) = base, exponent
        if isinstance(left, ast.Constant) and isinstance(right, ast.Constant):
            return constant(_raised(left.value, right.value, line), line)
        known = written(right)
        # What `power` does with such an exponent: the compiler need not find out.
        if known == 0.5:
            return call("sqrt", as_kind(left, one, FLOAT)), FLOAT
        by = as_kind(right, other, FLOAT)
        name, kind = "power", FLOAT
        if known is not None and float(known).is_integer() and abs(known) <= LARGEST_POWER:
            name, by = "integer_power", ast.Constant(int(known))
        if one is not None and other is not None and one.may_be_whole and other.may_be_whole:
            kind = _bound_of_power(one, other)
            name = name if kind.is_exact else f"mixed_{name}"
        return call(name, as_kind(left, one, FLOAT), by), clipped(kind)

    def _sign(self, node: ast.UnaryOp) -> Typed:
        if isinstance(node.op, ast.Not):
            return ast.UnaryOp(node.op, self.truth(node.operand)), BOOL
        found, kind = self.number(node.operand)
        if isinstance(node.op, ast.Invert):
            if kind is not None and kind.tag != "int":
                raise NotPortable(f"inverts `{shortened(node.operand)}`", node.lineno)
            if kind is None:
                return found, None
            less = ast.copy_location(ast.BinOp(node.operand, ast.Sub(), node.operand), node)
            return whole_operation(less, ast.Constant(-1), found, whole(-1, -1), kind)
        if isinstance(node.op, ast.UAdd) or kind is None:
            return found, kind
        if isinstance(found, ast.Constant):
            return constant(-found.value, node.lineno)  # type: ignore[operator]
        is_whole = kind.may_be_whole
        negated = replace(kind, low=-kind.high, high=-kind.low) if is_whole else kind
        return ast.UnaryOp(node.op, found), negated

    def _comparison(self, node: ast.Compare) -> Typed:
        if not all(isinstance(op, _COMPARISONS) for op in node.ops):
            raise NotPortable(f"compares `{shortened(node)}`", node.lineno)
        parts = [self.number(each)[0] for each in (node.left, *node.comparators)]
        return ast.Compare(parts[0], node.ops, parts[1:]), BOOL

    def _junction(self, node: ast.BoolOp) -> Typed:
        parts = [self.expression(each) for each in node.values]
        values, kind = self._alike(parts, node.lineno)
        return ast.BoolOp(node.op, values), kind

    def _choice(self, node: ast.IfExp) -> Typed:
        test = self.truth(node.test)
        arms = [self.expression(node.body), self.expression(node.orelse)]
        values, kind = self._alike(arms, node.lineno, numbers_only=False)
        return ast.IfExp(test, *values), kind

    def _alike(
        self, parts: Sequence[Typed], line: int, *, numbers_only: bool = True
    ) -> tuple[list[ast.expr], Kind | None]:
        """Turns expressions into ones of the same kind."""
        kind: Kind | None = None
        try:
            for _, each in parts:
                kind = join(kind, each)
        except NotPortable as error:
            raise NotPortable(error.reason, line) from None
        if numbers_only and kind is not None and not kind.is_number:
            raise NotPortable("joins what are no numbers", line)
        return [as_kind(value, each, kind) for value, each in parts], kind

    def _tuple(self, node: ast.Tuple) -> Typed:
        parts = [self.expression(each) for each in node.elts]
        found = [kind for _, kind in parts if kind is not None]
        tuple_ = ast.Tuple([value for value, _ in parts], ast.Load())
        try:
            return tuple_, Kind("tuple", parts=tuple(found)) if len(found) == len(parts) else None
        except NotPortable as error:
            raise NotPortable(error.reason, node.lineno) from None


def counted(typed: Typed, node: ast.expr) -> Typed:
    """Returns a number unchanged, and a truth value as 0 or 1."""
    found, kind = typed
    if kind is not None and not kind.is_number:
        raise NotPortable(f"computes with `{shortened(node)}`, which is no number", node.lineno)
    if kind is not None and kind.tag == "bool":
        return call("whole", found), whole(0, 1)
    return found, kind


def operation(node: ast.BinOp, left: ast.expr, right: ast.expr, one: Kind, other: Kind) -> Typed:
    """Translates an operation on two numbers."""
    if "float" not in (one.tag, other.tag):
        return whole_operation(node, left, right, one, other)
    operator = type(node.op)
    if operator not in _SUMS and operator not in _DIVISIONS:
        raise NotPortable(f"uses `{shortened(node)}` on fractional numbers", node.lineno)
    name, bound = (_SUMS if operator in _SUMS else _DIVISIONS)[operator]
    kind = FLOAT
    if one.may_be_whole and other.may_be_whole:
        kind = replace(bound(one, other), tag="float")
    if not kind.is_exact:
        sides = as_kind(left, one, FLOAT), as_kind(right, other, FLOAT)
        return call(f"mixed_{name}", *sides), clipped(kind)
    found = ast.BinOp(left, node.op, right) if operator in _SUMS else call(name, left, right)
    return found, kind


def _bound_of_power(one: Kind, exponent: Kind) -> Kind:
    """Bounds a power that is whole in Python, if it is one."""
    if exponent.high < 0:
        return FLOAT
    is_known = exponent.low == exponent.high <= LARGEST_POWER
    bounds = kinds.raised(one, exponent.low) if is_known else whole(-2 * MOST_WHOLE, 2 * MOST_WHOLE)
    return replace(bounds, tag="float")


def whole_operation(
    node: ast.BinOp, left: ast.expr, right: ast.expr, one: Kind, other: Kind
) -> Typed:
    """Translates an operation on two whole numbers, checked where bounds do not prove it."""
    operator = type(node.op)
    plain = ast.BinOp(left, node.op, right)
    if operator in _SUMS:
        operation, bound = _SUMS[operator]
        kind = bound(one, other)
        return (plain if kind.is_exact else call(operation, left, right)), clipped(kind)
    if operator in _DIVISIONS:
        return plain, _DIVISIONS[operator][1](one, other)
    if isinstance(node.op, _BITS):
        kind = kinds.masked(one, other)
        return (plain if kind.is_exact else call("within", plain)), clipped(kind)
    if isinstance(node.op, _SHIFTS):
        return _shift(node.op, left, right, one, other)
    raise NotPortable(f"uses `{shortened(node)}`", node.lineno)


def _shift(
    operator: ast.operator, left: ast.expr, right: ast.expr, one: Kind, other: Kind
) -> Typed:
    is_safe = other.low >= 0 and other.high <= 62
    if isinstance(operator, ast.RShift):
        plain = ast.BinOp(left, operator, right)
        return (plain if is_safe else call("shift_right", left, right)), kinds.divided(one, other)
    kind = kinds.shifted_left(one, other)
    if is_safe and kind.is_exact:
        return ast.BinOp(left, operator, right), kind
    return call("shift_left", left, right), clipped(kind)


def _raised(base: Any, exponent: Any, line: int) -> object:
    if abs(exponent) > LARGEST_POWER:
        raise NotPortable("raises a number to a power beyond 64", line)
    is_whole = isinstance(base, int) and isinstance(exponent, int) and exponent >= 0
    try:
        return base**exponent if is_whole else power(base, exponent)
    except (ArithmeticError, ValueError) as error:
        raise NotPortable(f"raises a number to a power that fails: {error}", line) from error


def written(node: ast.expr) -> float | None:
    """Returns the value of a literal number."""
    value = node.value if isinstance(node, ast.Constant) else None
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return value if is_number else None  # type: ignore[return-value]


def _said(node: ast.expr) -> str:
    return f"`{shortened(node)}`"


def shortened(node: ast.AST) -> str:
    """Quotes source in one short line."""
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= 60 else text[:57] + "..."
