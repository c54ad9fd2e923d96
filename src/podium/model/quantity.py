"""Parses and writes Kubernetes resource quantities exactly."""

from __future__ import annotations

import re
from fractions import Fraction

# https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/
_BINARY = {
    suffix: 1024**power for power, suffix in enumerate(["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"])
}
_DECIMAL = {
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 10**3),
    **{
        suffix: Fraction(1000**power)
        for power, suffix in enumerate(["", "k", "M", "G", "T", "P", "E"])
    },
}
_FORM = re.compile(
    r"([+-]?)([0-9]+\.?[0-9]*|\.[0-9]+)(?:([eE][+-]?[0-9]{1,3})|([KMGTPE]i|[numkMGTPE]))?"
)
_MIB = 1024**2


def parse_quantity(text: str | int | float) -> Fraction:
    """Reads a quantity as an exact number; raises ValueError on anything else.

    >>> parse_quantity("1500m"), parse_quantity("2Ki"), parse_quantity("1e3"), parse_quantity(4)
    (Fraction(3, 2), Fraction(2048, 1), Fraction(1000, 1), Fraction(4, 1))
    """
    if isinstance(text, bool):
        raise ValueError(f"{text!r} is not a quantity")  # noqa: TRY004 - bad input, not a bad call
    match = _FORM.fullmatch(str(text).strip())
    if match is None:
        raise ValueError(f"{text!r} is not a quantity such as 4, 500m, 16Gi or 1e3")
    sign, number, exponent, suffix = match.groups()
    value = Fraction(number)
    if exponent:
        value *= Fraction(10) ** int(exponent[1:])
    elif suffix:
        value *= _BINARY[suffix] if suffix.endswith("i") else _DECIMAL[suffix]
    return -value if sign == "-" else value


def parse_cpu_milli(text: str | int | float) -> int:
    """Reads CPU as milli-cores, rounded up as Kubernetes does.

    >>> parse_cpu_milli("0.5"), parse_cpu_milli("250m"), parse_cpu_milli("1n")
    (500, 250, 1)
    """
    return _ceil(parse_quantity(text) * 1000)


def parse_memory_mib(text: str | int | float) -> int:
    """Reads memory as MiB, rounded up so that a request is never understated.

    >>> parse_memory_mib("1Gi"), parse_memory_mib("1G"), parse_memory_mib(1)
    (1024, 954, 1)
    """
    return _ceil(parse_quantity(text) / _MIB)


def parse_capacity_mib(text: str | int | float) -> int:
    """Reads a node's memory as MiB, rounded down so that capacity is never overstated.

    >>> parse_capacity_mib("1G")
    953
    """
    return int(parse_quantity(text) // _MIB)


def written_quantity(amount: int, unit: str) -> str:
    """Writes an amount of m or Mi as Kubernetes does, without separators.

    >>> written_quantity(7500, "m"), written_quantity(8000, "m"), written_quantity(16384, "Mi")
    ('7500m', '8', '16Gi')
    """
    base, above = (1000, "") if unit == "m" else (1024, "Gi")
    return f"{amount}{unit}" if amount % base else f"{amount // base}{above if amount else ''}"


def _ceil(value: Fraction) -> int:
    return -((-value.numerator) // value.denominator)
