"""Writes numbers for people."""

from __future__ import annotations

import math

MISSING = "-"
FRACTIONS = ("gpu_allocation", "fragmentation")
"""The metrics from 0 to 1."""


class Figure(str):
    """The text of a number, which tables align to the right."""

    __slots__ = ()


def count(value: int) -> Figure:
    """Writes a whole number with thousands separators."""
    return Figure(f"{value:,}")


def counted(value: int, noun: str) -> str:
    """Writes a whole number of things.

    >>> counted(1, "node"), counted(1213, "node")
    ('1 node', '1,213 nodes')
    """
    return f"{value:,} {noun}{'' if value == 1 else 's'}"


def decimal(value: float | None, digits: int = 2) -> Figure:
    """Writes a number with a fixed number of decimals."""
    return Figure(MISSING if _is_missing(value) else f"{value:z,.{digits}f}")


def percent(fraction: float | None, digits: int = 2) -> Figure:
    """Writes a fraction as a percentage; a zero has no sign.

    >>> percent(0.5), percent(-1e-9)
    ('50.00 %', '0.00 %')
    """
    return Figure(
        MISSING if fraction is None or _is_missing(fraction) else f"{100 * fraction:z,.{digits}f} %"
    )


def duration(seconds: float | None) -> Figure:
    """Writes a time span in the unit that suits its length."""
    if seconds is None or _is_missing(seconds):
        return Figure(MISSING)
    for unit, size in (("d", 86400.0), ("h", 3600.0), ("min", 60.0), ("s", 1.0), ("ms", 1e-3)):
        if abs(seconds) >= size:
            return Figure(f"{rounded(seconds / size, 3)} {unit}")
    return Figure(f"{seconds / 1e-6:.3g} µs" if seconds else "0 s")


def measured(metric: str, value: float) -> Figure:
    """Writes what was measured in the unit of its metric.

    >>> measured("gpu_allocation", 0.945), measured("wait_p95_s", 90)
    ('94.50 %', '1.5 min')
    """
    if metric in FRACTIONS:
        return percent(value)
    return duration(value) if metric.endswith("_s") else decimal(value, 1)


def difference(metric: str, value: float) -> Figure:
    """Writes a difference with its sign; that of two percentages is in points.

    >>> difference("gpu_allocation", 0.0293), difference("wait_mean_s", -90)
    ('+2.93', '-1.5 min')
    """
    if metric in FRACTIONS:
        return Figure(MISSING if _is_missing(value) else f"{100 * value:+z.2f}")
    return Figure(f"{'+' if value > 0 else ''}{measured(metric, value)}")


def size(number_of_bytes: int) -> Figure:
    """Writes a number of bytes in the unit that suits it."""
    for unit, power in (("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)):
        if number_of_bytes >= 1 << power:
            return Figure(f"{rounded(number_of_bytes / (1 << power))} {unit}")
    return Figure(f"{number_of_bytes} B")


def text_of(value: object) -> str:
    """Writes any cell of a table."""
    if value is None:
        return MISSING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return count(value)
    if isinstance(value, float):
        return MISSING if _is_missing(value) else rounded(value)
    return str(value)


def rounded(value: float, digits: int = 4) -> str:
    """Writes a number with so many digits, and all those before the point.

    >>> rounded(0.12345), rounded(3e6), rounded(2.5)
    ('0.1235', '3,000,000', '2.5')
    """
    return f"{value:,.0f}" if abs(value) >= 10 ** (digits - 1) else f"{value:.{digits}g}"


def _is_missing(value: float | None) -> bool:
    return value is None or math.isnan(value)
