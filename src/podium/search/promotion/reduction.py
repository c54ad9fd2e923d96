"""Reduces a program, cut by cut, to the smallest one that keeps its score."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

from podium.errors import PolicyError
from podium.search.candidate.gates import read_candidate
from podium.search.candidate.text import complexity_of
from podium.search.candidate.verdict import Verdict
from podium.search.program.ingredients import with_known_words
from podium.search.program.program import Program, complexity
from podium.search.program.reader import parse
from podium.search.program.simplify import simplify
from podium.search.program.translation import BEYOND
from podium.search.program.writer import write
from podium.search.promotion.cuts import Key, cuts, roundings

Score = Callable[[str], float]
"""Returns the training fitness of a text; minus infinity for one that is refused."""

Progress = Callable[[int, int], None]
"""Called with how many texts were scored, and how large the program is now."""


@dataclass(frozen=True, slots=True)
class ReductionSettings:
    """What a reduction may cost."""

    tolerance: float = 0.02  # points of fitness that the reduced program may lose in all
    evaluations: int = 3000


@dataclass(frozen=True, slots=True)
class Reduced:
    """A reduced program beside what it was."""

    text: str
    fitness: float
    fitness_before: float
    size: int
    size_before: int
    evaluations: int
    cuts: tuple[str, ...]  # what was cut, in order
    program: Program | None = None  # None: the text is beyond programs, and stays as it was
    uncut: str = ""  # why it stays as it was


class _Spent(Exception):  # noqa: N818 - reads as the sentence it makes
    pass


@dataclass(slots=True)
class _Reduction:
    score: Score
    settings: ReductionSettings
    progress: Progress | None
    text: str
    fitness: float
    floor: float
    program: Program | None = None
    evaluations: int = 1
    cuts: list[str] = field(default_factory=list)
    known: dict[str, float] = field(default_factory=dict)

    def keeps(self, program: Program) -> bool:
        """Replaces the present text by a program if that scores as well."""
        text = write(program)
        fitness = self._fitness(text)
        if not fitness >= self.floor:
            return False
        self.text, self.fitness, self.program = text, fitness, program
        return True

    def _fitness(self, text: str) -> float:
        read = read_candidate(text)
        if isinstance(read, Verdict):
            return -math.inf
        key = read.fingerprint
        if key not in self.known:
            if self.evaluations >= self.settings.evaluations:
                raise _Spent
            self.evaluations += 1
            self.known[key] = self.score(text)
            if self.progress is not None:
                self.progress(self.evaluations, complexity_of(self.text))
        return self.known[key]

    def run(self, program: Program) -> None:
        """Writes the text in its simplest form, cuts it, and shortens its numbers."""
        try:
            if not self.keeps(simplify(program)) and not self.keeps(program):
                raise PolicyError("it scores lower once it is rewritten", where="candidate")
            self._cut()
            self._round()
        except _Spent:
            self.cuts.append(f"stopped after {self.evaluations} evaluations")

    def _cut(self) -> None:
        """Tries every cut, the largest first, and then those that it makes possible."""
        while self._cut_once_each():
            pass

    def _cut_once_each(self) -> bool:
        failed: set[Key] = set()
        is_smaller = False
        while self.program is not None:
            whole = self.program
            for cut in (each for each in cuts(whole) if each.key not in failed):
                smaller = simplify(cut.program)
                if complexity(smaller) < complexity(whole) and self.keeps(smaller):
                    self.cuts.append(cut.words)
                    is_smaller = True
                    break
                failed.add(cut.key)
            else:
                break
        return is_smaller

    def _round(self) -> None:
        """Shortens numbers: all at once, or else one by one."""
        is_shorter = self.program is not None
        while is_shorter and self.program is not None:
            is_shorter = False
            for shorter, words in roundings(self.program):
                if self.keeps(shorter):
                    self.cuts.append(words)
                    is_shorter = True
                    break


def reduce(
    text: str, score: Score, settings: ReductionSettings | None = None,
    progress: Progress | None = None,
) -> Reduced:  # fmt: skip
    """Reduces a candidate's text; the same text and score give the same result.

    A text that does not read as a program (with `while`, or tuples) stays as it is.
    """
    settings = settings or ReductionSettings()
    read = read_candidate(text)
    if isinstance(read, Verdict):
        raise PolicyError(read.reason, hint=f"it fails at the gate {read.gate}")
    fitness = score(text)
    if not math.isfinite(fitness):
        raise PolicyError(
            "the gates refuse it on the training cases", hint="podium search evaluate explains why"
        )
    work = _Reduction(score, settings, progress, text, fitness, fitness - settings.tolerance)
    uncut = ""
    try:
        work.run(with_known_words(parse(text, "candidate")))
    except PolicyError as error:
        # Not what stands there: a candidate would be its own witness.
        kind = error.message.removeprefix(BEYOND).partition(":")[0]
        uncut = f"{error.where}: {kind}"
    return Reduced(
        work.text, work.fitness, fitness, complexity_of(work.text), complexity_of(text),
        work.evaluations, tuple(work.cuts), work.program, uncut,
    )  # fmt: skip
