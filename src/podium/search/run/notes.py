"""Writes down what a run has learned, in a few lines for whoever writes its next candidates.

No model is asked: the notes are counted out of the run's own candidates and their fitness on the
training cases. Reading the same candidates again, batch by batch, gives the same notes.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from podium.search.candidate.verdict import NOVELTY, RACE
from podium.search.population.member import BRED, REPAIR
from podium.store import CandidateRecord

EVERY = 4
"""Batches after which the notes are rewritten; in between, prompts stay alike."""

MOST_LINES = 3  # of each kind
LEAST_GAIN = 0.01  # points of fitness that are worth a line
LONGEST_LINE = 180

_OF_GATE = {
    NOVELTY: "it computes or decides what an earlier candidate does; change more",
    RACE: "it is clearly worse than the best so far",
}
_PLACE = re.compile(r"\bline \d+(, column \d+)?:? ?")


@dataclass(frozen=True, slots=True)
class Lesson:
    """An idea and by how much it was better or worse than the best of its parents."""

    gain: float
    number: int  # of the candidate
    idea: str
    operators: tuple[str, ...] = ()

    @property
    def line(self) -> str:
        """Writes the lesson as one line."""
        how = f" ({', '.join(self.operators)})" if self.operators else ""
        return f"- {self.gain:+.2f}{how}: {self.idea}"


@dataclass(slots=True)
class RunNotes:
    """Learns from batch after batch, from candidates whose authors read prompts."""

    text: str = ""
    _batches: int = 0
    _fitness: dict[int, float] = field(default_factory=dict)  # of all that was accepted
    _helped: list[Lesson] = field(default_factory=list)
    _worse: list[Lesson] = field(default_factory=list)
    _refusals: Counter[tuple[str, str]] = field(default_factory=Counter)

    def end_batch(self, records: Iterable[CandidateRecord]) -> None:
        """Adds a whole batch, and rewrites the notes every few batches."""
        for record in sorted(records, key=lambda each: each.number):
            if record.prompt:
                self._learn(record)
            if record.accepted and record.fitness is not None:
                self._fitness[record.number] = record.fitness
        self._batches += 1
        if self._batches % EVERY == 0:
            self.text = self._written()

    def _learn(self, record: CandidateRecord) -> None:
        if record.text and not record.accepted:
            self._refusals[record.gate, _reason(record)] += 1
        lesson = self._lesson(record)
        if lesson is not None and lesson.gain > 0:
            self._helped = _kept([*self._helped, lesson], 1)
        elif lesson is not None:
            self._worse = _kept([*self._worse, lesson], -1)

    def _lesson(self, record: CandidateRecord) -> Lesson | None:
        known = [self._fitness[each] for each in record.parents if each in self._fitness]
        is_new = record.kind in (BRED, REPAIR) and record.accepted
        idea = _one_line(record.thought)
        if not is_new or not known or not idea or record.fitness is None:
            return None
        gain = record.fitness - max(known)
        if abs(gain) < LEAST_GAIN:
            return None
        return Lesson(gain, record.number, idea, record.operators)

    def _written(self) -> str:
        common = sorted(self._refusals.items(), key=lambda each: (-each[1], each[0]))[:MOST_LINES]
        parts = {
            "Better than the best parent, by points of fitness:": _lines(self._helped),
            "Tried, and worse than the best parent:": _lines(self._worse),
            "Refused most often:": [
                f"- {count} x {gate}: {reason}" for (gate, reason), count in common
            ],
        }
        return "\n".join(line for title, told in parts.items() if told for line in (title, *told))


def _kept(lessons: Sequence[Lesson], sign: int) -> list[Lesson]:
    """Keeps the most informative lessons; of one idea, only the first."""
    best: dict[str, Lesson] = {}
    for lesson in sorted(lessons, key=lambda each: (-sign * each.gain, each.number)):
        best.setdefault(lesson.idea.lower(), lesson)
    return list(best.values())[:MOST_LINES]


def _lines(lessons: Sequence[Lesson]) -> list[str]:
    return [lesson.line for lesson in lessons]


def _reason(record: CandidateRecord) -> str:
    """Returns the reason for a refusal without its place, so that equal reasons compare equal."""
    if record.gate in _OF_GATE:
        return _OF_GATE[record.gate]
    first = record.reason.split(": for Pod(", 1)[0]
    return _one_line(_PLACE.sub("", first)) or "no reason given"


def _one_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= LONGEST_LINE else line[: LONGEST_LINE - 3] + "..."
