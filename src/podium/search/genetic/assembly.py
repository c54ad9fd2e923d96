"""Assembles a program into the instructions of the interpreter."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from podium.errors import PolicyError
from podium.search.genetic import instructions as do
from podium.search.genetic.expression import REDUCTIONS, Expression
from podium.search.genetic.fields import FIELDS
from podium.search.genetic.program import Block, Program, Term

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
    """Gives one row of operation and operand per instruction."""
    assembler = _Assembler({each.name: each.value for each in program.constants})
    assembler.block(program.block)
    if len(assembler.places) > do.TERMS or assembler.deepest > do.STACK:
        raise PolicyError("the program has too many terms, or is nested too deeply, to interpret")
    return np.array(assembler.code, np.float64)


@dataclass(slots=True)
class _Assembler:
    constants: dict[str, float]
    code: list[tuple[int, float]] = field(default_factory=list)
    places: dict[str, int] = field(default_factory=dict)
    depth: int = 0
    deepest: int = 0

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
            for part in arguments:
                self._push(part)
            self._emit(do.SELECT, 0, -2)
        else:
            self._operate(head, arguments)

    def _name(self, title: str) -> None:
        if title in self.constants:
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

    def _power(self, exponent: Expression) -> None:
        if exponent.head != "number" or exponent.value not in (1, 2, 4, 8):
            raise PolicyError("only squares, and squares of squares, are interpreted")
        for _ in range({1: 0, 2: 1, 4: 2, 8: 3}[int(exponent.value)]):
            self._emit(do.SQUARE)
