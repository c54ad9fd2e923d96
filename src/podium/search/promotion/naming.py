"""Gives every number of a program a name at the top of the file, and says what it is for."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from podium.model.records import GPU_MILLI
from podium.search.candidate.constants import declared_call, read_constants
from podium.search.candidate.vocabulary import RECORDS, RESERVED
from podium.search.program.program import fresh
from podium.search.promotion.folding import plain_number
from podium.search.promotion.places import is_protected, part_at, places, put
from podium.search.promotion.wording import worded

PLAIN = (0, 1, 2)
"""Numbers that say themselves what they mean."""

LONGEST = 80
_MILLI = "MILLI"
LONGEST_NAME = 18
_ROLES: dict[str, tuple[str, str]] = {
    "weight": ("W", "Weighs {}."),
    "scale": ("SCALE", "Is the measure of {}."),
    "limit": ("LIMIT", "Is what {} is compared with."),
    "bound": ("BOUND", "Bounds {}."),
    "choice": ("BONUS", "Counts where {}."),
    "protection": ("LEAST", "Keeps divisors above 0."),
    "value": ("VALUE", "Is one of the values that are added or returned."),
}


@dataclass(frozen=True, slots=True)
class Named:
    """Holds a number with its name and a comment."""

    name: str
    value: float
    comment: str


@dataclass(frozen=True, slots=True)
class _Use:
    role: str
    beside: ast.expr | None  # what the number is applied to


def name_numbers(text: str) -> tuple[ast.Module, tuple[Named, ...]]:
    """Takes the numbers out of a program; gives the rest of it, and the numbers by name."""
    tree = ast.parse(text)
    found = dict(_declared(tree))
    tree.body = [s for s in tree.body if not set(_targets(s)) & found.keys()]
    taken = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)} | found.keys() | {_MILLI}
    for place, node in list(places(tree)):
        value = plain_number(node) if isinstance(node, ast.Constant) else None
        if value is not None and value not in PLAIN:
            is_protection = is_protected(*(part_at(tree, place[:end]) for end in (-1, -2)))
            use = _use(part_at(tree, place[:-1]), part_at(tree, place))
            use = _Use("protection", None) if is_protection else use
            put(tree, place, ast.Name(_name(value, use, found, taken), ast.Load()))
    return tree, tuple(found.values())


def _declared(tree: ast.Module) -> Iterator[tuple[str, Named]]:
    tuned = {each.name: each for each in read_constants(ast.unparse(tree))}
    for statement in tree.body:
        for name in _targets(statement):
            value = plain_number(statement.value)  # type: ignore[attr-defined]
            bounds = ""
            if declared_call(statement):
                value = tuned[name].value
                bounds = f" Tuned within {tuned[name].low:g} and {tuned[name].high:g}."
            if value is not None:
                yield name, Named(name, value, _comment(_use_of(tree, name)) + bounds)


def _targets(statement: ast.stmt) -> list[str]:
    if not isinstance(statement, ast.Assign):
        return []
    return [each.id for each in statement.targets if isinstance(each, ast.Name)]


def _use_of(tree: ast.Module, name: str) -> _Use:
    for parent in ast.walk(tree):
        for child in ast.iter_child_nodes(parent):
            is_read = isinstance(child, ast.Name) and child.id == name
            if is_read and isinstance(child, ast.Name) and isinstance(child.ctx, ast.Load):
                return _use(parent, child)
    return _Use("value", None)


def _use(parent: ast.AST, number: ast.expr) -> _Use:
    if isinstance(parent, ast.BinOp):
        other = parent.right if parent.left is number else parent.left
        if isinstance(parent.op, ast.Mult):
            return _Use("weight", other)
        is_divisor = isinstance(parent.op, ast.Div | ast.FloorDiv) and parent.right is number
        return _Use("scale", other) if is_divisor else _Use("value", other)
    if isinstance(parent, ast.IfExp) and parent.body is number:
        return _Use("choice", parent.test)
    if isinstance(parent, ast.Compare):
        return _Use("limit", next(s for s in (parent.left, *parent.comparators) if s is not number))
    if isinstance(parent, ast.Call) and getattr(parent.func, "id", "") in ("max", "min"):
        return _Use("bound", next((each for each in parent.args if each is not number), None))
    return _Use("value", None)


def _comment(use: _Use) -> str:
    _, words = _ROLES[use.role]
    beside = worded(use.beside) if use.beside is not None else ""
    return words.format(beside if 0 < len(beside) <= LONGEST else "the term beside it")


def _name(value: float, use: _Use, found: dict[str, Named], taken: set[str]) -> str:
    if value == GPU_MILLI and isinstance(value, int):
        found.setdefault(_MILLI, Named(_MILLI, value, "Thousandths of a GPU or of a CPU."))
        return _MILLI
    comment = _comment(use)
    for known in found.values():
        is_same = known.value == value and type(known.value) is type(value)
        if is_same and known.comment == comment:
            return known.name
    name = fresh("_".join([_ROLES[use.role][0], *_slug(use.beside)]), taken)
    taken.add(name)
    found[name] = Named(name, value, comment)
    return name


def _slug(node: ast.expr | None) -> list[str]:
    """Takes the first name or field of an expression as a part of a name."""
    for part in ast.walk(node) if node is not None else ():
        is_field = isinstance(part, ast.Attribute) and getattr(part.value, "id", "") in RECORDS
        if is_field and isinstance(part, ast.Attribute):
            return [_short(part.attr)]
        if isinstance(part, ast.Name) and part.id not in RESERVED:
            return [_short(part.id)]
    return []


def _short(name: str) -> str:
    words = name.upper().split("_")
    while len(words) > 1 and len("_".join(words)) > LONGEST_NAME:
        words.pop()
    return "_".join(words)
