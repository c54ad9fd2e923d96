"""Arranges a program for reading: ingredients first, long parts named."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from podium.search.program.expression import (
    COMPARISONS,
    JUNCTIONS,
    REDUCTIONS,
    Expression,
    has_field,
    mapped,
    name,
    renamed,
    walk,
)
from podium.search.program.ingredients import CONSTANTS, INGREDIENTS, genuine, needed
from podium.search.program.layout import text_of
from podium.search.program.program import (
    Block,
    Guard,
    Program,
    Statement,
    Term,
    fresh,
    names_given,
    names_used,
    roots,
    terms,
)
from podium.search.program.units import (
    BOOLEAN,
    CPU,
    GPU,
    GPU_FIELDS,
    MEMORY,
    SLOT_FIELDS,
    Unit,
    Units,
    unit_of,
    units_of,
)

_RESOURCES = (("cpu", "cpu"), ("memory", "memory"), ("gpu", "gpu"))
_SUFFIXES = {
    "/": "ratio", "-": "gap", "+": "total", "*": "weight", "abs": "distance", "int": "steps",
    "min": "cap", "max": "floor", "power": "penalty", "if": "choice", "sqrt": "root", "neg": "cost",
    "sum": "sum", "smallest": "least", "largest": "most", "%": "rest", "//": "times",
}  # fmt: skip
_MEASURES = {CPU: "cpu_milli", MEMORY: "memory_mib", GPU: "gpu_milli"}


def name_for(expression: Expression, units: Units) -> str:
    """Builds a name from the resources that occur and the last operation.

    >>> from podium.search.program.expression import apply, field
    >>> name_for(apply("/", field("pod.cpu_milli"), field("node.cpu_milli_left")), {})
    'cpu_ratio'
    """
    if expression.head in COMPARISONS or expression.head in (*JUNCTIONS, "not"):
        return f"is_{_subject(expression, units)}_{_side(expression.head)}"
    called = _called_name(expression)
    if called:
        return called
    suffix = _SUFFIXES.get(expression.head, "term")
    unit = unit_of(expression, units)
    if unit in _MEASURES:
        return f"{_MEASURES[unit]}_{suffix}"
    if expression.head == "sum" and expression.arguments[0].head == "number":
        return "gpus_counted"
    return f"{_subject(expression, units)}_{suffix}"


def _called_name(expression: Expression) -> str:
    """Names what is made of calls of one function: of all slots, of the pod's, what is left."""
    head, parts = expression.head, expression.arguments
    if head == "call":
        return f"{expression.value}_gpu_milli"
    if head == "sum" and parts[0].head == "call":
        return f"{parts[0].value}_before"
    if head == "*" and (called := _called_name(parts[1])).endswith("_more"):
        return called.removesuffix("_more") + "_taken"
    if head != "-" or parts[0].head != parts[1].head:
        return ""
    if parts[0].head == "call" and parts[0].value == parts[1].value:
        return f"{parts[0].value}_more"
    if parts[0].head == "name":
        stems = (str(parts[0].value).removesuffix("_before"),
                 str(parts[1].value).removesuffix("_taken"))  # fmt: skip
        is_rest = stems[0] == stems[1] and parts[0].value != parts[1].value
        return f"{stems[0]}_after" if is_rest else ""
    return ""


def _side(head: str) -> str:
    sides = {"<": "low", "<=": "low", ">": "high", ">=": "high", "==": "exact", "!=": "other"}
    return sides.get(head, "case")


def _subject(expression: Expression, units: Units) -> str:
    found: list[str] = []
    for _, part in walk(expression):
        found += _resources(part, units)
    # In the order in which resources are always listed.
    return "_".join(word for _, word in _RESOURCES if word in found) or "score"


def _resources(part: Expression, units: Units) -> list[str]:
    if part.head == "field" or part.head == "name":
        unit = unit_of(part, units)
        powers = [word for key, word in _RESOURCES if _power(unit, key)]
        text = str(part.value).lower()
        return powers or [word for _, word in _RESOURCES if word in text and unit != BOOLEAN]
    return []


def _power(unit: Unit, key: str) -> int:
    return int(getattr(unit, key))


LONGEST = 15
"""More nodes than this are hard to read in one line."""

WIDEST = 76
"""More characters than this do not fit into one, with a name and an indentation."""

SHORTEST = 4


def with_ingredients(program: Program) -> Program:
    """Defines the ingredients that a program refers to, at its top and in their order."""
    own = genuine(terms(program.block)).keys()
    missing = names_used(program) - names_given(program)
    wanted = needed(missing | own)
    block = _without(program.block, {term.name for term in wanted})
    names = missing.union(*(term.expression.names for term in wanted))
    given = {constant.name for constant in program.constants}
    added = [each for title, each in CONSTANTS.items() if title in names - given]
    block = replace(block, statements=(*wanted, *block.statements))
    return replace(program, block=block, constants=(*program.constants, *added))


def _without(block: Block, names: set[str]) -> Block:
    statements: list[Statement] = []
    for statement in block.statements:
        if isinstance(statement, Guard):
            statements.append(Guard(statement.condition, _without(statement.block, names)))
        elif statement.name not in names:
            statements.append(statement)
    return Block(tuple(statements), block.result)


def without_idle_gpu(program: Program) -> Program:
    """Stops scoring each GPU where no score depends on it."""
    if program.takes_gpu and not any(has_field(root, GPU_FIELDS) for root in roots(program.block)):
        return replace(program, takes_gpu=False)
    return program


def with_short_lines(program: Program) -> Program:
    """Names parts of long expressions."""
    if not any(_is_long(root) for root in roots(program.block)):
        return program
    namer = _Namer(units_of(program), names_given(program) | set(INGREDIENTS))
    return replace(program, block=namer.block(program.block))


class _Namer:
    def __init__(self, units: dict[str, Unit], taken: set[str]) -> None:
        self.units, self.taken = units, taken

    def block(self, block: Block) -> Block:
        statements: list[Statement] = []
        for statement in block.statements:
            if isinstance(statement, Guard):
                condition = self._shorter(statement.condition, statements)
                statements.append(Guard(condition, self.block(statement.block)))
            else:
                expression = self._shorter(statement.expression, statements)
                statements.append(Term(statement.name, expression))
        result = self._shorter(block.result, statements)
        return Block(tuple(statements), result)

    def _shorter(self, expression: Expression, statements: list[Statement]) -> Expression:
        while _is_long(expression):
            part = _nameable(expression)
            if part is None:
                break
            title = fresh(name_for(part, self.units), self.taken)
            self.taken.add(title)
            self.units[title] = unit_of(part, self.units)
            statements.append(Term(title, part))
            expression = _with_name(expression, part, title)
        return expression


def _is_long(expression: Expression) -> bool:
    if expression.head in REDUCTIONS or expression.size < SHORTEST:
        return False
    return expression.size > LONGEST or len(text_of(expression)) > WIDEST


def _with_name(expression: Expression, part: Expression, title: str) -> Expression:
    return mapped(expression, lambda each: name(title) if each == part else each)


def _nameable(expression: Expression) -> Expression | None:
    """Picks the largest part that is itself short enough."""
    best: Expression | None = None
    most = SHORTEST - 1
    for path, part in walk(expression):
        count = part.size
        if not path or count > LONGEST or count <= most or has_field(part, SLOT_FIELDS):
            continue
        if len(text_of(part)) <= WIDEST:
            best, most = part, count
    return best


def with_new_names(program: Program, parents: Iterable[Program]) -> Program:
    """Names terms anew that are not what they were in a parent: a name says what it computes."""
    known = {term for parent in parents for term in terms(parent.block)}
    ingredients = genuine(terms(program.block))
    # What is made of something that has changed is no ingredient any more, as it may look.
    changed = [
        term
        for term in terms(program.block)
        if term.name not in ingredients and (term not in known or term.name in INGREDIENTS)
    ]
    units = units_of(program)
    taken = names_given(program) | set(INGREDIENTS)
    names: dict[str, str] = {}
    for term in changed:
        title = name_for(term.expression, units)
        if re.sub(r"_\d+$", "", term.name) != title:
            names[term.name] = fresh(title, taken)
            taken.add(names[term.name])
    return replace(program, block=_renamed(program.block, names)) if names else program


def _renamed(block: Block, names: dict[str, str]) -> Block:
    statements: list[Statement] = []
    for statement in block.statements:
        if isinstance(statement, Guard):
            condition = renamed(statement.condition, names)
            statements.append(Guard(condition, _renamed(statement.block, names)))
        else:
            title = names.get(statement.name, statement.name)
            statements.append(Term(title, renamed(statement.expression, names)))
    return Block(tuple(statements), renamed(block.result, names))
