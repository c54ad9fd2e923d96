"""Makes a program smaller without changing what it computes."""

from __future__ import annotations

from collections.abc import Callable, Set
from dataclasses import replace

from podium.search.genetic.bounds import Known
from podium.search.genetic.expression import Expression, mapped, name
from podium.search.genetic.ingredients import genuine
from podium.search.genetic.program import (
    Block,
    Guard,
    Program,
    Statement,
    Term,
    names_used,
    terms,
)
from podium.search.genetic.rules import FALSE, TRUE, reduced

ROUNDS = 8


def simplify(program: Program) -> Program:
    """Folds, prunes and merges until nothing changes."""
    for _ in range(ROUNDS):
        smaller = _without_unused(_simplified(program))
        if smaller == program:
            return program
        program = smaller
    return program


def _simplified(program: Program) -> Program:
    step = _Pass(Known.of(program), genuine(terms(program.block)).keys())
    return replace(program, block=step.block(program.block, {}, {}))


class _Pass:
    def __init__(self, known: Known, fixed: Set[str]) -> None:
        self.known = known
        self.fixed = fixed  # ingredients, which cannot be simpler

    def block(
        self, block: Block, aliases: dict[str, Expression], seen: dict[Expression, str]
    ) -> Block:
        statements: list[Statement] = []
        for statement in block.statements:
            if isinstance(statement, Term):
                self._term(statement, aliases, seen, statements)
                continue
            condition = self._shorter(statement.condition, aliases, seen)
            inner = self.block(statement.block, dict(aliases), dict(seen))
            if condition == TRUE:
                return Block((*statements, *inner.statements), inner.result)
            if condition != FALSE:
                statements.append(Guard(condition, inner))
        result = self._shorter(block.result, aliases, seen)
        return Block(tuple(_without_repeats(statements, result)), result)

    def _term(
        self, term: Term, aliases: dict[str, Expression], seen: dict[Expression, str],
        statements: list[Statement],
    ) -> None:  # fmt: skip
        expression = term.expression
        if term.name not in self.fixed or not expression.names.isdisjoint(aliases):
            expression = self._shorter(expression, aliases, seen)
        elif expression in seen:
            expression = name(seen[expression])
        if expression.is_leaf:
            aliases[term.name] = expression
            return
        self.known.define(term.name, expression)
        seen[expression] = term.name
        statements.append(Term(term.name, expression))

    def _shorter(
        self, expression: Expression, aliases: dict[str, Expression], seen: dict[Expression, str]
    ) -> Expression:
        change = self._change(aliases, seen)
        return mapped(expression, change)

    def _change(
        self, aliases: dict[str, Expression], seen: dict[Expression, str]
    ) -> Callable[[Expression], Expression]:
        def change(part: Expression) -> Expression:
            if part.head == "name":
                return aliases.get(part.value, part)
            if not part.arguments:
                return part
            smaller = reduced(part, self.known)
            title = seen.get(smaller) if smaller.arguments else None
            return name(title) if title else smaller

        return change


def _without_repeats(statements: list[Statement], result: Expression) -> list[Statement]:
    """Drops last guards that return what is returned anyway."""
    while statements:
        last = statements[-1]
        if isinstance(last, Term) or last.block != Block((), result):
            break
        statements.pop()
    return statements


def _without_unused(program: Program) -> Program:
    used = names_used(program)
    kept = tuple(constant for constant in program.constants if constant.name in used)
    return replace(program, constants=kept, block=_pruned(program.block, used))


def _pruned(block: Block, used: set[str]) -> Block:
    statements: list[Statement] = []
    for statement in block.statements:
        if isinstance(statement, Guard):
            statements.append(Guard(statement.condition, _pruned(statement.block, used)))
        elif statement.name in used:
            statements.append(statement)
    return Block(tuple(statements), block.result)
