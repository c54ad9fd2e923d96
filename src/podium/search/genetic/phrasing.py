"""Says in words what an expression computes, for the comments of a written policy."""

from __future__ import annotations

from podium.search.genetic.expression import COMPARISONS, FUNCTIONS, Expression
from podium.search.genetic.fields import FIELDS

LONGEST = 84
"""Longer phrases explain nothing."""

_COMPARED = {
    "<": "is below", "<=": "is at most", ">": "is above", ">=": "is at least", "==": "is exactly",
    "!=": "is not",
}  # fmt: skip
_BETWEEN = {
    "+": "plus", "-": "less", "*": "times", "/": "over", "//": "in whole times of",
    "%": "beyond whole times of",
}  # fmt: skip
_BEFORE = {"neg": "minus", "abs": "the size of", "int": "whole steps of", "not": "not"}
_REDUCED = {
    "sum": "Sums up", "smallest": "Finds the smallest of", "largest": "Finds the largest of",
}  # fmt: skip


def comment_on(expression: Expression) -> str:
    """Makes a comment of at most one line, or none."""
    words = _reduction(expression) if expression.head in _REDUCED else phrase(expression)
    return words[0].upper() + words[1:] + "." if 0 < len(words) <= LONGEST else ""


def _reduction(expression: Expression) -> str:
    value, condition, _ = expression.arguments
    is_count = expression.head == "sum" and value.head == "number"
    words = "Counts GPUs" if is_count else f"{_REDUCED[expression.head]} {phrase(value)} of GPUs"
    return words if condition.head == "always" else f"{words} where {phrase(condition)}"


def phrase(expression: Expression) -> str:
    """Puts an expression into words."""
    head, arguments = expression.head, expression.arguments
    if head == "number":
        return repr(expression.value)
    if head == "field":
        return FIELDS[expression.value].phrase
    if head == "name":
        return str(expression.value).lower().replace("_", " ")
    words = [phrase(part) for part in arguments]
    if head in _BETWEEN:
        if head in ("*", "/", "//", "%") and not arguments[0].is_leaf:
            words[0] += ","
        return f"{words[0]} {_BETWEEN[head]} {words[1]}"
    if head in COMPARISONS:
        return f"{words[0]} {_COMPARED[head]} {words[1]}"
    if head in _BEFORE:
        return f"{_BEFORE[head]} {words[0]}"
    return _rest(head, words)


def _rest(head: str, words: list[str]) -> str:
    if head in ("and", "or"):
        return f" {head} ".join(words)
    if head in ("min", "max"):
        return f"the {'least' if head == 'min' else 'most'} of {' and '.join(words)}"
    if head == "if":
        return f"{words[1]} where {words[0]}, else {words[2]}"
    if head == "power":
        return f"{words[0]} squared" if words[1] == "2" else f"{words[0]} to the power {words[1]}"
    if head in FUNCTIONS:
        return f"the {head} of {words[0]}"
    return head
