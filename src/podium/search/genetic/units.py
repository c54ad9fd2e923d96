"""Gives every quantity a unit, so that only like is compared with like."""

from __future__ import annotations

from typing import NamedTuple


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
    """Tells whether a unit has no dimension and is no boolean."""
    return unit[:3] == (0, 0, 0) and unit.kind != "boolean"


def multiplied(left: Unit, right: Unit) -> Unit:
    """Gives the unit of a product."""
    powers = (left.cpu + right.cpu, left.memory + right.memory, left.gpu + right.gpu)
    is_count = left == COUNT and right == COUNT
    return COUNT if is_count else Unit(*powers)


def divided(left: Unit, right: Unit) -> Unit:
    """Gives the unit of a quotient.

    >>> divided(CPU, CPU) == RATIO, divided(CPU, COUNT) == CPU
    (True, True)
    """
    return Unit(left.cpu - right.cpu, left.memory - right.memory, left.gpu - right.gpu)


def joined(units: list[Unit]) -> Unit:
    """Gives the unit of a sum, a choice or a comparison's sides; unlike units make a bare number.

    >>> joined([CPU, CPU]) == CPU, joined([COUNT, RATIO]) == RATIO
    (True, True)
    """
    return units[0] if len(set(units)) == 1 else RATIO
