"""Translates calls in a policy: of built-in functions, of math's, and of plain ones."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable
from dataclasses import replace
from types import BuiltinFunctionType, FunctionType
from typing import TYPE_CHECKING

from podium.policies.language import kind as kinds
from podium.policies.language.arithmetic import TESTS, UNARY
from podium.policies.language.expressions import (
    Expressions,
    Typed,
    operation,
    shortened,
    whole_operation,
    written,
)
from podium.policies.language.kind import (
    BOOL,
    FLOAT,
    LENGTH,
    SLOT_MILLI,
    WHOLE,
    Kind,
    NotPortable,
    whole,
)
from podium.policies.language.translation import Function, as_kind, call, constant

if TYPE_CHECKING:
    from typing import Any

    from podium.policies.language.translation import Program


class Calls(Expressions):
    """Translates expressions with calls in them."""

    def __init__(self, program: Program, function: Function) -> None:
        super().__init__(program, function)
        self.by_type[ast.Call] = self._call

    def _call(self, node: ast.Call) -> Typed:
        called = self.resolved(node.func)
        if called is None:
            self._refuse_nowhere(node.func)
        if isinstance(called, FunctionType):
            return self._own_call(node, called)
        if node.keywords or any(isinstance(each, ast.Starred) for each in node.args):
            raise NotPortable(f"calls `{shortened(node)}` with named arguments", node.lineno)
        name = getattr(called, "__name__", "")
        if getattr(math, name, None) is called and isinstance(called, BuiltinFunctionType):
            return self._math(name, node)
        handler = _BUILTINS.get(name)
        if handler is None or called is not handler[0] or len(node.args) not in handler[1]:
            raise NotPortable(f"calls `{shortened(node)}`", node.lineno)
        found: Typed = getattr(self, f"_{name}")(node)
        return found

    def _refuse_nowhere(self, node: ast.expr) -> None:
        """Refuses to call an undefined name, and suggests a similar one."""
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            self._attribute(node)
        elif isinstance(node, ast.Name) and node.id not in {*self.names, *self.function.outer}:
            raise self.undefined(node)

    def _own_call(self, node: ast.Call, called: FunctionType) -> Typed:
        function = self.program.function(called)
        self.function.calls.add(function.name)
        arguments = _bound(node, called, function)
        values = []
        for name, argument in arguments.items():
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
            base, exponent = ((self.real(each), FLOAT) for each in node.args)
            return self._power(base, exponent, node.lineno)
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
        if kind is None or not kind.may_be_whole:
            return found, kind
        return found, replace(kind, low=0, high=max(abs(kind.low), abs(kind.high)))

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
        known = written(digits)
        if known is None or not 0 <= known <= 15:
            raise NotPortable(f"rounds `{shortened(node)}`", node.lineno)
        is_whole = kind is None or kind.tag == "int"
        return (value if is_whole else call("rounded_to", value, digits)), kind

    def _pow(self, node: ast.Call) -> Typed:
        base, exponent = map(self.number, node.args)
        return self._power(base, exponent, node.lineno)

    def _len(self, node: ast.Call) -> Typed:
        value, kind = self.expression(node.args[0])
        if kind is not None and kind.tag == "tuple" and isinstance(value, ast.Name):
            return constant(len(kind.parts), node.lineno)
        if kind is not None and kind.tag not in ("gpus", "table"):
            raise NotPortable(f"calls `{shortened(node)}`", node.lineno)
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
            return whole_operation(_plus(node), total, start[0], bounds, start[1])
        first = as_kind(*start, FLOAT)
        if kind == kinds.TABLE:
            return call("total", call("entries", value), first), kinds.join(FLOAT, start[1])
        if kind == kinds.GPUS and not start[1].may_be_whole:
            return call("total", value, first), FLOAT
        return self._folded(value, kind, node, lambda one, other: self._plus(one, other, node))

    def _plus(self, one: Typed, other: Typed, node: ast.Call) -> Typed:
        (left, a), (right, b) = one, other
        assert a is not None
        assert b is not None
        return operation(_plus(node), left, right, a, b)

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
        one = ast.copy_location(ast.Call(node.func, [node.args[0]], []), node)
        return self._folded(value, kind, one, lambda a, b: self._pick(of_two, a, b))

    def _pick(self, operation: str, one: Typed, other: Typed) -> Typed:
        values, kind = self._alike([one, other], 0)
        return call(operation, *values), kind

    def _folded(
        self, value: ast.expr, kind: Kind, node: ast.Call, step: Callable[[Typed, Typed], Typed]
    ) -> Typed:
        """Applies a function to the items of a tuple one after the other."""
        if not isinstance(value, ast.Tuple | ast.Name):  # it would be computed for every item
            reason = f"calls `{shortened(node)}`; put the tuple into a name first"
            raise NotPortable(reason, node.lineno)
        if kind.tag != "tuple" or not kind.parts or not all(p.is_number for p in kind.parts):
            raise NotPortable(f"calls `{shortened(node)}`", node.lineno)
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


def _picked(operation: str, parts: list[Kind], kind: Kind | None) -> Kind | None:
    if kind is None or kind.tag != "int":
        return kind
    pick = max if operation == "maximum" else min
    return whole(pick(p.low for p in parts), pick(p.high for p in parts))


def _bound(node: ast.Call, called: FunctionType, function: Function) -> dict[str, Any]:
    """Joins arguments with their names, as Python does."""
    if any(isinstance(each, ast.Starred) for each in node.args):
        raise NotPortable("calls with starred arguments", node.lineno)
    names = function.arguments
    positional: dict[str, Any] = dict(zip(names, node.args, strict=False))
    named = {each.arg: each.value for each in node.keywords if each.arg is not None}
    defaults = (called.__defaults__ or ())[-len(names) :] if names else ()
    by_default = dict(zip(names[len(names) - len(defaults) :], defaults, strict=True))
    found = {**by_default, **positional, **named}
    is_clear = len(node.args) <= len(names) and len(named) == len(node.keywords)
    if not is_clear or set(found) != set(names) or positional.keys() & named.keys():
        raise NotPortable(
            f"calls {called.__name__}() with other arguments than it takes", node.lineno
        )
    return {name: found[name] for name in names}


def _plus(node: ast.expr) -> ast.BinOp:
    return ast.copy_location(ast.BinOp(node, ast.Add(), node), node)


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
