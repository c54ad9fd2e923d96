"""Assigns a unit to every field and quantity, and infers the unit of an expression."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from podium.model.records import ANY_MODEL, GPU_MILLI, MAX_MODELS
from podium.search.program.expression import COMPARISONS, JUNCTIONS, Expression, number
from podium.search.program.program import Program, terms


class Unit(NamedTuple):
    """Counts the powers of milli-CPU, MiB and milli-GPU in a quantity."""

    cpu: int = 0
    memory: int = 0
    gpu: int = 0
    kind: str = "ratio"  # of what has no dimension: ratio, count (whole) or boolean


CPU = Unit(cpu=1)
MEMORY = Unit(memory=1)
GPU = Unit(gpu=1)
RATIO = Unit()
COUNT = Unit(kind="count")
BOOLEAN = Unit(kind="boolean")

_PARTS = (("cpu_milli", CPU), ("cpus", CPU), ("memory_mib", MEMORY), ("gpu_milli", GPU))


def unit_of_name(name: str) -> Unit:
    """Reads the unit that a constant carries in its name.

    >>> unit_of_name("CPU_MILLI_MAX") == CPU, unit_of_name("WEIGHT") == RATIO
    (True, True)
    """
    lowered = name.lower().rstrip("0123456789").rstrip("_")  # CPU_MILLI_2 is another of its kind
    found = next((unit for part, unit in _PARTS if part in lowered), RATIO)
    return Unit(found.cpu, found.memory, found.gpu - 1) if lowered.endswith("_per_gpu") else found


def is_number(unit: Unit) -> bool:
    """Returns whether a unit has no dimension and is not a boolean."""
    return unit[:3] == (0, 0, 0) and unit.kind != "boolean"


def multiplied(left: Unit, right: Unit) -> Unit:
    """Returns the unit of a product."""
    powers = (left.cpu + right.cpu, left.memory + right.memory, left.gpu + right.gpu)
    is_count = left == COUNT and right == COUNT
    return COUNT if is_count else Unit(*powers)


def divided(left: Unit, right: Unit) -> Unit:
    """Returns the unit of a quotient.

    >>> divided(CPU, CPU) == RATIO, divided(CPU, COUNT) == CPU
    (True, True)
    """
    return Unit(left.cpu - right.cpu, left.memory - right.memory, left.gpu - right.gpu)


def joined(units: list[Unit]) -> Unit:
    """Returns the unit of a sum, a choice or a comparison's sides; unlike units make a bare number.

    >>> joined([CPU, CPU]) == CPU, joined([COUNT, RATIO]) == RATIO
    (True, True)
    """
    return units[0] if len(set(units)) == 1 else RATIO


Units = Mapping[str, Unit]
"""The units of constants and terms, by name."""

LEAST_NORM = 100
"""A literal of at least this in a denominator stands for a quantity, as in `left / 1000`."""

_BOOLEAN = frozenset([*COMPARISONS, *JUNCTIONS, "not", "always"])
_LIKE = frozenset(["+", "-", "min", "max", "%", "neg", "abs", "sum", "smallest", "largest"])


def units_of(program: Program) -> dict[str, Unit]:
    """Finds the unit of every constant and term, and of what functions return.

    A parameter carries its unit in its name, as a constant does.
    """
    units = {constant.name: unit_of_name(constant.name) for constant in program.constants}
    for function in program.functions:
        given = {each: unit_of_name(each) for each in function.parameters}
        units[function.name] = unit_of(function.expression, units | given)
    for term in terms(program.block):
        units[term.name] = unit_of(term.expression, units)
    return units


def unit_of(expression: Expression, units: Units) -> Unit:
    """Infers a unit; a literal alone is a ratio."""
    return _unit(expression, units) or RATIO


def _unit(expression: Expression, units: Units) -> Unit | None:
    head, arguments = expression.head, expression.arguments
    if head == "number":
        return None
    if head == "field":
        return FIELDS[expression.value].unit
    if head in ("name", "call"):
        return units.get(expression.value, RATIO)
    if head in _BOOLEAN:
        return BOOLEAN
    if head in _LIKE:
        return _joined(arguments[:1] if head in ("sum", "neg", "abs") else arguments, units, head)
    if head == "if":
        return _joined(arguments[1:], units, head)
    return _scaled(head, arguments, units)


def _joined(arguments: tuple[Expression, ...], units: Units, head: str) -> Unit | None:
    parts = arguments[:1] if head in ("smallest", "largest") else arguments
    known = [unit for part in parts if (unit := _unit(part, units)) is not None]
    if not known:
        return COUNT if head == "sum" else None
    # A boolean that is added counts.
    return joined([COUNT if unit == BOOLEAN else unit for unit in known])


def _scaled(head: str, arguments: tuple[Expression, ...], units: Units) -> Unit | None:
    first = _unit(arguments[0], units) if arguments else None
    if head in ("*", "/", "//"):
        second = _unit(arguments[1], units)
        if first is None and second is None:
            return None
        if head == "*" and number(GPU_MILLI) in arguments and COUNT in (first, second):
            return GPU  # so many GPUs
        if head == "*":
            return multiplied(first or _scale(second), second or _scale(first))
        is_norm = arguments[1].head == "number" and arguments[1].value >= LEAST_NORM
        return RATIO if is_norm else divided(first or RATIO, second or RATIO)
    if head == "int":
        return COUNT if first in (None, RATIO, COUNT) else first
    if head == "power" and first is not None:
        return _power(first, arguments[1].value if arguments[1].head == "number" else None)
    return RATIO


def _scale(other: Unit | None) -> Unit:
    return COUNT if other == COUNT else RATIO


def _power(unit: Unit, exponent: float | None) -> Unit:
    if exponent is None or exponent != int(exponent):
        return RATIO
    whole = int(exponent)
    return Unit(unit.cpu * whole, unit.memory * whole, unit.gpu * whole)


def is_typed(expression: Expression, units: Units) -> bool:
    """Returns whether sums, choices and comparisons only mix like units, or ratios and counts."""
    if not all(is_typed(part, units) for part in expression.arguments):
        return False
    arguments = expression.arguments[1:] if expression.head == "if" else expression.arguments
    if expression.head not in ("+", "-", "min", "max", "if", *COMPARISONS):
        return True
    known = {unit[:3] for part in arguments if (unit := _unit(part, units)) is not None}
    return len(known) <= 1


MOST_CPU_MILLI = 10_000_000
MOST_MEMORY_MIB = 100_000_000
MOST_GPUS = 16


@dataclass(frozen=True, slots=True)
class Field:
    """Describes one field."""

    unit: Unit
    low: int
    high: int
    phrase: str


FIELDS = {
    "pod.cpu_milli": Field(CPU, 0, MOST_CPU_MILLI, "the pod's CPU"),
    "pod.memory_mib": Field(MEMORY, 0, MOST_MEMORY_MIB, "the pod's memory"),
    "pod.gpu_count": Field(COUNT, 0, MOST_GPUS, "the pod's GPUs"),
    "pod.gpu_milli": Field(GPU, 0, GPU_MILLI, "the pod's part of a GPU"),
    "node.cpu_milli_left": Field(CPU, 0, MOST_CPU_MILLI, "free CPU"),
    "node.cpu_milli_total": Field(CPU, 0, MOST_CPU_MILLI, "the node's CPU"),
    "node.memory_mib_left": Field(MEMORY, 0, MOST_MEMORY_MIB, "free memory"),
    "node.memory_mib_total": Field(MEMORY, 0, MOST_MEMORY_MIB, "the node's memory"),
    "node.gpu_count": Field(COUNT, 0, MOST_GPUS, "the node's GPUs"),
    "gpu": Field(COUNT, -1, MOST_GPUS - 1, "the GPU's slot"),
    "node.gpu_milli_left[gpu]": Field(GPU, 0, GPU_MILLI, "the GPU's free part"),
    "left": Field(GPU, 0, GPU_MILLI, "the free part"),
    # Read by programs that people wrote; never drawn.
    "slot": Field(COUNT, 0, MOST_GPUS - 1, "the slot"),
    "node.gpu_model": Field(RATIO, -1, 63, "the node's GPU model"),
    "node.rack": Field(RATIO, -1, 2**31, "the node's rack"),
    "node.gpu_classes": Field(RATIO, -(2**31), 2**31, "the classes of pods on the node"),
    "pod.priority": Field(RATIO, -(2**31), 2**31, "the pod's priority"),
    "pod.gang": Field(RATIO, -(2**31), 2**31, "the pod's gang"),
    # A mask with a bit for each model that the pod accepts; all bits, -1, stand for any.
    "pod.gpu_models": Field(RATIO, ANY_MODEL, 2**MAX_MODELS - 1, "the pod's GPU models"),
}
"""By the way they are written; `left` is `node.gpu_milli_left[slot]` inside a loop over slots."""

HERE = "node.gpu_milli_left[gpu]"
"""The one field that is not there for every pod: whole GPUs are no candidates of their own."""

DRAWN = tuple(FIELDS)[:9]
"""What any drawn expression may read."""

SLOT_FIELDS = frozenset(["left", "slot"])
"""What only a loop over slots may read."""

GPU_FIELDS = frozenset(["gpu", HERE])
"""What only score(pod, node, gpu) may read."""
