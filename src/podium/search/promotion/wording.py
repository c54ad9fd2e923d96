"""Says in words what parts of any candidate compute, as far as there are words for them."""

from __future__ import annotations

import ast

from podium.errors import PolicyError
from podium.search.program import expression as made
from podium.search.program.expression import Expression
from podium.search.program.ingredients import NOTES
from podium.search.program.program import terms
from podium.search.program.reader import parse
from podium.search.program.translation import Environment, translated
from podium.search.program.writer import comment_on, phrase

LONGEST = 110
"""Longer phrases explain less than the code."""


def expression_of(node: ast.expr) -> Expression | None:
    """Translates an expression by itself; names stand for themselves."""
    known = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
    names = {each: made.name(each) for each in known - {"pod", "node", "gpu", "math", "HOLD"}}
    try:
        return translated(node, Environment(names))
    except PolicyError:
        return None


def worded(node: ast.expr) -> str:
    """Puts an expression into words, or quotes it."""
    found = expression_of(node)
    words = phrase(found) if found is not None else ""
    return words if 0 < len(words) <= LONGEST else f"`{ast.unparse(node)}`"


def notes_of(text: str) -> dict[str, str]:
    """Says of each named quantity of a program what it is, where there are words for it."""
    try:
        program = parse(text)
    except PolicyError:
        return {}
    found = {
        t.name: NOTES.get(t.expression) or comment_on(t.expression) for t in terms(program.block)
    }
    return {name: note for name, note in found.items() if note}
