"""Runs any program without compiling it: one policy that interprets the program it is given.

Compiling a candidate takes far longer than judging it. The interpreter is compiled once; the
program reaches it as the table of a policy, a row of operation and operand per instruction.
All arithmetic is in doubles, which is exact for the whole numbers that a sound program has.
"""

from __future__ import annotations

import functools
import math
from dataclasses import replace
from typing import Any

import numpy as np

from podium.policies import PairPolicy, from_function
from podium.search.genetic.assembly import assembled
from podium.search.genetic.expression import HOLD
from podium.search.genetic.instructions import (
    ABSOLUTE,
    ACCUMULATE,
    ADD,
    AND,
    DIVIDE,
    EQUAL,
    EXP,
    FIELD,
    FLOOR,
    FLOOR_DIVIDE,
    JUMP_IF_FALSE,
    KEEP_LARGEST,
    KEEP_SMALLEST,
    LESS,
    LESS_EQUAL,
    LOAD,
    LOG,
    LOOP_GPUS,
    LOOP_SLOTS,
    MAXIMUM,
    MEMORY,
    MINIMUM,
    MULTIPLY,
    NEGATE,
    NEXT,
    NOT,
    NUMBER,
    OR,
    SELECT,
    SQRT,
    SQUARE,
    STORE,
    SUBTRACT,
    TANH,
    TRUNCATE,
)
from podium.search.genetic.program import Program, roots


def interpreted(program: Program, name: str = "bred") -> PairPolicy:
    """Makes a policy of a program at once; it scores exactly as the written program does."""
    code = assembled(program)
    engine = _engine_by_gpu() if program.takes_gpu else _engine()
    may_hold = any(root == HOLD for root in roots(program.block))
    settings: dict[str, Any] = {key.lower(): value for key, value in program.settings}
    return replace(engine, name=name, prepare=lambda _shapes: code, may_hold=may_hold, **settings)


@functools.cache
def _engine() -> PairPolicy:
    return replace(from_function(score_node, "interpreter"), is_kept=True)


@functools.cache
def _engine_by_gpu() -> PairPolicy:
    return replace(from_function(score_gpu, "interpreter-by-gpu"), is_kept=True)


def score_node(pod: Any, node: Any, table: Any) -> float:
    """Scores by the program in the table."""
    return run(pod, node, -1, table)


def score_gpu(pod: Any, node: Any, gpu: int, table: Any) -> float:
    """Scores a GPU by the program in the table."""
    return run(pod, node, gpu, table)


def run(pod: Any, node: Any, gpu: int, table: Any) -> float:  # noqa: C901, PLR0912, PLR0915
    """Interprets instructions until one returns."""
    memory = np.empty(MEMORY)
    top, at, slot = -1, 0, 0
    while at < len(table):
        operation, operand = int(table[at, 0]), table[at, 1]
        at += 1
        if operation == NUMBER:
            top += 1
            memory[top] = operand
        elif operation == FIELD:
            top += 1
            memory[top] = read_field(pod, node, gpu, slot, int(operand))
        elif operation == LOAD:
            top += 1
            memory[top] = memory[int(operand)]
        elif operation == STORE:
            memory[int(operand)] = memory[top]
            top -= 1
        elif operation <= OR:
            top -= 1
            memory[top] = combine(operation, memory[top], memory[top + 1])
        elif operation <= NOT:
            memory[top] = change(operation, memory[top])
        elif operation == SELECT:
            top -= 2
            memory[top] = memory[top + 1] if memory[top] != 0 else memory[top + 2]
        elif operation == JUMP_IF_FALSE:
            if memory[top] == 0:
                at = int(operand)
            top -= 1
        elif operation in (LOOP_GPUS, LOOP_SLOTS):
            slot = 0
            if operation == LOOP_GPUS and node.gpu_count == 0:
                at = int(operand)
        elif operation == ACCUMULATE:
            memory[int(operand)] += memory[top]
            top -= 1
        elif operation == KEEP_SMALLEST:
            memory[int(operand)] = min(memory[int(operand)], memory[top])
            top -= 1
        elif operation == KEEP_LARGEST:
            memory[int(operand)] = max(memory[int(operand)], memory[top])
            top -= 1
        elif operation == NEXT:
            slot += 1
            # A loop over all slots says so by a negative place.
            if slot < (node.gpu_count if operand > 0 else len(node.gpu_milli_left)):
                at = int(abs(operand))
        else:
            break
    return float(memory[top])


def read_field(pod: Any, node: Any, gpu: int, slot: int, which: int) -> float:  # noqa: C901, PLR0912
    """Reads the field of a number, in the order of FIELDS."""
    if which == 0:
        return float(pod.cpu_milli)
    if which == 1:
        return float(pod.memory_mib)
    if which == 2:
        return float(pod.gpu_count)
    if which == 3:
        return float(pod.gpu_milli)
    if which == 4:
        return float(node.cpu_milli_left)
    if which == 5:
        return float(node.cpu_milli_total)
    if which == 6:
        return float(node.memory_mib_left)
    if which == 7:
        return float(node.memory_mib_total)
    if which == 8:
        return float(node.gpu_count)
    if which == 9:
        return float(gpu)
    if which == 10:
        return float(node.gpu_milli_left[gpu])
    if which == 11:
        return float(node.gpu_milli_left[slot])
    if which == 12:
        return float(slot)
    return read_rare(pod, node, which)


def read_rare(pod: Any, node: Any, which: int) -> float:
    """Reads the fields that only people's programs read."""
    if which == 13:
        return float(node.gpu_model)
    if which == 14:
        return float(node.rack)
    if which == 15:
        return float(node.gpu_classes)
    return float(pod.priority) if which == 16 else float(pod.gang)


def combine(operation: int, one: float, other: float) -> float:  # noqa: C901
    """Applies an operation to two numbers."""
    if operation == ADD:
        return one + other
    if operation == SUBTRACT:
        return one - other
    if operation == MULTIPLY:
        return one * other
    if operation == DIVIDE:
        return one / other
    if operation == MINIMUM:
        return min(one, other)
    if operation == MAXIMUM:
        return max(one, other)
    if operation == LESS:
        return 1.0 if one < other else 0.0
    if operation == LESS_EQUAL:
        return 1.0 if one <= other else 0.0
    if operation == EQUAL:
        return 1.0 if one == other else 0.0
    if operation == AND:
        return 1.0 if one != 0 and other != 0 else 0.0
    if operation == OR:
        return 1.0 if one != 0 or other != 0 else 0.0
    if operation == FLOOR_DIVIDE:
        return one // other
    return one % other


def change(operation: int, one: float) -> float:
    """Applies an operation to one number."""
    if operation == NEGATE:
        return -one
    if operation == ABSOLUTE:
        return abs(one)
    if operation == TRUNCATE:
        return float(int(one))
    if operation == SQUARE:
        return one * one
    if operation == NOT:
        return 1.0 if one == 0 else 0.0
    if operation == SQRT:
        return math.sqrt(one)
    return transcend(operation, one)


def transcend(operation: int, one: float) -> float:
    """Applies one of the rarer functions."""
    if operation == EXP:
        return math.exp(one)
    if operation == LOG:
        return math.log(one)
    if operation == TANH:
        return math.tanh(one)
    if operation == FLOOR:
        return float(math.floor(one))
    return float(math.ceil(one))
