"""Defines the arithmetic of policies, so that it means the same in every tier, to the bit.

A policy that is compiled is translated first (see `translation`), and both plain Python and
compiled code run the translation. Where the two would part, it calls a function that is listed
here; `native_arithmetic` has the same list for compiled code. Whole numbers stay within 2**53,
an index within its list, and what Python's own functions refuse is refused by both.

Python calls the C library's `pow`, which may miss the nearest double by one unit; compilers
turn small powers into multiplications, roots, or powers of two: powers are functions of our own.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

from podium.policies.language.kind import MOST_WHOLE

LARGEST_POWER = 64
MOST_SHIFT = 62

TOO_LARGE = "a whole number goes beyond 2**53, where it is not exact"
OUTSIDE = "an index is negative, or beyond the end"
UNSET = "a name is read before it is set"
NO_RESULT = "a function ends without a result"
BAD_SHIFT = "a shift is by fewer than 0 or more than 62 bits"
BAD_POWER = "0 is raised to a negative power, or a negative number to a fractional one"
FAILED = "math domain or range error"
BAD_TABLE = "a table of rows is read as table[row, column], a plain one as table[index]"


def integer_power(base: float, exponent: int) -> float:
    """Multiplies by repeated squaring.

    >>> integer_power(3, 4), integer_power(2.0, -1)
    (81.0, 0.5)
    """
    result = 1.0
    square = base * 1.0
    remaining = abs(exponent)
    while remaining:
        if remaining & 1:
            result = result * square
        square = square * square
        remaining >>= 1
    if exponent < 0:
        return 1.0 / result
    if math.isinf(result) and math.isfinite(base):
        raise OverflowError(FAILED)
    return result


def power(base: float, exponent: float) -> float:
    """Multiplies, takes a root or calls the C library's pow, by the value of the exponent alone.

    >>> power(2, 3), power(9, 0.5)
    (8.0, 3.0)
    """
    raised, by = float(base), float(exponent)
    if by == 0.5:
        return math.sqrt(raised)
    if abs(by) <= LARGEST_POWER and by == math.floor(by):
        return integer_power(raised, int(by))
    if (raised == 0.0 and by < 0.0) or (raised < 0.0 and not by.is_integer()):
        raise ValueError(BAD_POWER)
    return raised**by  # type: ignore[no-any-return]


def hypotenuse(one: float, other: float) -> float:
    """Returns the root of the sum of two squares.

    >>> hypotenuse(3, 4)
    5.0
    """
    return math.sqrt(one * one + other * other)


def within(value: int) -> int:
    """Refuses whole numbers that doubles do not hold exactly."""
    if -MOST_WHOLE <= value <= MOST_WHOLE:
        return value
    raise OverflowError(TOO_LARGE)


def unmixed(found: float, one: float, other: float) -> float:
    """Refuses a result that Python, where it was given whole numbers, would count exactly.

    >>> unmixed(2.0**60, 2.0**59, 2.5)
    1.152921504606847e+18
    """
    if -MOST_WHOLE <= found <= MOST_WHOLE:
        return found
    if (
        -MOST_WHOLE <= one <= MOST_WHOLE
        and -MOST_WHOLE <= other <= MOST_WHOLE
        and one == math.floor(one)
        and other == math.floor(other)
    ):
        raise OverflowError(TOO_LARGE)
    return found


def mixed_power(base: float, exponent: float) -> float:
    """Raises to a power what may be whole."""
    try:
        return unmixed(power(base, exponent), base, exponent)
    except OverflowError:
        unmixed(math.inf, base, exponent)
        raise


def shift_left(value: int, bits: int) -> int:
    """Shifts to the left.

    >>> shift_left(3, 2)
    12
    """
    if not 0 <= bits <= MOST_SHIFT:
        raise ValueError(BAD_SHIFT)
    return within(value << bits)


def shift_right(value: int, bits: int) -> int:
    """Shifts to the right."""
    if not 0 <= bits <= MOST_SHIFT:
        raise ValueError(BAD_SHIFT)
    return value >> bits


def item(values: Sequence[Any], index: int) -> Any:
    """Reads one place of a list or tuple, counted from 0."""
    if 0 <= index < len(values):
        return values[index]
    raise IndexError(OUTSIDE)


def entry(table: Any, index: int) -> float:
    """Reads one number of a plain table."""
    if table.ndim != 1:
        raise TypeError(BAD_TABLE)
    return float(item(table, index))


def cell(table: Any, row: int, column: int) -> float:
    """Reads one number of a table of rows."""
    if table.ndim != 2:
        raise TypeError(BAD_TABLE)
    if not (0 <= row < table.shape[0] and 0 <= column < table.shape[1]):
        raise IndexError(OUTSIDE)
    return float(table[row, column])


def row_cell(table: Any, row: int, column: int) -> float:
    """Reads a number whose row is known to be there, and whose column is not negative."""
    try:
        return float(table[row, column])
    except IndexError:
        raise IndexError(OUTSIDE) if table.ndim == 2 else TypeError(BAD_TABLE) from None


def entries(table: Any) -> list[float]:
    """Lists the numbers of a plain table."""
    if table.ndim != 1:
        raise TypeError(BAD_TABLE)
    found: list[float] = table.tolist()
    return found


def total(values: Sequence[Any], start: Any) -> Any:
    """Adds up from the first to the last; Python's own sum corrects itself since 3.12.

    >>> total((1, 2, 3), 0)
    6
    """
    for value in values:
        start = start + value
    return start


def truncated(value: float) -> int:
    """Cuts off what is behind the point."""
    return within(int(value))


def floored(value: float) -> int:
    """Rounds down."""
    return within(math.floor(value))


def ceiled(value: float) -> int:
    """Rounds up."""
    return within(math.ceil(value))


def rounded(value: float) -> int:
    """Rounds to the nearest whole number, halves to the even one."""
    return within(round(value))


def rounded_to(value: float, digits: int) -> float:
    """Rounds to at most 15 digits behind the point, as Python does.

    >>> rounded_to(2.345, 1), rounded_to(2.675, 2)
    (2.3, 2.67)
    """
    factor = integer_power(10.0, digits)
    scaled = value * factor
    if not -MOST_WHOLE < scaled < MOST_WHOLE:
        return value
    return corrected(float(round(scaled)), scaled, product_rest(value, factor, scaled)) / factor


def product_rest(one: float, other: float, product: float) -> float:
    """Returns what rounding took from a product, exactly (T. J. Dekker, 1971).

    >>> product_rest(0.1, 10.0, 1.0) > 0
    True
    """
    wide, wide_other = 134217729.0 * one, 134217729.0 * other
    high, high_other = wide - (wide - one), wide_other - (wide_other - other)
    low, low_other = one - high, other - high_other
    return ((high * high_other - product) + high * low_other + low * high_other) + low * low_other


def corrected(nearest: float, scaled: float, rest: float) -> float:
    """Moves what was rounded from halfway to where the whole product lies."""
    if scaled - nearest == 0.5 and rest > 0.0:
        return nearest + 1.0
    if scaled - nearest == -0.5 and rest < 0.0:
        return nearest - 1.0
    return nearest


def turned(y: float, x: float) -> float:
    """Returns the angle of a point; zero has no sign here, as whole numbers have none."""
    return math.atan2(y + 0.0, x + 0.0)


def signed(value: float, sign: float) -> float:
    """Returns a number with the sign of another, plus for zero."""
    return math.copysign(value, sign + 0.0)


def checked(value: Any, is_set: bool) -> Any:
    """Refuses a name that was not set on this path."""
    if is_set:
        return value
    raise UnboundLocalError(UNSET)


UNARY = (
    "atan", "cos", "cosh", "erf", "exp", "expm1", "fabs", "log", "log10", "log1p", "log2", "sin",
    "sinh", "sqrt", "tan", "tanh",
)  # fmt: skip
"""Functions of math of one number that compile, and round alike."""

TESTS = ("isfinite", "isinf", "isnan")

PLAIN: dict[str, Callable[..., Any]] = {
    "within": within,
    "add": lambda one, other: within(one + other),
    "subtract": lambda one, other: within(one - other),
    "multiply": lambda one, other: within(one * other),
    "mixed_add": lambda one, other: unmixed(one + other, one, other),
    "mixed_subtract": lambda one, other: unmixed(one - other, one, other),
    "mixed_multiply": lambda one, other: unmixed(one * other, one, other),
    "mixed_integer_power": mixed_power,
    "mixed_power": mixed_power,
    "shift_left": shift_left,
    "shift_right": shift_right,
    "floor_divide": operator.floordiv,
    "remainder": operator.mod,
    "integer_power": integer_power,
    "power": power,
    "hypotenuse": hypotenuse,
    "slot": item,
    "item": item,
    "entry": entry,
    "cell": cell,
    "row_cell": row_cell,
    "entries": entries,
    "total": total,
    "smallest": min,
    "largest": max,
    "minimum": min,
    "maximum": max,
    "whole": int,
    "real": float,
    "truncated": truncated,
    "floored": floored,
    "ceiled": ceiled,
    "rounded": rounded,
    "rounded_to": rounded_to,
    "turned": turned,
    "signed": signed,
    "checked": checked,
    **{name: getattr(math, name) for name in (*UNARY, *TESTS)},
}
"""What a translation calls, for plain Python."""
