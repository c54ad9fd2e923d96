"""Names the parts of a program that can be replaced, and what may be drawn there."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from podium.search.program.expression import REDUCTIONS, Expression, Path, name, replaced
from podium.search.program.expression import field as read
from podium.search.program.ingredients import CONSTANTS, GPU_INGREDIENTS, HERE, INGREDIENTS, NOTES
from podium.search.program.program import (
    Block,
    Constant,
    Guard,
    Program,
    Term,
    fresh,
    names_given,
    roots,
    terms,
    with_root,
)
from podium.search.program.units import DRAWN, FIELDS, Unit, unit_of, unit_of_name, units_of

LIKELY = {
    "stranded_gpu_milli_more": 2, "starved_gpu_milli_more": 4, "lost_gpu_milli": 2,
    "cpu_per_gpu_total": 2, "gpu_milli_behind": 2,
}  # fmt: skip
"""How many times as often as others some ingredients are drawn."""

Leaves = dict[tuple[int, int, int], list[Expression]]


@dataclass(slots=True)
class Draft:
    """The leaves that can be drawn, by dimension, and the constants drawn so far."""

    leaves: Leaves
    taken: set[str]
    constants: list[Constant] = field(default_factory=list)

    @classmethod
    def at(cls, program: Program, visible: set[str], units: dict[str, Unit]) -> Draft:
        """Prepares drawing where some names are visible."""
        leaves: Leaves = {dims: list(found) for dims, found in _field_leaves().items()}
        ingredients = available(program)
        for title in ingredients:
            found = leaves.setdefault(ingredient_units()[title][:3], [])
            found += [name(title)] * LIKELY.get(title, 1)
        for title in visible:
            unit = units[title]
            if title not in ingredients and unit.kind != "boolean":
                leaves.setdefault(unit[:3], []).append(name(title))
        for found in leaves.values():
            found.sort(key=lambda leaf: str(leaf.value))
        return cls(leaves, names_given(program) | set(INGREDIENTS) | set(CONSTANTS))

    @property
    def names(self) -> set[str]:
        """Lists the names that may be referred to."""
        every = itertools.chain.from_iterable(self.leaves.values())
        return {leaf.value for leaf in every if leaf.head == "name"}

    @property
    def is_usual_known(self) -> bool:
        """Returns whether CPUS_PER_GPU is the constant of that name, and not a term."""
        return "stranded_gpu_milli_more" in self.names

    def in_loop(self) -> Draft:
        """Adds the free part of the slot, which is what a loop is about."""
        gpu = (0, 0, 1)
        leaves = self.leaves | {gpu: [*self.leaves[gpu], *[read("left")] * 6]}
        return Draft(leaves, self.taken, self.constants)

    def constant(self, base: str, value: float, low: float, high: float) -> Expression:
        """Adds a tunable constant and refers to it."""
        title = fresh(base, self.taken)
        self.taken.add(title)
        self.constants.append(Constant(title, value, (low, high)))
        return name(title)

    def taken_up(self, program: Program) -> Program:
        """Adds the constants that were drawn to a program."""
        return replace(program, constants=(*program.constants, *self.constants))


@functools.cache
def ingredient_units() -> dict[str, Unit]:
    """Finds the unit of each ingredient."""
    units = {title: unit_of_name(title) for title in CONSTANTS}
    for title, expression in INGREDIENTS.items():
        units[title] = unit_of(expression, units)
    return units


@functools.cache
def _field_leaves() -> Leaves:
    leaves: Leaves = {}
    for title in DRAWN:
        leaves.setdefault(FIELDS[title].unit[:3], []).append(read(title))
    return leaves


@functools.cache
def _closures() -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for title, expression in INGREDIENTS.items():
        inner = expression.names
        found[title] = {title, *inner}.union(*(found[each] for each in inner - CONSTANTS.keys()))
    return found


def available(program: Program) -> list[str]:
    """Lists the numeric ingredients that a program has, or may get without a clash of names."""
    given = {term.name: term.expression for term in terms(program.block)}
    constants = {constant.name for constant in program.constants}
    clashes = CONSTANTS.keys() & given.keys() | {
        title
        for title, expression in INGREDIENTS.items()
        if title in constants or given.get(title, expression) != expression
    }
    return [
        title
        for title, closure in _closures().items()
        if not closure & clashes
        and (program.takes_gpu or title not in GPU_INGREDIENTS)
        and (program.draws_ingredients or title == HERE)  # a field, as it must be read
        and title != "is_share"
    ]


def visible_names(program: Program) -> list[set[str]]:
    """Lists, for each root expression, the names that are given before it."""
    constants = {constant.name for constant in program.constants}
    return list(_visible(program.block, constants))


def _visible(block: Block, known: set[str]) -> Iterator[set[str]]:
    for statement in block.statements:
        yield set(known)
        if isinstance(statement, Term):
            known.add(statement.name)
        else:
            yield from _visible(statement.block, set(known))
    yield set(known)


_FIXED = frozenset([*REDUCTIONS, "always", "hold"])
_FREE_ARGUMENTS = dict.fromkeys(REDUCTIONS, 2) | {"power": 1}


@dataclass(frozen=True, slots=True)
class Site:
    """Names one part of one root expression."""

    root: int
    path: Path
    part: Expression
    in_loop: bool


def sites(program: Program) -> list[Site]:
    """Lists every part that may be replaced; ingredients are what their names say, and stay."""
    found: list[Site] = []
    for index, root in enumerate(roots(program.block)):
        if root in NOTES:
            continue
        is_loop = root.head in REDUCTIONS
        for path, part in _free_parts(root):
            found.append(Site(index, path, part, is_loop))
    return found


def _free_parts(root: Expression) -> Iterator[tuple[Path, Expression]]:
    """Visits all parts but loops, what they begin with, and exponents."""
    waiting: list[tuple[Path, Expression]] = [((), root)]
    while waiting:
        path, part = waiting.pop()
        if part.head not in _FIXED:
            yield path, part
        arguments = part.arguments[: _FREE_ARGUMENTS.get(part.head, len(part.arguments))]
        for index in range(len(arguments) - 1, -1, -1):
            waiting.append(((*path, index), arguments[index]))  # noqa: PERF401 - faster so


def draft_at(program: Program, site: Site) -> tuple[Draft, dict[str, Unit]]:
    """Prepares drawing at a site."""
    units = units_of(program)
    draft = Draft.at(program, visible_names(program)[site.root], units)
    return (draft.in_loop() if site.in_loop else draft), units


def function_sites(program: Program) -> list[Site]:
    """Lists every part of functions; their roots are counted down from -1."""
    return [
        Site(-1 - index, path, part, False)
        for index, function in enumerate(program.functions)
        for path, part in _free_parts(function.expression)
    ]


def put(program: Program, site: Site, part: Expression) -> Program:
    """Replaces the part at a site."""
    if site.root < 0:
        functions = list(program.functions)
        own = functions[-1 - site.root]
        changed = replaced(own.expression, site.path, part)
        functions[-1 - site.root] = replace(own, expression=changed)
        return replace(program, functions=tuple(functions))
    root = list(roots(program.block))[site.root]
    return with_root(program, site.root, replaced(root, site.path, part))


def result_sites(program: Program) -> list[Site]:
    """Lists the scores that a program returns, other than refusals."""
    indices: list[int] = []
    _results(program.block, 0, indices)
    expressions = list(roots(program.block))
    found = [Site(index, (), expressions[index], False) for index in indices]
    return [site for site in found if site.part.head != "hold"]


def _results(block: Block, index: int, found: list[int]) -> int:
    """Numbers roots as `roots` lists them; returns the number after the block's own."""
    for statement in block.statements:
        index += 1
        if isinstance(statement, Guard):
            index = _results(statement.block, index, found)
    found.append(index)
    return index + 1
