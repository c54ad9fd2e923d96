"""Reduces a program, cut by cut, to the smallest text that keeps its score."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable
from dataclasses import dataclass, field

from podium.errors import PolicyError
from podium.search.candidate.gates import read_candidate
from podium.search.candidate.verdict import Verdict
from podium.search.program.reader import parse
from podium.search.program.simplify import simplify
from podium.search.program.writer import write
from podium.search.promotion.edits import Key, edits, without
from podium.search.promotion.rounding import roundings
from podium.search.promotion.tidying import size, tidied

Score = Callable[[str], float]
"""Gives the training fitness of a text; minus infinity for one that is refused."""

Progress = Callable[[int, int], None]
"""Hears how many texts were scored, and how large the program is now."""


@dataclass(frozen=True, slots=True)
class Thrift:
    """Says what a reduction may cost."""

    tolerance: float = 0.02  # points of fitness that the reduced program may lose in all
    evaluations: int = 3000


@dataclass(frozen=True, slots=True)
class Reduced:
    """Holds a reduced program beside what it was."""

    text: str
    fitness: float
    fitness_before: float
    size: int
    size_before: int
    evaluations: int
    cuts: tuple[str, ...]  # what was cut, in order


class _Spent(Exception):  # noqa: N818 - reads as the sentence it makes
    pass


@dataclass(slots=True)
class _Reduction:
    score: Score
    thrift: Thrift
    progress: Progress | None
    text: str
    fitness: float
    floor: float
    evaluations: int = 1
    cuts: list[str] = field(default_factory=list)
    known: dict[str, float] = field(default_factory=dict)

    def keeps(self, text: str) -> bool:
        """Takes a text in the place of the present one if it scores as well."""
        fitness = self._fitness(text)
        if not fitness >= self.floor:
            return False
        self.text, self.fitness = text, fitness
        return True

    def _fitness(self, text: str) -> float:
        read = read_candidate(text)
        if isinstance(read, Verdict):
            return -math.inf
        key = read.fingerprint
        if key not in self.known:
            if self.evaluations >= self.thrift.evaluations:
                raise _Spent
            self.evaluations += 1
            self.known[key] = self.score(text)
            if self.progress is not None:
                self.progress(self.evaluations, size(ast.parse(self.text)))
        return self.known[key]

    def normalise(self) -> None:
        """Takes the simplest writing of the same program, where there is one."""
        for text in (_tidied(self.text), _simplified(self.text)):
            if text and size(ast.parse(text)) <= size(ast.parse(self.text)):
                self.keeps(text)

    def cut(self) -> bool:
        """Tries every cut, the largest first, and those that come up by the way."""
        failed: set[Key] = set()
        is_smaller = False
        while True:
            tree = ast.parse(self.text)
            for edit in (each for each in edits(tree) if each.key not in failed):
                text = without(tree, edit.place, edit.replacement)
                if size(ast.parse(text)) < size(tree) and self.keeps(text):
                    self.cuts.append(edit.told)
                    is_smaller = True
                    break
                failed.add(edit.key)
            else:
                return is_smaller

    def round(self) -> None:
        """Shortens numbers: all at once, or else one by one."""
        is_shorter = True
        while is_shorter:
            is_shorter = False
            for text, told in roundings(self.text):
                if self.keeps(text):
                    self.cuts.append(told)
                    is_shorter = True
                    break


def reduce(
    text: str, score: Score, thrift: Thrift | None = None, progress: Progress | None = None
) -> Reduced:
    """Reduces a candidate's text; the same text and score give the same result."""
    thrift = thrift or Thrift()
    read = read_candidate(text)
    if isinstance(read, Verdict):
        raise PolicyError(read.reason, hint=f"it fails at the gate {read.gate}")
    fitness = score(text)
    if not math.isfinite(fitness):
        raise PolicyError(
            "the gates refuse it on the training cases", hint="podium search evaluate says why"
        )
    work = _Reduction(score, thrift, progress, text, fitness, fitness - thrift.tolerance)
    try:
        work.normalise()
        while work.cut():
            work.normalise()
        work.round()
    except _Spent:
        work.cuts.append(f"stopped after {work.evaluations} evaluations")
    return Reduced(
        work.text, work.fitness, fitness, size(ast.parse(work.text)), size(read.tree),
        work.evaluations, tuple(work.cuts),
    )  # fmt: skip


def _tidied(text: str) -> str:
    return ast.unparse(tidied(ast.parse(text))) + "\n"


def _simplified(text: str) -> str:
    try:
        return write(simplify(parse(text)))
    except PolicyError:
        return ""
