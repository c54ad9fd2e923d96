"""Translates the expressions of one function of a policy."""

from __future__ import annotations

import ast
import inspect
import math
from collections.abc import Callable, Sequence
from types import BuiltinFunctionType, FunctionType
from typing import TYPE_CHECKING, Any

from podium.policies import kind as kinds
from podium.policies.arithmetic import LARGEST_POWER, TESTS, UNARY
from podium.policies.kind import (
    BOOL,
    FIELDS,
    FLOAT,
    LENGTH,
    SLOT_MILLI,
    WHOLE,
    Kind,
    NotPortable,
    clipped,
    join,
    whole,
)
from podium.policies.translation import Function, as_kind, call, constant, resolved

if TYPE_CHECKING:
    from podium.policies.translation import Program

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
MOST_COLUMNS = 64
"""Columns that are checked for all rows at once."""

_COMPARISONS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq)
_BITS = (ast.BitAnd, ast.BitOr, ast.BitXor)
_SHIFTS = (ast.LShift, ast.RShift)


class Expressions:
    """Translates expressions, given what is known of the function's names."""

    names: set[str]  # arguments, and names that the function sets
    known: frozenset[str]  # those that are set for sure where it is now

    def __init__(self, program: Program, function: Function) -> None:
        self.program, self.function = program, function
        self.rows: dict[tuple[str, str], int] = {}  # columns read of (table, row) in a loop
        self._by_type: dict[type[ast.expr], Callable[[Any], Typed]] = {
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
            ast.Call: self._call,
        }

    def expression(self, node: ast.expr) -> Typed:
        """Translates any expression."""
        translate = self._by_type.get(type(node))
        if translate is None:
            raise NotPortable(f"uses {_said(node)}", node.lineno)
        found, kind = translate(node)
        if kind is None:
            self.program.note_unknown(node)
        return ast.copy_location(found, node), kind

    def number(self, node: ast.expr) -> Typed:
        """Translates an expression that must be a number; a truth becomes 0 or 1."""
        return _counted(self.expression(node), node)

    def real(self, node: ast.expr) -> ast.expr:
        """Translates a number for a function of real ones."""
        found, kind = self.number(node)
        return as_kind(found, kind, FLOAT)

    def index(self, node: ast.expr) -> Typed:
        """Translates an expression that must be a whole number."""
        found, kind = self.number(node)
        if kind is not None and kind.tag != "int":
            raise NotPortable(f"needs `{_shortened(node)}` to be a whole number", node.lineno)
        return found, kind

    def truth(self, node: ast.expr) -> ast.expr:
        """Translates a condition."""
        found, kind = self.expression(node)
        if kind is not None and not kind.is_number:
            raise NotPortable(f"asks whether `{_shortened(node)}` is true", node.lineno)
        return found

    def resolved(self, node: ast.expr) -> Any:
        """Finds the object outside the function that a name stands for."""
        return resolved(node, self.function, self.names.__contains__)

    def _name(self, node: ast.Name) -> Typed:
        if node.id not in self.names:
            if node.id not in self.function.outer:
                raise NotPortable(f"uses {node.id}, which is defined nowhere", node.lineno)
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
            raise NotPortable(f"uses `{_shortened(node)}` without calling it", node.lineno)
        return constant(value, node.lineno)

    def _attribute(self, node: ast.Attribute) -> Typed:
        value = self.resolved(node)
        if value is not None:
            return self._outer(value, node)
        owner, kind = self.expression(node.value)
        if kind is None:
            return node, None
        fields = FIELDS.get(kind.tag, {})
        if node.attr not in fields:
            raise NotPortable(f"reads `{_shortened(node)}`", node.lineno)
        return ast.Attribute(owner, node.attr, ast.Load()), fields[node.attr]

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
        raise NotPortable(f"indexes `{_shortened(node.value)}`", node.lineno)

    def _cell(self, table: ast.expr, row: ast.expr, column: ast.expr) -> Typed:
        (place, _), (across, kind) = self.index(row), self.index(column)
        key = (getattr(table, "id", ""), getattr(row, "id", ""))
        if key not in self.rows or kind is None or not 0 <= kind.low <= kind.high < MOST_COLUMNS:
            return call("cell", table, place, across), FLOAT
        # The loop over the rows checks the columns once.
        self.rows[key] = max(self.rows[key], kind.high + 1)
        return call("row_cell", table, place, across), FLOAT

    def _item(
        self, owner: ast.expr, kind: Kind, place: ast.expr, at: Kind | None, line: int
    ) -> Typed:
        size = len(kind.parts)
        if at is not None and at.low == at.high and -size <= at.low < size:
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
            return self._power(node.left, node.right)
        sides = self.expression(node.left), self.expression(node.right)
        if isinstance(node.op, _BITS) and sides[0][1] == sides[1][1] == BOOL:
            return ast.BinOp(sides[0][0], node.op, sides[1][0]), BOOL
        (left, one), (right, other) = _counted(sides[0], node.left), _counted(sides[1], node.right)
        if one is None or other is None:
            return ast.BinOp(left, node.op, right), None
        if isinstance(node.op, ast.Div):
            return ast.BinOp(left, node.op, right), FLOAT
        if "float" in (one.tag, other.tag):
            return self._real_operation(node, left, right)
        return _whole_operation(node, left, right, one, other)

    def _real_operation(self, node: ast.BinOp, left: ast.expr, right: ast.expr) -> Typed:
        if type(node.op) in _SUMS:
            return ast.BinOp(left, node.op, right), FLOAT
        if type(node.op) in _DIVISIONS:
            return call(_DIVISIONS[type(node.op)][0], left, right), FLOAT
        raise NotPortable(f"uses `{_shortened(node)}` on broken numbers", node.lineno)

    def _power(self, base: ast.expr, exponent: ast.expr) -> Typed:
        (left, one), (right, other) = self.number(base), self.number(exponent)
        if isinstance(left, ast.Constant) and isinstance(right, ast.Constant):
            return constant(_raised(left.value, right.value, base.lineno), base.lineno)
        written = _written(right)
        if written == 0.5:
            return call("sqrt", as_kind(left, one, FLOAT)), FLOAT
        if written is not None and float(written).is_integer() and abs(written) <= LARGEST_POWER:
            return call(
                "integer_power", as_kind(left, one, FLOAT), ast.Constant(int(written))
            ), FLOAT
        return call("power", as_kind(left, one, FLOAT), as_kind(right, other, FLOAT)), FLOAT

    def _sign(self, node: ast.UnaryOp) -> Typed:
        if isinstance(node.op, ast.Not):
            return ast.UnaryOp(node.op, self.truth(node.operand)), BOOL
        found, kind = self.number(node.operand)
        if isinstance(node.op, ast.Invert):
            if kind is not None and kind.tag != "int":
                raise NotPortable(f"inverts `{_shortened(node.operand)}`", node.lineno)
            inverted = kind and whole(-1 - kind.high, -1 - kind.low)
            return ast.BinOp(ast.Constant(-1), ast.Sub(), found), inverted and clipped(inverted)
        if isinstance(node.op, ast.UAdd) or kind is None:
            return found, kind
        if isinstance(found, ast.Constant):
            return constant(-found.value, node.lineno)  # type: ignore[operator]
        return ast.UnaryOp(node.op, found), FLOAT if kind == FLOAT else whole(-kind.high, -kind.low)

    def _comparison(self, node: ast.Compare) -> Typed:
        if not all(isinstance(op, _COMPARISONS) for op in node.ops):
            raise NotPortable(f"compares `{_shortened(node)}`", node.lineno)
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
        return tuple_, Kind("tuple", parts=tuple(found)) if len(found) == len(parts) else None

    def _call(self, node: ast.Call) -> Typed:
        called = self.resolved(node.func)
        if isinstance(called, FunctionType):
            return self._own_call(node, called)
        if node.keywords or any(isinstance(each, ast.Starred) for each in node.args):
            raise NotPortable(f"calls `{_shortened(node)}` with named arguments", node.lineno)
        name = getattr(called, "__name__", "")
        if getattr(math, name, None) is called and isinstance(called, BuiltinFunctionType):
            return self._math(name, node)
        handler = _BUILTINS.get(name)
        if handler is None or called is not handler[0] or len(node.args) not in handler[1]:
            raise NotPortable(f"calls `{_shortened(node)}`", node.lineno)
        found: Typed = getattr(self, f"_{name}")(node)
        return found

    def _own_call(self, node: ast.Call, called: FunctionType) -> Typed:
        function = self.program.function(called)
        self.function.calls.add(function.name)
        given = _bound(node, called, function)
        values = []
        for name, argument in given.items():
            value, kind = (
                self.expression(argument) if isinstance(argument, ast.expr)
                else constant(argument, node.lineno)
            )  # fmt: skip
            bases = function.bases
            bases[name] = self.program.learn(bases.get(name), kind, node.lineno)
            values.append(as_kind(value, kind, bases[name]))
        return ast.Call(ast.Name(function.name, ast.Load()), values, []), function.result

    def _math(self, name: str, node: ast.Call) -> Typed:
        count = len(node.args)
        if name in UNARY and count == 1:
            return call(name, self.real(node.args[0])), FLOAT
        if name in TESTS and count == 1:
            return call(name, self.real(node.args[0])), BOOL
        if name in _ROUNDINGS and count == 1:
            return self._rounding(_ROUNDINGS[name], node.args[0])
        if name == "pow" and count == 2:
            return self._power(*node.args)
        if name in _PAIRS and count == 2:
            return call(_PAIRS[name], *[self.real(each) for each in node.args]), FLOAT
        if name == "log" and count == 2:
            parts = [call("log", self.real(each)) for each in node.args]
            return ast.BinOp(parts[0], ast.Div(), parts[1]), FLOAT
        raise NotPortable(f"calls math.{name}()", node.lineno)

    def _rounding(self, operation: str, argument: ast.expr) -> Typed:
        value, kind = self.number(argument)
        if kind is None or kind.tag == "int":
            return value, kind
        return call(operation, value), WHOLE

    def _abs(self, node: ast.Call) -> Typed:
        value, kind = self.number(node.args[0])
        found = ast.Call(ast.Name("abs", ast.Load()), [value], [])
        if kind is None or kind.tag == "float":
            return found, kind
        return found, whole(0, max(abs(kind.low), abs(kind.high)))

    def _bool(self, node: ast.Call) -> Typed:
        return ast.Compare(self.number(node.args[0])[0], [ast.NotEq()], [ast.Constant(0)]), BOOL

    def _float(self, node: ast.Call) -> Typed:
        return self.real(node.args[0]), FLOAT

    def _int(self, node: ast.Call) -> Typed:
        return self._rounding("truncated", node.args[0])

    def _round(self, node: ast.Call) -> Typed:
        if len(node.args) == 1:
            return self._rounding("rounded", node.args[0])
        (value, kind), (digits, _) = self.number(node.args[0]), self.index(node.args[1])
        written = _written(digits)
        if written is None or not abs(written) <= 15 or (kind != FLOAT and written < 0):
            raise NotPortable(f"rounds `{_shortened(node)}`", node.lineno)
        return (call("rounded_to", value, digits), FLOAT) if kind == FLOAT else (value, kind)

    def _pow(self, node: ast.Call) -> Typed:
        return self._power(*node.args)

    def _len(self, node: ast.Call) -> Typed:
        value, kind = self.expression(node.args[0])
        if kind is not None and kind.tag == "tuple":
            return constant(len(kind.parts), node.lineno)
        if kind is not None and kind.tag not in ("gpus", "table"):
            raise NotPortable(f"calls `{_shortened(node)}`", node.lineno)
        high = kinds.MOST_SLOTS if kind == kinds.GPUS else LENGTH.high
        return ast.Call(ast.Name("len", ast.Load()), [value], []), whole(0, high)

    def _sum(self, node: ast.Call) -> Typed:
        start = self.number(node.args[1]) if len(node.args) == 2 else constant(0, node.lineno)
        value, kind = self.expression(node.args[0])
        if kind is None or start[1] is None:
            return node, None
        if kind == kinds.GPUS and start[1].tag == "int":
            total = call("total", value, ast.Constant(0))
            bounds = whole(0, kinds.MOST_SLOTS * SLOT_MILLI.high)
            return _whole_operation(_plus(node), total, start[0], bounds, start[1])
        first = as_kind(*start, FLOAT)
        if kind == kinds.TABLE:
            return call("total", call("entries", value), first), FLOAT
        if kind == kinds.GPUS:
            return call("total", value, first), FLOAT
        return self._folded(value, kind, node, lambda one, other: self._plus(one, other, node))

    def _plus(self, one: Typed, other: Typed, node: ast.Call) -> Typed:
        (left, a), (right, b) = one, other
        assert a is not None
        assert b is not None
        if "float" in (a.tag, b.tag):
            return ast.BinOp(left, ast.Add(), right), FLOAT
        return _whole_operation(_plus(node), left, right, a, b)

    def _max(self, node: ast.Call) -> Typed:
        return self._extreme(node, "maximum", "largest")

    def _min(self, node: ast.Call) -> Typed:
        return self._extreme(node, "minimum", "smallest")

    def _extreme(self, node: ast.Call, of_two: str, of_all: str) -> Typed:
        if len(node.args) > 1:
            parts = [self.number(each) for each in node.args]
            values, kind = self._alike(parts, node.lineno)
            found = values[0]
            for value in values[1:]:
                found = ast.copy_location(call(of_two, found, value), node)
            bounds = [each for _, each in parts if each is not None]
            return found, _picked(of_two, bounds, kind) if len(bounds) == len(parts) else None
        value, kind = self.expression(node.args[0])
        if kind is None:
            return node, None
        if kind == kinds.GPUS:
            return call(of_all, value), SLOT_MILLI
        if kind == kinds.TABLE:
            return call(of_all, call("entries", value)), FLOAT
        two = ast.Call(node.func, [node.args[0]], [])
        return self._folded(value, kind, two, lambda one, other: self._pick(of_two, one, other))

    def _pick(self, operation: str, one: Typed, other: Typed) -> Typed:
        values, kind = self._alike([one, other], 0)
        return call(operation, *values), kind

    def _folded(
        self, value: ast.expr, kind: Kind, node: ast.Call, step: Callable[[Typed, Typed], Typed]
    ) -> Typed:
        """Takes the items of a tuple one after the other."""
        if kind.tag != "tuple" or not kind.parts or not all(p.is_number for p in kind.parts):
            raise NotPortable(f"calls `{_shortened(node)}`", node.lineno)
        items: list[Typed] = []
        for index, part in enumerate(kind.parts):
            read: ast.expr = ast.Subscript(value, ast.Constant(index), ast.Load())
            if isinstance(value, ast.Tuple):
                read = value.elts[index]
            is_truth = part.tag == "bool"
            items.append((call("whole", read), whole(0, 1)) if is_truth else (read, part))
        if len(node.args) == 2:
            items.insert(0, self.number(node.args[1]))
        found = items[0]
        for each in items[1:]:
            found = step(found, each)
        return found


def _counted(typed: Typed, node: ast.expr) -> Typed:
    """Takes a number as it is, and a truth as 0 or 1."""
    found, kind = typed
    if kind is not None and not kind.is_number:
        raise NotPortable(f"computes with `{_shortened(node)}`, which is no number", node.lineno)
    if kind is not None and kind.tag == "bool":
        return call("whole", found), whole(0, 1)
    return found, kind


def _whole_operation(
    node: ast.BinOp, left: ast.expr, right: ast.expr, one: Kind, other: Kind
) -> Typed:
    operator = type(node.op)
    plain = ast.BinOp(left, node.op, right)
    if operator in _SUMS:
        operation, bound = _SUMS[operator]
        kind = bound(one, other)
        return (plain if kind.is_exact else call(operation, left, right)), clipped(kind)
    if operator in _DIVISIONS:
        return plain, _DIVISIONS[operator][1](one, other)
    if isinstance(node.op, _BITS):
        return plain, clipped(kinds.masked(one, other))
    if isinstance(node.op, _SHIFTS):
        return _shift(node.op, left, right, one, other)
    raise NotPortable(f"uses `{_shortened(node)}`", node.lineno)


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


def _picked(operation: str, parts: list[Kind], kind: Kind | None) -> Kind | None:
    if kind is None or kind.tag != "int":
        return kind
    pick = max if operation == "maximum" else min
    return whole(pick(p.low for p in parts), pick(p.high for p in parts))


def _raised(base: Any, exponent: Any, line: int) -> object:
    if abs(exponent) > LARGEST_POWER:
        raise NotPortable("raises a number to a power beyond 64", line)
    try:
        found = base**exponent
    except (ArithmeticError, ValueError) as error:
        raise NotPortable(f"raises a number to a power that fails: {error}", line) from error
    if isinstance(found, complex):
        raise NotPortable("raises a negative number to a broken power", line)
    return found


def _bound(node: ast.Call, called: FunctionType, function: Function) -> dict[str, Any]:
    """Joins arguments with their names, as Python does."""
    if any(isinstance(each, ast.Starred) for each in node.args):
        raise NotPortable("calls with starred arguments", node.lineno)
    names = function.arguments
    given: dict[str, Any] = dict(zip(names, node.args, strict=False))
    named = {each.arg: each.value for each in node.keywords if each.arg is not None}
    defaults = called.__defaults__ or ()
    usual = dict(zip(names[len(names) - len(defaults) :], defaults, strict=True))
    found = {**usual, **given, **named}
    is_clear = len(node.args) <= len(names) and len(named) == len(node.keywords)
    if not is_clear or set(found) != set(names) or given.keys() & named.keys():
        raise NotPortable(
            f"calls {called.__name__}() with other arguments than it takes", node.lineno
        )
    return {name: found[name] for name in names}


def _written(node: ast.expr) -> float | None:
    value = node.value if isinstance(node, ast.Constant) else None
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return value if is_number else None  # type: ignore[return-value]


def _plus(node: ast.expr) -> ast.BinOp:
    return ast.copy_location(ast.BinOp(node, ast.Add(), node), node)


def _said(node: ast.expr) -> str:
    return f"`{_shortened(node)}`"


def _shortened(node: ast.AST) -> str:
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= 60 else text[:57] + "..."


_ROUNDINGS = {"floor": "floored", "ceil": "ceiled", "trunc": "truncated"}
_PAIRS = {"atan2": "turned", "copysign": "signed", "hypot": "hypotenuse"}
_MANY = tuple(range(1, 256))
_BUILTINS: dict[str, tuple[object, tuple[int, ...]]] = {
    "abs": (abs, (1,)),
    "bool": (bool, (1,)),
    "float": (float, (1,)),
    "int": (int, (1,)),
    "len": (len, (1,)),
    "max": (max, _MANY),
    "min": (min, _MANY),
    "pow": (pow, (2,)),
    "round": (round, (1, 2)),
    "sum": (sum, (1, 2)),
}
"""Built-in functions, and with how many arguments they may be called."""
