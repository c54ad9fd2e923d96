"""Numbers the instructions of the interpreter."""

from __future__ import annotations

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

JUMP_IF_FALSE, LOOP, NEXT, RETURN = 32, 33, 34, 35
"""Say where to go on. LOOP and NEXT name a place below zero where all slots are meant."""

STACK, TERMS = 32, 64
MEMORY = STACK + TERMS
"""Numbers on the stack, and terms beside it."""
