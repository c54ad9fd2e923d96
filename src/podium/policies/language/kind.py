"""Kinds of expressions in a policy: a truth value, a whole number within bounds, a real number.

Plain Python finds types as it runs and counts without limit; compiled code has fixed types of 64
bits. The two agree where every value has one kind, and every whole number is exact in a double.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal

from podium.model.records import GPU_MILLI, Node, Pod

MOST_WHOLE = 2**53
"""Whole numbers reach so far on both sides of 0; doubles are exact there."""

MOST_SLOTS = 16
MOST_ROWS = 1 << 24
"""Rows that a table of `prepare` may have."""

MOST_PARTS = 512
"""Parts of a tuple, those of tuples within it included: compilers take minutes over longer ones."""

_INT32 = 2**31

Tag = Literal["bool", "int", "float", "pod", "node", "gpus", "table", "tuple"]
NUMBERS = ("bool", "int", "float")


_TOO_LARGE = f"holds a tuple of more than {MOST_PARTS} parts"


class NotPortable(Exception):  # noqa: N818 - an answer, not a mistake
    """Something that only plain Python can do, or that cannot be compiled."""

    def __init__(self, reason: str, line: int = 0, hint: str = "") -> None:
        super().__init__(reason)
        self.reason, self.line, self.hint = reason, line, hint


@dataclass(frozen=True, slots=True)
class Kind:
    """The values that an expression can have."""

    tag: Tag
    low: int = 0
    high: int = 0
    parts: tuple[Kind, ...] = ()
    size: int = field(default=1, init=False, compare=False)  # with the parts of parts

    def __post_init__(self) -> None:
        # Each line may double what the one before it made: nothing ever walks what is refused.
        size = 1 + sum(part.size for part in self.parts)
        if size > MOST_PARTS + 1:
            raise NotPortable(_TOO_LARGE)
        object.__setattr__(self, "size", size)

    @property
    def is_number(self) -> bool:
        """Returns whether it is a number or a truth value, not a record or a list."""
        return self.tag in NUMBERS

    @property
    def may_be_whole(self) -> bool:
        """Returns whether some of its values are whole numbers in Python, within its bounds."""
        return self.low <= self.high

    @property
    def is_exact(self) -> bool:
        """Returns whether all its whole numbers are exact without being checked."""
        return self.low >= -MOST_WHOLE and self.high <= MOST_WHOLE


BOOL = Kind("bool", 0, 1)
FLOAT = Kind("float", 1, 0)
"""Fractional numbers. With bounds: a fractional number, or one that Python counts exactly."""
WHOLE = Kind("int", -MOST_WHOLE, MOST_WHOLE)
POD, NODE, GPUS, TABLE = Kind("pod"), Kind("node"), Kind("gpus"), Kind("table")
SLOT = Kind("int", -1, MOST_SLOTS - 1)
LENGTH = Kind("int", 0, MOST_ROWS)
SLOT_MILLI = Kind("int", 0, GPU_MILLI)
_COUNT = Kind("int", 0, MOST_SLOTS)
_FIELD = Kind("int", -_INT32, _INT32)

FIELDS: dict[str, dict[str, Kind]] = {
    "pod": dict.fromkeys(Pod._fields, _FIELD)
    | {"gpu_models": WHOLE, "gpu_count": _COUNT, "gpu_milli": SLOT_MILLI},
    "node": dict.fromkeys(Node._fields, _FIELD) | {"gpu_milli_left": GPUS, "gpu_count": _COUNT},
}
"""What the fields of records can hold; the model lets nothing else in."""

ARGUMENTS = {"pod": POD, "node": NODE, "gpu": SLOT, "table": TABLE}


def whole(low: int, high: int) -> Kind:
    """Builds the kind of whole numbers within bounds."""
    return Kind("int", low, high)


def clipped(kind: Kind) -> Kind:
    """Bounds whole numbers by what a check lets through."""
    if not kind.is_number or kind.is_exact:
        return kind
    return Kind(kind.tag, max(kind.low, -MOST_WHOLE), min(kind.high, MOST_WHOLE))


def kind_of(value: object) -> Kind:
    """Returns the kind of a constant."""
    if isinstance(value, bool):
        return BOOL
    if isinstance(value, int):
        if int.__abs__(value) > MOST_WHOLE:  # a subclass may count otherwise, or fail
            raise NotPortable("holds a whole number beyond 2**53, which is not exact in a score")
        exact = int.__int__(value)
        return whole(exact, exact)
    if isinstance(value, float):
        return FLOAT
    if type(value) is tuple:
        if len(value) > MOST_PARTS:
            raise NotPortable(_TOO_LARGE)
        return Kind("tuple", parts=tuple(kind_of(each) for each in value))
    raise NotPortable(f"uses a value of type {type(value).__name__}")


def join(one: Kind | None, other: Kind | None) -> Kind | None:
    """Finds the kind that holds the values of both; nothing is known of what never was set."""
    if one is None or other is None:
        return one or other
    if one.is_number and other.is_number:
        tag = max(one.tag, other.tag, key=NUMBERS.index)
        if one == FLOAT or other == FLOAT:
            return replace(one if other == FLOAT else other, tag=tag)
        return Kind(tag, min(one.low, other.low), max(one.high, other.high))
    if one.tag == other.tag and len(one.parts) == len(other.parts):
        pairs = zip(one.parts, other.parts, strict=True)
        return Kind(one.tag, parts=tuple(_joined(a, b) for a, b in pairs))
    raise NotPortable(f"uses one name for {_SAID[one.tag]} and for {_SAID[other.tag]}")


def _joined(one: Kind, other: Kind) -> Kind:
    found = join(one, other)
    assert found is not None
    return found


def added(one: Kind, other: Kind) -> Kind:
    """Bounds a sum."""
    return whole(one.low + other.low, one.high + other.high)


def subtracted(one: Kind, other: Kind) -> Kind:
    """Bounds a difference."""
    return whole(one.low - other.high, one.high - other.low)


def multiplied(one: Kind, other: Kind) -> Kind:
    """Bounds a product."""
    corners = [a * b for a in (one.low, one.high) for b in (other.low, other.high)]
    return whole(min(corners), max(corners))


def divided(one: Kind, _other: Kind) -> Kind:
    """Bounds a quotient that is rounded down."""
    most = max(abs(one.low), abs(one.high))
    return whole(-most, most)


def remainder(_one: Kind, other: Kind) -> Kind:
    """Bounds what a division leaves, which has the sign of the divisor."""
    return whole(min(0, other.low + 1), max(0, other.high - 1))


def raised(one: Kind, exponent: int) -> Kind:
    """Bounds a power."""
    corners = [one.low**exponent, one.high**exponent, *([0] if one.low < 0 else [])]
    return whole(min(corners), max(corners))


def masked(one: Kind, other: Kind) -> Kind:
    """Bounds a bitwise operation by the bits of both."""
    most = max(abs(each) for each in (one.low, one.high, other.low, other.high))
    bits = most.bit_length()
    return whole(0 if min(one.low, other.low) >= 0 else -(1 << bits), (1 << bits) - 1)


def shifted_left(one: Kind, other: Kind) -> Kind:
    """Bounds a shift to the left by 0 to 62 bits."""
    return multiplied(one, whole(1, 1 << min(62, max(0, other.high))))


_SAID: dict[str, str] = {
    "bool": "a number", "int": "a number", "float": "a number", "pod": "the pod",
    "node": "the node", "gpus": "the list of GPUs", "table": "the table", "tuple": "a tuple",
}  # fmt: skip
