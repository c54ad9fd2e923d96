"""A policy as a program: constants, named terms, guards, and the score to return."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from podium.search.program.expression import Expression

SUMMARY = "Scores a pod on a node."
"""What the docstring of a policy says that does not say anything."""


@dataclass(frozen=True, slots=True)
class Constant:
    """Names a number at the top of the file; one with bounds is tunable."""

    name: str
    value: float
    bounds: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class Term:
    """Names the value of an expression."""

    name: str
    expression: Expression


@dataclass(frozen=True, slots=True)
class Guard:
    """Returns early, by its own block, where a condition holds."""

    condition: Expression
    block: Block


Statement = Term | Guard


@dataclass(frozen=True, slots=True)
class Function:
    """Computes a number from numbers, and from constants of the file."""

    name: str
    parameters: tuple[str, ...]
    expression: Expression
    summary: str = ""

    @property
    def names(self) -> frozenset[str]:
        """Lists the constants that it refers to."""
        return self.expression.names - set(self.parameters)


@dataclass(frozen=True, slots=True)
class Block:
    """Runs statements in order and returns the result."""

    statements: tuple[Statement, ...]
    result: Expression


@dataclass(frozen=True, slots=True)
class Program:
    """A whole policy file; every name in it is defined once."""

    block: Block
    constants: tuple[Constant, ...] = ()
    takes_gpu: bool = False  # score(pod, node, gpu): a share pod is scored on each GPU
    settings: tuple[tuple[str, str], ...] = ()  # TIES, GPU_CHOICE
    summary: str = SUMMARY
    functions: tuple[Function, ...] = ()  # each calls only those before it
    # Whether breeding may give it quantities that people thought of; says nothing about the text.
    draws_ingredients: bool = field(default=True, compare=False)


def program_of(result: Expression, *terms: Term, constants: tuple[Constant, ...] = ()) -> Program:
    """Builds a program without guards."""
    return Program(Block(terms, result), constants)


def roots(block: Block) -> Iterator[Expression]:
    """Lists the whole expressions of a block, in the order in which they are written."""
    for statement in block.statements:
        if isinstance(statement, Term):
            yield statement.expression
        else:
            yield statement.condition
            yield from roots(statement.block)
    yield block.result


def with_roots(block: Block, expressions: Iterator[Expression]) -> Block:
    """Returns the block with other expressions in the places that `roots` lists."""
    statements: list[Statement] = []
    for statement in block.statements:
        if isinstance(statement, Term):
            statements.append(Term(statement.name, next(expressions)))
        else:
            condition = next(expressions)
            statements.append(Guard(condition, with_roots(statement.block, expressions)))
    return Block(tuple(statements), next(expressions))


def with_root(program: Program, index: int, expression: Expression) -> Program:
    """Returns the block with another expression in one place."""
    expressions = list(roots(program.block))
    expressions[index] = expression
    return replace(program, block=with_roots(program.block, iter(expressions)))


def with_result(program: Program, result: Expression) -> Program:
    """Returns the program with another score at its end."""
    return replace(program, block=replace(program.block, result=result))


def terms(block: Block) -> Iterator[Term]:
    """Lists the terms of a block and of its guards."""
    for statement in block.statements:
        if isinstance(statement, Term):
            yield statement
        else:
            yield from terms(statement.block)


def guards(block: Block) -> Iterator[Guard]:
    """Lists the guards of a block, inner ones too."""
    for statement in block.statements:
        if isinstance(statement, Guard):
            yield statement
            yield from guards(statement.block)


def names_used(program: Program) -> set[str]:
    """Lists the names of constants and terms that expressions refer to."""
    own = set().union(*(expression.names for expression in roots(program.block)))
    return own.union(*(function.names for function in program.functions))


def calls_used(program: Program) -> set[str]:
    """Lists the functions that are called, by the score or by functions that it calls."""
    found = set().union(*(expression.calls for expression in roots(program.block)))
    for function in reversed(program.functions):
        if function.name in found:
            found |= function.expression.calls
    return found


def names_given(program: Program) -> set[str]:
    """Lists the names of constants, functions and terms."""
    own = {each.name for each in program.constants} | {each.name for each in program.functions}
    return own | {term.name for term in terms(program.block)}


def complexity(program: Program) -> int:
    """Counts the nodes of all expressions, and one for every guard, function and parameter."""
    expressions = sum(expression.size for expression in roots(program.block))
    helpers = sum(1 + len(f.parameters) + f.expression.size for f in program.functions)
    return expressions + helpers + sum(1 for _ in guards(program.block))


def fresh(base: str, taken: set[str]) -> str:
    """Finds a name that is not taken.

    >>> fresh("gap", {"gap", "gap_2"}), fresh("gap_2", {"gap_2"})
    ('gap_3', 'gap')
    """
    if base not in taken:
        return base
    stem, _, number = base.rpartition("_")
    base = stem if stem and number.isdigit() else base
    found, count = base, 1
    while found in taken:
        count += 1
        found = f"{base}_{count}"
    return found
