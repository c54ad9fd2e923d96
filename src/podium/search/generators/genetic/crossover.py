"""Crosses two programs into one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from podium.search.generators.genetic.choice import chance, pick
from podium.search.generators.genetic.holding import refusals
from podium.search.generators.genetic.positions import (
    Draft,
    put,
    result_sites,
    sites,
    visible_names,
)
from podium.search.generators.genetic.sampling import draw_class, small_weight
from podium.search.program.expression import Expression, apply, call, has_field, name, renamed
from podium.search.program.ingredients import CONSTANTS
from podium.search.program.program import (
    Block,
    Constant,
    Function,
    Guard,
    Program,
    Statement,
    Term,
    fresh,
    names_given,
    terms,
    with_result,
)
from podium.search.program.units import (
    BOOLEAN,
    GPU_FIELDS,
    SLOT_FIELDS,
    Unit,
    is_number,
    unit_of,
    unit_of_name,
    units_of,
)

Crossover = Callable[[np.random.Generator, Program, Program], Program | None]


def exchange_part(rng: np.random.Generator, one: Program, other: Program) -> Program | None:
    """Replaces a part of one program by a part of the other with the same unit."""
    places, donors = sites(one), sites(other)
    if not places or not donors:
        return None
    place = pick(rng, places)
    units, donor_units = units_of(one), units_of(other)
    wanted = _dimension(unit_of(place.part, units))
    found = [
        donor.part
        for donor in donors
        if _dimension(unit_of(donor.part, donor_units)) == wanted
        and (place.in_loop or not has_field(donor.part, SLOT_FIELDS))
    ]
    if not found:
        return None
    # Larger parts carry more of what made the other good.
    part = max((pick(rng, found) for _ in range(2)), key=lambda each: len(each.arguments))
    whole = put(one, place, name("@"))
    return _filled(whole, other, part)


def add_term(rng: np.random.Generator, one: Program, other: Program) -> Program | None:
    """Adds a ratio of the other program to the score of one."""
    units = units_of(other)
    candidates = [site.part for site in sites(other) if not site.in_loop and site.part.arguments]
    found = [part for part in candidates if is_number(unit_of(part, units))]
    places = result_sites(one)
    if not found or not places:
        return None
    place = pick(rng, places)
    whole = put(one, place, apply("+" if chance(rng, 0.7) else "-", place.part, name("@")))
    return _filled(whole, other, pick(rng, found))


def split_by_class(rng: np.random.Generator, one: Program, other: Program) -> Program | None:
    """Scores one class of pods as the other program does."""
    if any(isinstance(statement, Guard) for statement in other.block.statements):
        return None
    guard = Guard(draw_class(rng), Block((), name("@")))
    block = replace(one.block, statements=(*one.block.statements, guard))
    return _filled(replace(one, block=block), other, other.block.result)


def average(rng: np.random.Generator, one: Program, other: Program) -> Program | None:
    """Adds the scores of both; that of the other with a weight, down to what only breaks ties."""
    if {one.block.result.head, other.block.result.head} & {"hold", "number"}:
        return None
    draft = Draft.at(one, visible_names(one)[-1], units_of(one))
    share = draft.constant("SHARE", small_weight(rng, 1.0), 0.001, 10.0)
    part = apply("*", share, name("@"))
    whole = draft.taken_up(with_result(one, apply("+", one.block.result, part)))
    return _filled(whole, other, other.block.result)


def exchange_function(rng: np.random.Generator, one: Program, other: Program) -> Program | None:
    """Replaces a function of one program by one of the other with parameters of the same units."""
    pairs = [
        (index, theirs)
        for index, own in enumerate(one.functions)
        for theirs in other.functions
        if _signature(own) == _signature(theirs)
    ]
    if not pairs:
        return None
    index, theirs = pick(rng, pairs)
    _, functions, constants, _ = _imports(one, other, call(theirs.name))
    if not functions:  # it is there already
        return None
    own = one.functions[index]
    new = replace(functions[-1], name=own.name)
    kept = (new if each is own else each for each in one.functions)
    return replace(
        one,
        functions=(*functions[:-1], *kept),
        constants=(*one.constants, *constants),
    )


def _signature(function: Function) -> tuple[tuple[int, ...], ...]:
    return tuple(unit_of_name(each)[:3] for each in function.parameters)


def take_hold(rng: np.random.Generator, one: Program, other: Program) -> Program | None:
    """Adds a refusal of the other program to one."""
    found = [guard for guard in refusals(other) if not guard.block.statements]
    if not found:
        return None
    guard = pick(rng, found)
    block = replace(one.block, statements=(Guard(name("@"), guard.block), *one.block.statements))
    return _filled(replace(one, block=block), other, guard.condition)


CROSSOVERS: dict[Crossover, float] = {
    exchange_part: 4.0, add_term: 3.0, split_by_class: 1.0, average: 2.0, exchange_function: 1.0,
}  # fmt: skip

HOLDING_CROSSOVERS: dict[Crossover, float] = {**CROSSOVERS, take_hold: 4.0}
"""For programs that may hold pods."""


def _dimension(unit: Unit) -> tuple[tuple[int, ...], bool]:
    return unit[:3], unit == BOOLEAN


def _filled(whole: Program, other: Program, part: Expression) -> Program:
    """Inserts a part of the other program at `@`, with everything it refers to."""
    added, functions, constants, names = _imports(whole, other, part)
    part = renamed(part, names)
    block = _with_part(whole.block, part)
    needs_gpu = has_field(part, GPU_FIELDS) or any(
        has_field(term.expression, GPU_FIELDS) for term in added
    )
    return replace(
        whole,
        block=replace(block, statements=(*added, *block.statements)),
        constants=(*whole.constants, *constants),
        functions=(*whole.functions, *functions),
        takes_gpu=whole.takes_gpu or needs_gpu,
    )


def _imports(
    whole: Program, other: Program, part: Expression
) -> tuple[list[Term], list[Function], list[Constant], dict[str, str]]:
    wanted = _closure(other, part.names | part.calls)
    taken = names_given(whole)
    names: dict[str, str] = {}
    constants: list[Constant] = []
    # What ingredients are made of is the same for all of a program.
    shared = CONSTANTS.keys() & {constant.name for constant in whole.constants}
    for constant in other.constants:
        if constant.name not in wanted or constant in whole.constants:
            continue
        if constant.name not in shared:
            names[constant.name] = fresh(constant.name, taken)
            taken.add(names[constant.name])
            constants.append(replace(constant, name=names[constant.name]))
    functions = _functions(whole, other, wanted, names)
    taken |= {each.name for each in functions}
    added: list[Term] = []
    for term in terms(other.block):
        if term.name in wanted:
            names[term.name] = fresh(term.name, taken)
            taken.add(names[term.name])
            added.append(Term(names[term.name], renamed(term.expression, names)))
    return added, functions, constants, names


def _functions(
    whole: Program, other: Program, wanted: set[str], names: dict[str, str]
) -> list[Function]:
    """Takes functions over, unless they are there already; adds their new names."""
    taken = names_given(whole) | set(names.values())
    found: list[Function] = []
    for function in other.functions:
        own = replace(function, expression=renamed(function.expression, names))
        if function.name in wanted and own not in whole.functions:
            names[own.name] = fresh(own.name, taken)
            taken.add(names[own.name])
            found.append(replace(own, name=names[own.name]))
    return found


def _closure(program: Program, wanted: frozenset[str]) -> set[str]:
    needs = {each.name: each.expression.names | each.expression.calls for each in
             terms(program.block)}  # fmt: skip
    needs |= {each.name: each.names | each.expression.calls for each in program.functions}
    waiting, found = list(wanted), set(wanted)
    while waiting:
        inner = needs.get(waiting.pop(), frozenset()) - found
        found |= inner
        waiting += inner
    return found


def _with_part(block: Block, part: Expression) -> Block:
    def fill(expression: Expression) -> Expression:
        if expression == name("@"):
            return part
        if not expression.arguments:
            return expression
        arguments = tuple(fill(each) for each in expression.arguments)
        return Expression(expression.head, arguments, expression.value)

    statements: list[Statement] = [
        Term(statement.name, fill(statement.expression))
        if isinstance(statement, Term)
        else Guard(fill(statement.condition), _with_part(statement.block, part))
        for statement in block.statements
    ]
    return Block(tuple(statements), fill(block.result))
