"""Shares machine code between candidates that differ in the values of their constants alone.

Compiling takes longer than six runs on a thousand nodes. So constants are read from the policy's
table, and the variants of a tuning, which are one program, are compiled once in a worker.
"""

from __future__ import annotations

import ast
from collections import Counter, OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from podium.errors import PodiumError
from podium.policies import PairPolicy
from podium.policies.policy import FixedTable
from podium.policies.source import Source
from podium.search.candidate.constants import declared_call, number_of

KEPT = 64
"""Programs whose machine code a worker keeps at hand."""

_SCORE, _TABLE, _NAME = "score", "table", "candidate"


@dataclass(frozen=True, slots=True)
class Parted:
    """A candidate as a program that reads its constants from a table, and their values."""

    program: str
    values: tuple[float, ...]

    @classmethod
    def of(cls, text: str) -> Parted:
        """Takes the constants out of a text; without any, the text is the program.

        So it is where another thing has the name of a constant, or of the table.
        """
        tree = ast.parse(text)
        named = Counter(_named(tree))
        values = _taken(tree)
        if not values or any(named[each] > 1 for each in values) or named[_TABLE]:
            return cls(text, ())
        _read_from_table(tree, {name: index for index, name in enumerate(values)})
        return cls(ast.unparse(ast.fix_missing_locations(tree)), tuple(values.values()))

    def with_values(self, policy: PairPolicy) -> PairPolicy:
        """Gives a policy of the program these constants; its machine code stays the same."""
        return replace(policy, prepare=FixedTable(self.values)) if self.values else policy


@dataclass(frozen=True, slots=True)
class Library:
    """Keeps the programs that were compiled last."""

    most: int = KEPT
    _policies: OrderedDict[str, PairPolicy] = field(default_factory=OrderedDict)

    def known(self, parted: Parted) -> PairPolicy | None:
        """Finds a candidate whose program was compiled before."""
        policy = self._policies.get(parted.program)
        if policy is None:
            return None
        self._policies.move_to_end(parted.program)
        return parted.with_values(policy)

    def of(self, parted: Parted, policy: PairPolicy) -> PairPolicy:
        """Finds a candidate, or enters it: as one that shares its machine code, if it can be."""
        found = self.known(parted)
        if found is not None:
            return found
        common = _policy(parted.program) if parted.values and not policy.takes_table else policy
        if common is None:
            return policy
        self._policies[parted.program] = common
        while len(self._policies) > self.most:
            self._policies.popitem(last=False)
        return parted.with_values(common)


LIBRARY = Library()
"""The programs of this process."""


def _policy(program: str) -> PairPolicy | None:
    """Builds the policy of a program whose constants are in its table; None if it has no form."""
    tree = ast.parse(program)
    source = Source(_NAME, program, tree, compile(tree, _NAME, "exec", dont_inherit=True))
    try:
        policy = PairPolicy.of(source, _NAME)
    except PodiumError:
        return None
    return None if policy.not_compiled else policy


def _taken(tree: ast.Module) -> dict[str, float]:
    """Takes the declared constants out of a program; returns their values by name."""
    found: dict[str, float] = {}
    kept: list[ast.stmt] = []
    for statement in tree.body:
        declared = declared_call(statement)
        value = number_of(declared[1].args[0]) if declared and declared[1].args else None
        if declared is None or value is None:
            kept.append(statement)
        else:
            found[declared[0]] = value
    tree.body = kept
    return found


def _named(tree: ast.Module) -> Iterator[str]:
    """Lists the names that a text gives to something, as often as it does."""
    for node in ast.walk(tree):
        if isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.FunctionDef | ast.alias):
            yield node.name
        elif isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            yield node.id


def _read_from_table(tree: ast.Module, places: Mapping[str, int]) -> None:
    """Has every function that needs a constant, itself or for another, take the table."""
    functions = {each.name: each for each in tree.body if isinstance(each, ast.FunctionDef)}
    takers: set[str] = set()
    while more := {
        name for name, each in functions.items()
        if name not in takers and _names(each) & {*places, *takers}
    }:  # fmt: skip
        takers |= more
    reader = _Reader(places, takers)
    for name in takers | {_SCORE}:
        functions[name].args.args.append(ast.arg(_TABLE))
        reader.visit(functions[name])


def _names(function: ast.FunctionDef) -> set[str]:
    return {each.id for each in ast.walk(function) if isinstance(each, ast.Name)}


class _Reader(ast.NodeTransformer):
    """Puts a place of the table where a constant stood, and passes the table on."""

    def __init__(self, places: Mapping[str, int], takers: set[str]) -> None:
        self._places, self._takers = places, takers

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """Reads a constant."""
        if node.id not in self._places or not isinstance(node.ctx, ast.Load):
            return node
        place = ast.Constant(self._places[node.id])
        return ast.Subscript(ast.Name(_TABLE, ast.Load()), place, ast.Load())

    def visit_Call(self, node: ast.Call) -> ast.expr:
        """Passes the table on to a function that takes it."""
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id in self._takers:
            node.args.append(ast.Name(_TABLE, ast.Load()))
        return node
