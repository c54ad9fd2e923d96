"""Tells what each part of a program does, and what is lost without it."""

from __future__ import annotations

import ast
import math
import pickle
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from podium.search.candidate.constants import number_of
from podium.search.candidate.gates import read_candidate
from podium.search.candidate.verdict import Verdict
from podium.search.promotion.edits import without
from podium.search.promotion.places import Place, part_at, places
from podium.search.promotion.tidying import Inliner, tidied
from podium.search.promotion.wording import notes_of, worded

Kind = Literal["term", "guard", "quantity"]


@dataclass(frozen=True, slots=True)
class Part:
    """Describes one part of a program, and the training fitness without it."""

    kind: Kind
    code: str
    sentence: str
    fitness_without: float | None  # None: without it there is no valid program
    loss: float | None

    def as_object(self) -> dict[str, Any]:
        """Describes the part as JSON types; what is unknown is left out."""
        found = {"kind": self.kind, "code": self.code, "sentence": self.sentence}
        if self.fitness_without is None or self.loss is None:
            return {**found}
        numbers = {"fitness_without": self.fitness_without, "loss": self.loss}
        return {**found, **{name: round(value, 4) for name, value in numbers.items()}}


@dataclass(frozen=True, slots=True)
class _Cut:
    kind: Kind
    code: str
    sentence: str
    texts: tuple[str, ...]  # ways to leave it out; the first that is a program counts


def ablate(
    text: str, score: Callable[[str], float], fitness: float | None = None
) -> tuple[Part, ...]:
    """Leaves out the terms, guards and named quantities of a program, one at a time."""
    whole = score(text) if fitness is None else fitness
    return tuple(_part(cut, score, whole) for cut in _cuts(text))


def _part(cut: _Cut, score: Callable[[str], float], whole: float) -> Part:
    for text in cut.texts:
        if isinstance(read_candidate(text), Verdict):
            continue
        found = score(text)
        if math.isfinite(found):
            return Part(cut.kind, cut.code, cut.sentence, found, whole - found)
    return Part(cut.kind, cut.code, cut.sentence, None, None)


def _cuts(text: str) -> Iterator[_Cut]:
    tree = ast.parse(text)
    named = _named(tree)
    yield from _quantities(tree, named, notes_of(text))
    for place, node in places(tree):
        if isinstance(node, ast.If):
            yield _guard(tree, place, node)
        elif isinstance(node, ast.Return) and node.value is not None and _is_score(tree, place):
            for where, addend, sign in addends((*place, ("value", None)), node.value):
                if number_of(addend) is not None or getattr(addend, "id", "") == "HOLD":
                    continue
                change = "Raises" if sign > 0 else "Lowers"
                meant = named.get(addend.id, addend) if isinstance(addend, ast.Name) else addend
                sentence = f"{change} the score with {worded(meant)}."
                code = ("" if sign > 0 else "-") + ast.unparse(addend)
                yield _Cut("term", code, sentence, (without(tree, where, ast.Constant(0)),))


def addends(place: Place, node: ast.expr, sign: int = 1) -> Iterator[tuple[Place, ast.expr, int]]:
    """Lists the terms of a sum with their signs."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
        yield from addends((*place, ("left", None)), node.left, sign)
        after = sign if isinstance(node.op, ast.Add) else -sign
        yield from addends((*place, ("right", None)), node.right, after)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        yield from addends((*place, ("operand", None)), node.operand, -sign)
    else:
        yield place, node, sign


def _guard(tree: ast.Module, place: Place, node: ast.If) -> _Cut:
    last = node.body[-1]
    around = [part_at(tree, place[:end]) for end in range(len(place))]
    rest = list(node.orelse)
    if any(isinstance(each, ast.For | ast.While) for each in around):
        rest = list(node.body)
        sentence = f"Looks, within its loop, only where {worded(node.test)}."
    elif isinstance(last, ast.Return) and last.value is not None and len(node.body) == 1:
        sentence = f"Returns {worded(last.value)} where {worded(node.test)}."
    else:
        sentence = f"Goes another way where {worded(node.test)}."
    code = f"if {ast.unparse(node.test)}"
    return _Cut("guard", code, sentence, (without(tree, place, rest),))


def _is_score(tree: ast.Module, place: Place) -> bool:
    return bool(part_at(tree, place[:1]).name == "score")


def _named(tree: ast.Module) -> dict[str, ast.expr]:
    (score,) = (n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == "score")
    return {
        statement.targets[0].id: statement.value
        for statement in score.body
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name)
    }


def _quantities(
    tree: ast.Module, named: dict[str, ast.expr], notes: dict[str, str]
) -> Iterator[_Cut]:
    for name, value in named.items():
        is_start = number_of(value) is not None
        told = "Is worked out in steps." if is_start else f"Stands for {worded(value)}."
        note = notes.get(name) or told
        yield _Cut("quantity", name, note, tuple(_with_value(tree, name, n) for n in (0, 1)))


def _with_value(tree: ast.Module, name: str, value: int) -> str:
    copy: ast.Module = pickle.loads(pickle.dumps(tree))
    Inliner({name: ast.Constant(value)}).visit(copy)
    return ast.unparse(tidied(copy)) + "\n"
