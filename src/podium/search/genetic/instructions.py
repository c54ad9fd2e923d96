"""Numbers the instructions of the interpreter."""

from __future__ import annotations

NUMBER, FIELD, LOAD, STORE = 0, 1, 2, 3
"""Push a number, a field, a term; take a term off the stack."""

ADD, SUBTRACT, MULTIPLY, DIVIDE, FLOOR_DIVIDE, MODULO, POWER = 4, 5, 6, 7, 8, 9, 10
MINIMUM, MAXIMUM, LESS, LESS_EQUAL, EQUAL, AND, OR = 11, 12, 13, 14, 15, 16, 17
"""Take two numbers and push one; OR is the last of these."""

NEGATE, ABSOLUTE, TRUNCATE, SQUARE, SQRT, EXP, LOG, TANH, FLOOR, CEIL, NOT = range(18, 29)
"""Take one number and push one; NOT is the last of these."""

SELECT, JUMP_IF_FALSE, RETURN = 29, 30, 31
LOOP_GPUS, LOOP_SLOTS, NEXT = 32, 33, 34
ACCUMULATE, KEEP_SMALLEST, KEEP_LARGEST = 35, 36, 37

STACK, TERMS = 32, 64
MEMORY = STACK + TERMS
"""Numbers on the stack, and terms beside it."""
