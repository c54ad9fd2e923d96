"""Names the parts of a program that can be replaced, and what may be drawn there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from podium.search.genetic.draft import Draft, visible_names
from podium.search.genetic.expression import REDUCTIONS, Expression, Path, replaced
from podium.search.genetic.inference import units_of
from podium.search.genetic.ingredients import NOTES
from podium.search.genetic.program import Block, Guard, Program, roots, with_root
from podium.search.genetic.units import Unit

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


def put(program: Program, site: Site, part: Expression) -> Program:
    """Puts another part at a site."""
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
    """Numbers roots as `roots` lists them; gives the number after the block's own."""
    for statement in block.statements:
        index += 1
        if isinstance(statement, Guard):
            index = _results(statement.block, index, found)
    found.append(index)
    return index + 1
