"""Defines the operations of `arithmetic` for compiled code: the same results, the same refusals.

Numba is imported at the top, as in `abi`.
"""

from __future__ import annotations

import ctypes
import math
from pathlib import Path
from types import FunctionType
from typing import Any

import llvmlite.binding
from numba import types

from podium.policies.jit import by_type, marked, stamp_of
from podium.policies.language import arithmetic, native_records
from podium.policies.language.arithmetic import (
    BAD_POWER,
    BAD_SHIFT,
    BAD_TABLE,
    FAILED,
    LARGEST_POWER,
    MOST_SHIFT,
    OUTSIDE,
    TOO_LARGE,
)
from podium.policies.language.kind import MOST_WHOLE

EMPTY = "the table is empty"
LEAST_WHOLE = -MOST_WHOLE


def sources() -> list[str]:
    """Reads the texts that machine code of policies depends on."""
    files = (__file__, arithmetic.__file__, native_records.__file__)
    return [Path(each).read_text() for each in files]


_MARK = stamp_of(sources())[:24]


def _native(function: Any, name: str = "") -> Any:
    # A copy, under a name that no other function has: see `marked`.
    copy = FunctionType(
        function.__code__, function.__globals__, function.__name__, None, function.__closure__
    )
    copy.__qualname__ = f"native_{name or function.__name__}"
    return by_type(marked(copy, _MARK))


@_native
def _within(value):
    if LEAST_WHOLE <= value <= MOST_WHOLE:
        return value
    raise OverflowError(TOO_LARGE)


@_native
def add(one, other):
    """Adds whole numbers."""
    return _within(one + other)


@_native
def subtract(one, other):
    """Subtracts whole numbers."""
    return _within(one - other)


@_native
def multiply(one, other):
    """Multiplies whole numbers; the product of doubles tells whether 64 bits hold theirs."""
    _within(float(one) * float(other))
    return _within(one * other)


_unmixed = _native(arithmetic.unmixed)


@_native
def mixed_add(one, other):
    """Adds numbers that may be whole."""
    return _unmixed(one + other, one, other)


@_native
def mixed_subtract(one, other):
    """Subtracts numbers that may be whole."""
    return _unmixed(one - other, one, other)


@_native
def mixed_multiply(one, other):
    """Multiplies numbers that may be whole."""
    return _unmixed(one * other, one, other)


@_native
def shift_left(value, bits):
    """Shifts to the left."""
    if not 0 <= bits <= MOST_SHIFT:
        raise ValueError(BAD_SHIFT)
    if abs(value) > MOST_WHOLE >> bits:
        raise OverflowError(TOO_LARGE)
    return value << bits


# Under a name that LLVM does not know: it would take a root for a power of 0.5, and compute
# other powers that it sees through, which is not what the C library does, to the bit.
_POW = "podium_pow"
_c_pow = ctypes.CDLL(None).pow
llvmlite.binding.add_symbol(_POW, ctypes.cast(_c_pow, ctypes.c_void_p).value)
_pow = types.ExternalFunction(_POW, types.float64(types.float64, types.float64))


_integer_power = _native(arithmetic.integer_power)


@_native
def power(base, exponent):
    """Multiplies, takes a root or calls the C library's pow, by the value of the exponent alone."""
    raised, by = float(base), float(exponent)
    if by == 0.5:
        if raised < 0.0:
            raise ValueError(FAILED)
        return math.sqrt(raised)
    if abs(by) <= LARGEST_POWER and by == math.floor(by):
        return _integer_power(raised, int(by))
    # Doubles beyond 2**53 are whole; the floor of larger ones does not fit into 64 bits.
    is_whole = math.isfinite(by) and (abs(by) >= MOST_WHOLE or by == math.floor(by))
    if (raised == 0.0 and by < 0.0) or (raised < 0.0 and not is_whole):
        raise ValueError(BAD_POWER)
    found = _pow(raised, by)
    if math.isinf(found) and math.isfinite(raised) and math.isfinite(by):
        raise OverflowError(FAILED)
    return found


@_native
def mixed_integer_power(base, exponent):
    """Raises what may be whole to a whole power."""
    return _unmixed(_integer_power(base, exponent), base, float(exponent))


@_native
def mixed_power(base, exponent):
    """Raises what may be whole to a power that may be whole."""
    return _unmixed(power(base, exponent), base, exponent)


# Numba takes only that branch of `ndim` which fits the table, so each is compiled for both ranks.
# A branch that does nothing but raise would give no number, and its caller would not compile.


@_native
def _refuse(is_refused):
    if is_refused:
        raise TypeError(BAD_TABLE)


@_native
def entry(table, index):
    """Reads one number of a plain table."""
    if table.ndim == 1:
        if 0 <= index < len(table):
            return float(table[index])
        raise IndexError(OUTSIDE)
    else:
        _refuse(True)
        return 0.0


@_native
def cell(table, row, column):
    """Reads one number of a table of rows."""
    if table.ndim == 2:
        if 0 <= row < table.shape[0] and 0 <= column < table.shape[1]:
            return float(table[row, column])
        raise IndexError(OUTSIDE)
    else:
        _refuse(True)
        return 0.0


@_native
def row_cell(table, row, column):
    """Reads a number whose row is known to be there; the compiler asks once for a whole loop."""
    if table.ndim == 2:
        if column < table.shape[1]:
            return table[row, column]
        raise IndexError(OUTSIDE)
    else:
        _refuse(True)
        return 0.0


@_native
def entries(table):
    """Returns the numbers of a plain table."""
    if table.ndim == 1:
        return table
    else:
        _refuse(True)
        return table[0]


@_native
def smallest(values):
    """Finds the smallest of a list."""
    if len(values) == 0:
        raise ValueError(EMPTY)
    found = values[0]
    for value in values:
        found = value if value < found else found
    return found


@_native
def largest(values):
    """Finds the largest of a list."""
    if len(values) == 0:
        raise ValueError(EMPTY)
    found = values[0]
    for value in values:
        found = value if value > found else found
    return found


@_native
def truncated(value):
    """Cuts off what is behind the point; NaN is not within any bounds."""
    if abs(value) <= MOST_WHOLE:
        return int(value)
    raise OverflowError(TOO_LARGE)


@_native
def floored(value):
    """Rounds down."""
    return math.floor(_within(value))


@_native
def ceiled(value):
    """Rounds up."""
    return math.ceil(_within(value))


@_native
def rounded(value):
    """Rounds to the nearest whole number, halves to the even one."""
    below = math.floor(_within(value))
    rest = value - below
    if rest > 0.5 or (rest == 0.5 and below % 2 == 1):
        return below + 1
    return below


_product_rest = _native(arithmetic.product_rest)
_corrected = _native(arithmetic.corrected)


@_native
def rounded_to(value, digits):
    """Rounds to digits behind the point."""
    factor = _integer_power(10.0, digits)
    scaled = value * factor
    if not LEAST_WHOLE < scaled < MOST_WHOLE:
        return value
    rest = _product_rest(value, factor, scaled)
    return _corrected(float(rounded(scaled)), scaled, rest) / factor


def _guarded(name: str) -> Any:
    function = getattr(math, name)

    def run(value: float) -> float:
        found: float = function(value)
        if math.isnan(found) and not math.isnan(value):
            raise ValueError(FAILED)
        if math.isinf(found) and not math.isinf(value):
            raise OverflowError(FAILED)
        return found

    return _native(run, name)


NATIVE: dict[str, Any] = {
    "within": _within,
    "add": add,
    "subtract": subtract,
    "multiply": multiply,
    "mixed_add": mixed_add,
    "mixed_subtract": mixed_subtract,
    "mixed_multiply": mixed_multiply,
    "mixed_integer_power": mixed_integer_power,
    "mixed_power": mixed_power,
    "shift_left": shift_left,
    "shift_right": _native(arithmetic.shift_right, "shift_right"),
    "floor_divide": _native(lambda one, other: one // other, "floor_divide"),
    "remainder": _native(lambda one, other: one % other, "remainder"),
    "integer_power": _integer_power,
    "power": power,
    "hypotenuse": _native(arithmetic.hypotenuse, "hypotenuse"),
    "slot": _native(arithmetic.item, "slot"),
    "item": _native(arithmetic.item, "item"),
    "entry": entry,
    "cell": cell,
    "row_cell": row_cell,
    "entries": entries,
    "total": _native(arithmetic.total, "total"),
    "smallest": smallest,
    "largest": largest,
    "minimum": _native(lambda one, other: other if other < one else one, "minimum"),
    "maximum": _native(lambda one, other: other if other > one else one, "maximum"),
    "whole": _native(lambda value: int(value), "whole"),
    "real": _native(lambda value: float(value), "real"),
    "truncated": truncated,
    "floored": floored,
    "ceiled": ceiled,
    "rounded": rounded,
    "rounded_to": rounded_to,
    "turned": _native(arithmetic.turned, "turned"),
    "signed": _native(arithmetic.signed, "signed"),
    "checked": _native(arithmetic.checked, "checked"),
    **{name: _guarded(name) for name in arithmetic.UNARY},
    "isfinite": _native(lambda value: math.isfinite(value), "isfinite"),
    "isinf": _native(lambda value: math.isinf(value), "isinf"),
    "isnan": _native(lambda value: math.isnan(value), "isnan"),
}
"""What a translation calls, for compiled code."""
