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

from podium.policies import PairPolicy
from podium.policies.policy import from_trusted_function
from podium.search.genetic.assembly import assembled
from podium.search.genetic.expression import HOLD
from podium.search.genetic.instructions import (
    ABSOLUTE,
    ACCUMULATE,
    ADD,
    AND,
    CEIL,
    DIVIDE,
    EQUAL,
    EXP,
    FIELD,
    FLOOR,
    FLOOR_DIVIDE,
    JUMP_IF_FALSE,
    KEEP_SMALLEST,
    LESS,
    LESS_EQUAL,
    LOG,
    MAXIMUM,
    MEMORY,
    MINIMUM,
    MULTIPLY,
    NEGATE,
    NEXT,
    NOT,
    NUMBER,
    OR,
    RETURN,
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
    return replace(from_trusted_function(score_node, "interpreter"), is_kept=True)


@functools.cache
def _engine_by_gpu() -> PairPolicy:
    return replace(from_trusted_function(score_gpu, "interpreter-by-gpu"), is_kept=True)


def score_node(pod: Any, node: Any, table: Any) -> float:
    """Scores by the program in the table."""
    return run(pod, node, -1, table)


def score_gpu(pod: Any, node: Any, gpu: int, table: Any) -> float:
    """Scores a GPU by the program in the table."""
    return run(pod, node, gpu, table)


def run(pod: Any, node: Any, gpu: int, table: Any) -> float:
    """Interprets instructions until one returns."""
    memory = np.empty(MEMORY)
    top, at, slot = -1, 0, 0
    while int(table[at, 0]) != RETURN:
        operation, operand = int(table[at, 0]), table[at, 1]
        at += 1
        if operation == FIELD:
            top += 1
            memory[top] = read_field(pod, node, gpu, slot, int(operand))
        elif operation <= STORE:
            top = move(memory, top, operation, operand)
        elif operation <= SELECT:
            top = compute(memory, top, operation)
        elif operation < JUMP_IF_FALSE:
            keep(memory, top, operation, int(operand))
            top -= 1
        elif operation == JUMP_IF_FALSE:
            at = int(operand) if memory[top] == 0 else at
            top -= 1
        else:
            slot = slot + 1 if operation == NEXT else 0
            has_more = slot < (node.gpu_count if operand > 0 else len(node.gpu_milli_left))
            # A loop with nothing to do is left; one with more to do begins anew.
            at = int(abs(operand)) if has_more == (operation == NEXT) else at
    return float(memory[top])


def move(memory: Any, top: int, operation: int, operand: float) -> int:
    """Moves a number to the stack or from it, and gives the new top."""
    if operation == STORE:
        memory[int(operand)] = memory[top]
        return top - 1
    memory[top + 1] = operand if operation == NUMBER else memory[int(operand)]
    return top + 1


def compute(memory: Any, top: int, operation: int) -> int:
    """Applies an operation to the numbers at the top, and gives the new top."""
    if operation <= OR:
        memory[top - 1] = combine(operation, memory[top - 1], memory[top])
        return top - 1
    if operation <= CEIL:
        memory[top] = change(operation, memory[top])
        return top
    memory[top - 2] = memory[top - 1] if memory[top - 2] != 0 else memory[top]
    return top - 2


def keep(memory: Any, top: int, operation: int, place: int) -> None:
    """Takes the top number into a term."""
    if operation == ACCUMULATE:
        memory[place] += memory[top]
    elif operation == KEEP_SMALLEST:
        memory[place] = min(memory[place], memory[top])
    else:
        memory[place] = max(memory[place], memory[top])


def read_field(pod: Any, node: Any, gpu: int, slot: int, which: int) -> float:
    """Reads the field of a number, in the order of FIELDS."""
    if which < 4:
        return read_pod(pod, which)
    if which < 9:
        return read_node(node, which)
    if which == 9:
        return float(gpu)
    if which == 10:
        return float(node.gpu_milli_left[gpu]) if gpu >= 0 else 0.0
    if which == 11:
        return float(node.gpu_milli_left[slot])
    return float(slot) if which == 12 else read_rare(pod, node, which)


def read_pod(pod: Any, which: int) -> float:
    """Reads what a pod asks for."""
    if which == 0:
        return float(pod.cpu_milli)
    if which == 1:
        return float(pod.memory_mib)
    return float(pod.gpu_count) if which == 2 else float(pod.gpu_milli)


def read_node(node: Any, which: int) -> float:
    """Reads what a node has."""
    if which == 4:
        return float(node.cpu_milli_left)
    if which == 5:
        return float(node.cpu_milli_total)
    if which == 6:
        return float(node.memory_mib_left)
    return float(node.memory_mib_total) if which == 7 else float(node.gpu_count)


def read_rare(pod: Any, node: Any, which: int) -> float:
    """Reads the fields that only people's programs read."""
    if which == 13:
        return float(node.gpu_model)
    if which == 14:
        return float(node.rack)
    if which == 15:
        return float(node.gpu_classes)
    return float(pod.priority) if which == 16 else float(pod.gang)


def combine(operation: int, one: float, other: float) -> float:
    """Applies an operation to two numbers."""
    if operation >= LESS:
        return 1.0 if holds(operation, one, other) else 0.0
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
    return one // other if operation == FLOOR_DIVIDE else one % other


def holds(operation: int, one: float, other: float) -> bool:
    """Compares two numbers, or joins two conditions."""
    if operation == LESS:
        return one < other
    if operation == LESS_EQUAL:
        return one <= other
    if operation == EQUAL:
        return one == other
    if operation == AND:
        return one != 0 and other != 0
    return one != 0 or other != 0


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
    return math.sqrt(one) if operation == SQRT else transcend(operation, one)


def transcend(operation: int, one: float) -> float:
    """Applies one of the rarer functions."""
    if operation == EXP:
        return math.exp(one)
    if operation == LOG:
        return math.log(one)
    if operation == TANH:
        return math.tanh(one)
    return float(math.floor(one)) if operation == FLOOR else float(math.ceil(one))
