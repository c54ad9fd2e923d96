"""Tunes constants while a run breeds: each variant is a candidate of its own, judged like others.

A generation of CMA-ES is part of one batch, and the next one is drawn when that batch is in the
archive. So no worker waits for a tuning, and none is lost with a process: reading the variants of
a run again, batch by batch, gives the same strategies.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from podium.errors import PolicyError
from podium.evaluation.measures import Values
from podium.search.candidate.constants import Constant, read_constants, with_constants
from podium.search.population import Archive, Island, Member
from podium.search.population.member import TUNED
from podium.search.program.parameters import with_tunables
from podium.search.program.reader import parse
from podium.search.program.writer import write
from podium.search.run.plan import RunPlan
from podium.search.run.strategy import CmaEs, Floats
from podium.store import CandidateRecord

SIGMA, NEAR, AGAIN = 0.25, 0.12, 0.1
"""The first steps, as a part of the distance between the bounds: of most, of the best so far, which
is in a good place already, and after a restart."""

POINTS, FEWEST = 8, 4
"""Variants of a generation, where a batch has room for them; and in small batches."""

FEWEST_ROUNDS = 2
"""Generations for a text, besides one for each of its constants."""

MOST_CONSTANTS = 24
"""Constants of a text that are tuned: the first ones."""

SEEDS_FIRST = 3
"""So many of the seeds are tuned before anything that was bred from them."""

ALIKE = 0.5
"""Of seeds that differ by less in fitness, the one with most numbers has most to gain by tuning."""

MOST_RESTARTS = 3
DIGITS = 4
WORST = 1e9  # the loss of a variant that was refused before its first case

_IMPORT = "\nfrom podium"  # what comes before it describes a text
_TUNABLE = re.compile(r"\btunable\([^()]*\)")
_STREAM = 5  # of random numbers, for the points of a generation


@dataclass(frozen=True, slots=True)
class Variant:
    """A candidate that differs from another in its constants alone."""

    island: int
    text: str
    parent: int
    rival: tuple[Values, ...]  # the best variant so far, which it races against


@dataclass(slots=True, eq=False)
class Subject:
    """A candidate whose constants are being tuned."""

    parent: int
    island: int
    text: str
    constants: tuple[Constant, ...]
    strategy: CmaEs
    best: float
    rival: tuple[Values, ...]
    most: int  # evaluations
    spent: int = 0
    pending: dict[int, Floats] = field(default_factory=dict)  # points by number

    def values(self, point: Floats) -> dict[str, float]:
        """Turns a point of the unit cube into constants with few digits."""
        pairs = zip(self.constants, point.tolist(), strict=True)
        return {constant.name: value_at(constant, part) for constant, part in pairs}


class Tunings:
    """All tunings of a run, under way and done."""

    def __init__(self, plan: RunPlan) -> None:
        self._plan = plan
        self._subjects: list[Subject] = []
        self._begun: list[int] = []  # candidates that tunings began from, restarts included
        self._shapes: set[str] = set()  # of what was tuned, whatever its numbers
        self.points = 0  # planned so far

    @property
    def is_under_way(self) -> bool:
        """Returns whether a generation is being judged."""
        return any(each.pending for each in self._subjects)

    def is_opening(self, archive: Archive) -> bool:
        """Returns whether a seed is still to be tuned, or being tuned, before all else."""
        tuning = self._plan.tuning
        if not (tuning.first and tuning.every and self._plan.generators):
            return False
        if self._begun:
            return len(self._begun) == 1 and bool(self._subjects)
        return any(tunables(self._text(each)) for each in self._first(archive))

    def end_batch(self, records: Iterable[CandidateRecord]) -> None:
        """Tells every strategy what became of its generation."""
        rows = {each.number: each for each in records if each.kind == TUNED}
        for subject in self._subjects:
            if not subject.pending or not all(number in rows for number in subject.pending):
                continue
            told = [rows[number] for number in subject.pending]
            subject.strategy.tell(list(subject.pending.values()), [loss_of(e) for e in told])
            subject.pending = {}
            for row in told:
                if row.fitness is not None and row.fitness > subject.best:
                    subject.best, subject.rival = row.fitness, tuple(row.cases)
        self._subjects = [each for each in self._subjects if not _is_done(each)]

    def generation(self, archive: Archive, numbers: Sequence[int]) -> dict[int, Variant]:
        """Draws the next generation of a tuning for the given numbers; nothing if none is left."""
        ready = next((each for each in self._subjects if not each.pending), None)
        is_alone = bool(self._begun) and self.is_opening(archive)
        subject = ready if ready or is_alone else self._begin(archive, len(numbers))
        if subject is None:
            return {}
        subject.pending = dict(zip(numbers, subject.strategy.ask(), strict=True))
        subject.spent += len(numbers)
        self.points += len(numbers)
        return {
            number: Variant(
                subject.island, with_constants(subject.text, subject.values(point)),
                subject.parent, subject.rival,
            )
            for number, point in subject.pending.items()
        }  # fmt: skip

    def _begin(self, archive: Archive, points: int) -> Subject | None:
        found = self._next(archive) if archive.batches >= self._plan.tuning.after else None
        if found is None:
            return None
        island, member, text = found
        times = self._begun.count(member.number)
        is_deep = self._is_deep and member is archive.best
        is_first = self.is_opening(archive)
        self._begun.append(member.number)
        self._shapes.add(shape_of(self._text(member)))
        constants = tunables(text)
        start = [part_of(each) for each in constants]
        seed = (self._plan.seed, member.number, times, _STREAM)
        sigma = AGAIN if times else NEAR if is_deep else SIGMA
        strategy = CmaEs(start, sigma, points, seed)
        tuning = self._plan.tuning
        most = tuning.first if is_first else tuning.deep if is_deep else tuning.evaluations
        if self._plan.generators and not (is_deep or is_first):  # who only tunes has all the time
            most = max(points, cost_of(text, most))
        subject = Subject(
            member.number, island.index, text, constants, strategy, member.fitness, member.cases,
            most,
        )  # fmt: skip
        self._subjects.append(subject)
        return subject

    def _next(self, archive: Archive) -> tuple[Island, Member, str] | None:
        """Finds what to tune next: some seeds, then the best of each island in turn, then again."""
        islands = archive.islands
        turn = islands[len(self._begun) % len(islands)]
        for member in self._first(archive):
            if member.number not in self._begun and tunables(text := self._text(member)):
                return islands[0], member, text
        if self._is_deep and (found := self._best(archive)):
            return found
        for island in (turn, *islands):
            for member in sorted(island.members, key=island.key, reverse=True):
                if not self._is_known(archive, member) and tunables(member.text):
                    return island, member, member.text
        return self._best(archive)

    def _first(self, archive: Archive) -> list[Member]:
        """Lists what is tuned before anything else: some seeds, or the best once it is time."""
        after = self._plan.tuning.after
        if after:
            is_time = archive.batches >= after and not self._begun
            return [archive.best] if is_time and archive.best else []
        ranked = sorted(archive.seeds, key=lambda each: each.key(), reverse=True)
        if not (self._plan.tuning.first and self._plan.generators and ranked):
            return ranked[:SEEDS_FIRST]
        near = [each for each in ranked if each.fitness >= ranked[0].fitness - ALIKE]
        return [max(near, key=lambda each: len(tunables(self._text(each))))]

    @property
    def _is_deep(self) -> bool:
        """Returns whether it is the turn of the best: every other time, where that is planned."""
        return self._plan.tuning.deep > 0 and len(self._begun) % 2 == 1

    def _best(self, archive: Archive) -> tuple[Island, Member, str] | None:
        best = archive.best
        is_often = best is not None and self._begun.count(best.number) > MOST_RESTARTS
        if best is None or (is_often and self._plan.generators):  # who only tunes goes on
            return None
        is_variant = best.number in archive.tuned or not self._plan.tuning.deep
        text = best.text if is_variant else self._text(best)
        return (archive.islands[0], best, text) if tunables(text) else None

    def _text(self, member: Member) -> str:
        """Returns a text to tune: every number of it is a constant, or those that it declares."""
        return all_tunable(member.text) if self._plan.tuning.deep else tunable_text(member)

    def _is_known(self, archive: Archive, member: Member) -> bool:
        if member.number in archive.tuned or member.number in self._begun:
            return True
        # Where what is bred differs a lot, each shape has its turn, not each set of numbers.
        return self._plan.tuning.after > 0 and shape_of(self._text(member)) in self._shapes


def tunable_text(member: Member) -> str:
    """Returns a text with constants to tune; numbers of a seed that declares none become some."""
    if tunables(member.text):
        return member.text
    try:
        text = write(with_tunables(parse(member.text)))
    except PolicyError:
        return ""
    return text if tunables(text) else ""


def all_tunable(text: str) -> str:
    """Returns a text whose numbers and weights are constants; as it is where it cannot be read."""
    try:
        return write(with_tunables(parse(text)))
    except PolicyError:
        return text


def tunables(text: str) -> tuple[Constant, ...]:
    """Lists the constants of a text that can be tuned."""
    found = tuple(each for each in read_constants(text) if each.high > each.low)
    return found[:MOST_CONSTANTS]


def shape_of(text: str) -> str:
    """Returns the score of a text without the numbers of its constants."""
    return _TUNABLE.sub("tunable()", text[text.find(_IMPORT) + 1 :])


def cost_of(text: str, evaluations: int) -> int:
    """Counts the evaluations that tuning a text within a number of them takes at most.

    More constants need more: a text with few is done before others.
    """
    count = len(tunables(text))
    if not count:
        return 0
    return min(evaluations, 1 + POINTS * (FEWEST_ROUNDS + count))


def value_at(constant: Constant, part: float) -> float:
    """Returns the value at a part of the way between the bounds, rounded to few digits."""
    part = min(1.0, max(0.0, float(part)))
    if _is_log(constant):
        value = constant.low * (constant.high / constant.low) ** part
    else:
        value = constant.low + part * (constant.high - constant.low)
    rounded = float(f"{value:.{DIGITS}g}")
    return min(constant.high, max(constant.low, rounded))


def part_of(constant: Constant) -> float:
    """Returns where between its bounds a constant stands, from 0 to 1."""
    if _is_log(constant):
        return math.log(constant.value / constant.low) / math.log(constant.high / constant.low)
    return (constant.value - constant.low) / (constant.high - constant.low)


def _is_log(constant: Constant) -> bool:
    return constant.low > 0


def loss_of(record: CandidateRecord) -> float:
    """Orders variants for CMA-ES, which only looks at ranks: those that came further first."""
    scores: Sequence[float] = record.scores.get("by_case", ())
    if not scores:
        return WORST
    mean = record.fitness if record.fitness is not None else sum(scores) / len(scores)
    return -1e3 * len(scores) - mean


def _is_done(subject: Subject) -> bool:
    if subject.pending:
        return False
    return subject.spent + subject.strategy.points > subject.most or subject.strategy.is_done
