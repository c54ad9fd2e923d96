"""Runs any program without compiling it: assembles instructions that one policy interprets.

Compiling a candidate takes far longer than judging it. The interpreter is compiled once; the
program reaches it as the table of a policy, a row of operation and operand per instruction.
All arithmetic is in doubles, which is exact for the whole numbers that a sound program has.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from podium.errors import PolicyError
from podium.policies import PairPolicy
from podium.policies.language.arithmetic import OUTSIDE
from podium.policies.policy import FixedTable, from_trusted_function
from podium.search.program import interpreter as do
from podium.search.program.expression import HOLD, JUNCTIONS, REDUCTIONS, Expression
from podium.search.program.program import Block, Function, Program, Term, roots
from podium.search.program.units import FIELDS, HERE

NUMBER, FIELD, LOAD, STORE = 0, 1, 2, 3
"""Push a number, a field, a term; take a term off the stack."""

ADD, SUBTRACT, MULTIPLY, DIVIDE, FLOOR_DIVIDE, MODULO = 4, 5, 6, 7, 8, 9
MINIMUM, MAXIMUM, LESS, LESS_EQUAL, EQUAL, AND, OR = 10, 11, 12, 13, 14, 15, 16
"""Take two numbers and push one; OR is the last of these."""

NEGATE, ABSOLUTE, TRUNCATE, SQUARE, NOT, SQRT, EXP, LOG, TANH, FLOOR, CEIL = range(17, 28)
"""Take one number and push one; CEIL is the last of these."""

SELECT = 28
"""Take a condition and two numbers, and push one of them."""

ACCUMULATE, KEEP_SMALLEST, KEEP_LARGEST = 29, 30, 31
"""Take a number into a term."""

JUMP_IF_FALSE, JUMP, LOOP, NEXT, RETURN = 32, 33, 34, 35, 36
"""Say where to go on. LOOP and NEXT name a place below zero where all slots are meant."""

STACK, TERMS = 32, 64
MEMORY = STACK + TERMS
"""Numbers on the stack, and terms beside it."""


_PAIRS = {
    "+": do.ADD, "-": do.SUBTRACT, "*": do.MULTIPLY, "/": do.DIVIDE, "//": do.FLOOR_DIVIDE,
    "%": do.MODULO, "min": do.MINIMUM, "max": do.MAXIMUM, "<": do.LESS, "<=": do.LESS_EQUAL,
    "==": do.EQUAL, "and": do.AND, "or": do.OR,
}  # fmt: skip
_SINGLES = {
    "neg": do.NEGATE, "abs": do.ABSOLUTE, "int": do.TRUNCATE, "sqrt": do.SQRT, "exp": do.EXP,
    "log": do.LOG, "tanh": do.TANH, "floor": do.FLOOR, "ceil": do.CEIL, "not": do.NOT,
}  # fmt: skip
_KEEPING = {
    "sum": do.ACCUMULATE, "smallest": do.KEEP_SMALLEST, "largest": do.KEEP_LARGEST,
}  # fmt: skip
_FIELDS = {title: index for index, title in enumerate(FIELDS)}


def assembled(program: Program) -> npt.NDArray[np.float64]:
    """Returns one row of operation and operand per instruction."""
    constants = {each.name: each.value for each in program.constants}
    assembler = _Assembler(constants, {each.name: each for each in program.functions})
    assembler.block(program.block)
    if len(assembler.places) > do.TERMS or assembler.deepest > do.STACK:
        raise PolicyError("the program has too many terms, or is nested too deeply, to interpret")
    return np.array(assembler.code, np.float64)


@dataclass(slots=True)
class _Assembler:
    constants: dict[str, float]
    functions: dict[str, Function]
    code: list[tuple[int, float]] = field(default_factory=list)
    places: dict[str, int] = field(default_factory=dict)
    depth: int = 0
    deepest: int = 0
    parameters: dict[str, int] = field(default_factory=dict)  # places, within a function

    def block(self, block: Block) -> None:
        for statement in block.statements:
            if isinstance(statement, Term):
                self._term(statement)
            else:
                self._push(statement.condition)
                jump = self._later(do.JUMP_IF_FALSE)
                self.block(statement.block)
                self._land(jump)
        self._push(block.result)
        self._emit(do.RETURN, 0, -1)

    def _emit(self, operation: int, operand: float = 0, growth: int = 0) -> None:
        self.code.append((operation, operand))
        self.depth += growth
        self.deepest = max(self.deepest, self.depth)

    def _later(self, operation: int) -> int:
        self._emit(operation, 0, -1 if operation == do.JUMP_IF_FALSE else 0)
        return len(self.code) - 1

    def _land(self, jump: int) -> None:
        self.code[jump] = (self.code[jump][0], len(self.code))

    def _term(self, term: Term) -> None:
        place = do.STACK + self.places.setdefault(term.name, len(self.places))
        if term.expression.head in REDUCTIONS:
            self._loop(term.expression, place)
        else:
            self._push(term.expression)
            self._emit(do.STORE, place, -1)

    def _loop(self, expression: Expression, place: int) -> None:
        value, condition, start = expression.arguments
        self._push(start)
        self._emit(do.STORE, place, -1)
        is_own = expression.value == "gpus"
        loop = self._later(do.LOOP)
        first = len(self.code)
        skip = None
        if condition.head != "always":
            self._push(condition)
            skip = self._later(do.JUMP_IF_FALSE)
        self._push(value)
        self._emit(_KEEPING[expression.head], place, -1)
        if skip is not None:
            self._land(skip)
        self._emit(do.NEXT, first if is_own else -first)
        self.code[loop] = (do.LOOP, len(self.code) if is_own else -len(self.code))

    def _push(self, expression: Expression) -> None:
        head, arguments = expression.head, expression.arguments
        if head == "number":
            self._emit(do.NUMBER, expression.value, 1)
        elif head == "hold":
            self._emit(do.NUMBER, -np.inf, 1)
        elif head == "field":
            self._emit(do.FIELD, _FIELDS[expression.value], 1)
        elif head == "name":
            self._name(expression.value)
        elif head == "if":
            self._choose(*arguments)
        elif head == "call":
            self._call(self.functions[expression.value], arguments)
        elif head in JUNCTIONS and any(map(_may_fail, arguments[1:])):
            self._decide(head, arguments)
        else:
            self._operate(head, arguments)

    def _choose(self, condition: Expression, then: Expression, otherwise: Expression) -> None:
        self._push(condition)
        if then.is_leaf and otherwise.is_leaf and not (_may_fail(then) or _may_fail(otherwise)):
            self._push(then)
            self._push(otherwise)
            self._emit(do.SELECT, 0, -2)
            return
        skip = self._later(do.JUMP_IF_FALSE)
        self._push(then)
        end = self._later(do.JUMP)
        self.depth -= 1  # one of the two is on the stack in the end
        self._land(skip)
        self._push(otherwise)
        self._land(end)

    def _call(self, function: Function, arguments: tuple[Expression, ...]) -> None:
        """Stores the arguments, all computed before, and computes the function in place."""
        for argument in arguments:
            self._push(argument)
        places: dict[str, int] = {}
        for title in reversed(function.parameters):
            own = f"{function.name}({title})"
            places[title] = do.STACK + self.places.setdefault(own, len(self.places))
            self._emit(do.STORE, places[title], -1)
        outer, self.parameters = self.parameters, places
        self._push(function.expression)
        self.parameters = outer

    def _name(self, title: str) -> None:
        if title in self.parameters:
            self._emit(do.LOAD, self.parameters[title], 1)
        elif title in self.constants:
            self._emit(do.NUMBER, self.constants[title], 1)
        else:
            self._emit(do.LOAD, do.STACK + self.places[title], 1)

    def _operate(self, head: str, arguments: tuple[Expression, ...]) -> None:
        if head in (">", ">="):
            # As the other way round: both sides are numbers.
            head, arguments = ("<" if head == ">" else "<="), (arguments[1], arguments[0])
        self._push(arguments[0])
        if head in _SINGLES:
            self._emit(_SINGLES[head])
        elif head == "power":
            self._power(arguments[1])
        elif head == "!=":
            self._push(arguments[1])
            self._emit(do.EQUAL, 0, -1)
            self._emit(do.NOT)
        else:
            for part in arguments[1:]:
                self._push(part)
                self._emit(_PAIRS[head], 0, -1)

    def _decide(self, head: str, arguments: tuple[Expression, ...]) -> None:
        """Asks one condition after the other, and none once the answer is known."""
        first, *rest = arguments
        self._push(first)
        if not rest:
            self._emit(do.NOT)
            self._emit(do.NOT)
            return
        skip = self._later(do.JUMP_IF_FALSE)
        self._settle(head == "or", head, rest)
        end = self._later(do.JUMP)
        self.depth -= 1  # one of the two is on the stack in the end
        self._land(skip)
        self._settle(head == "and", head, rest)
        self._land(end)

    def _settle(self, is_settled: bool, head: str, rest: list[Expression]) -> None:
        if is_settled:
            self._emit(do.NUMBER, float(head == "or"), 1)
        else:
            self._decide(head, tuple(rest))

    def _power(self, exponent: Expression) -> None:
        if exponent.head != "number" or exponent.value not in (1, 2, 4, 8):
            raise PolicyError("only squares, and squares of squares, are interpreted")
        for _ in range({1: 0, 2: 1, 4: 2, 8: 3}[int(exponent.value)]):
            self._emit(do.SQUARE)


def _may_fail(part: Expression) -> bool:
    """Returns whether a part reads what is not there for every pod, so that it must not be read."""
    return HERE in part.fields


def interpreted(program: Program, name: str = "bred") -> PairPolicy:
    """Builds a policy from a program without compiling; it scores exactly as the written text."""
    code = assembled(program)
    engine = _engine_by_gpu() if program.takes_gpu else _engine()
    may_hold = any(root == HOLD for root in roots(program.block))
    settings: dict[str, Any] = {key.lower(): value for key, value in program.settings}
    return replace(engine, name=name, prepare=FixedTable(code), may_hold=may_hold, **settings)


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
        elif operation == JUMP:
            at = int(operand)
        else:
            slot = slot + 1 if operation == NEXT else 0
            has_more = slot < (node.gpu_count if operand > 0 else len(node.gpu_milli_left))
            # A loop with nothing to do is left; one with more to do begins anew.
            at = int(abs(operand)) if has_more == (operation == NEXT) else at
    return float(memory[top])


def move(memory: Any, top: int, operation: int, operand: float) -> int:
    """Moves a number to the stack or from it, and returns the new top."""
    if operation == STORE:
        memory[int(operand)] = memory[top]
        return top - 1
    memory[top + 1] = operand if operation == NUMBER else memory[int(operand)]
    return top + 1


def compute(memory: Any, top: int, operation: int) -> int:
    """Applies an operation to the numbers at the top, and returns the new top."""
    if operation <= OR:
        memory[top - 1] = combine(operation, memory[top - 1], memory[top])
        return top - 1
    if operation <= CEIL:
        memory[top] = change(operation, memory[top])
        return top
    memory[top - 2] = memory[top - 1] if memory[top - 2] != 0 else memory[top]
    return top - 2


def keep(memory: Any, top: int, operation: int, place: int) -> None:
    """Pops the top number into a term."""
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
        if gpu < 0:
            raise IndexError(OUTSIDE)
        return float(node.gpu_milli_left[gpu])
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
    if which == 18:
        return float(pod.gpu_models)
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
