"""Keeps all islands of a run: a pure fold over its candidates, batch by batch.

Nothing here is saved: reading the candidates of a run again, in order, gives the same archive.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from podium.evaluation.cases import Stage
from podium.search.candidate.verdict import STAGES
from podium.search.judging.race import Bar, Rivals
from podium.search.population.island import Island
from podium.search.population.member import SEED, TUNED, Member
from podium.store import CandidateRecord

_STREAM = 3  # of random numbers, for what happens between batches

RECENT, ENOUGH = 48, 8
"""How many candidates of an island a share is counted of: at most, and at least."""


@dataclass(frozen=True, slots=True)
class IslandSettings:
    """How many islands there are, and how they live."""

    islands: int = 4
    capacity: int = 40
    migrate_every: int = 12  # batches
    respawn_after: int = 600  # samples of an island without a better one


@dataclass(slots=True)
class RecentStages:
    """Remembers the fitness of an island's recent candidates at the end of each stage."""

    _recent: dict[int, list[float]] = field(default_factory=dict)

    def take(self, record: CandidateRecord) -> None:
        """Adds a candidate that was run on one stage or more."""
        for stage, fitness in enumerate(record.scores.get(STAGES, ())):
            self._recent[stage] = [*self._recent.get(stage, ()), fitness][-RECENT:]

    def bars(self, stages: Sequence[Stage]) -> tuple[Bar, ...]:
        """Returns what a candidate must reach to be among the share that goes on."""
        found = []
        for index, stage in enumerate(stages[:-1]):
            known = sorted(self._recent.get(index, ()), reverse=True)
            if len(known) >= ENOUGH and stage.keep < 1:
                going_on = max(1, round(stage.keep * len(known)))
                found.append(Bar(stage.stop, known[going_on - 1]))
        return tuple(found)


class Archive:
    """The islands and what was seen on them."""

    def __init__(
        self, settings: IslandSettings, seed: int, families: Sequence[str], first_counted: int = 0
    ) -> None:
        self.settings = settings
        self.islands = [
            Island(
                i, settings.capacity, *_emphasis(i, families, first_counted),
                first_counted=first_counted,
            )
            for i in range(settings.islands)
        ]  # fmt: skip
        self.signatures: dict[str, int] = {}  # of all that was accepted, with the least complexity
        self.tuned: set[int] = set()  # whose constants need no more tuning
        self.seeds: list[Member] = []  # those that were accepted
        self.best: Member | None = None
        self.start: float | None = None  # fitness of the best that the run began with
        self.batches = 0
        self.fitness: dict[int, float] = {}  # of all that were run on every case
        self.stages = [RecentStages() for _ in self.islands]
        self.transfers: list[tuple[int, int, bool]] = []  # from, to, whether it led there
        self._seed = seed

    def end_batch(self, records: Iterable[CandidateRecord]) -> None:
        """Adds a whole batch, in order of number; then islands exchange members and respawn."""
        for record in sorted(records, key=lambda each: each.number):
            self._take(record)
        self.batches += 1
        if self.start is None and self.best is not None:
            self.start = self.best.fitness
        if self.batches % self.settings.migrate_every == 0:
            self._migrate()
        self._respawn()
        for island in self.islands:
            island.cull(self.best)

    def rivals(self, stages: Sequence[Stage]) -> tuple[Rivals, ...]:
        """Returns what candidates race against from now on, island by island."""
        return tuple(
            island.rivals(recent.bars(stages))
            for island, recent in zip(self.islands, self.stages, strict=True)
        )

    def member(self, number: int) -> Member | None:
        """Finds a living member by its number."""
        found = (each for island in self.islands for each in island.members)
        return next((each for each in found if each.number == number), None)

    def _take(self, record: CandidateRecord) -> None:
        home = self.islands[record.island]
        if record.kind == TUNED:  # a variant of its parent is no child of it
            self.tuned |= {record.number, *record.parents}
        else:
            home.stale += 1
            home.count_child(record.parents)
            self.stages[record.island].take(record)
        member = Member.of(record)
        if member is None:
            return
        if member.is_whole:
            self.fitness[member.number] = member.fitness
        least = self.signatures.get(member.signature, member.complexity)
        self.signatures[member.signature] = min(least, member.complexity)
        if member.is_whole and (self.best is None or member.key() > self.best.key()):
            self.best = member
        if record.kind == SEED:
            self.seeds.append(member)
        is_common = record.kind == SEED or (record.kind == TUNED and member == self.best)
        for island in self.islands if is_common else [home]:
            if island.take(member, self.best):
                island.stale = 0

    def _migrate(self) -> None:
        """Sends the best of each island to the next one around the ring."""
        travellers = [island.best for island in self.islands]
        for index, traveller in enumerate(travellers):
            there = self.islands[(index + 1) % len(self.islands)]
            if traveller is not None and there.index != index:
                leads = there.take(traveller, self.best)
                there.stale = 0 if leads else there.stale
                self.transfers.append((index, there.index, leads))

    def _respawn(self) -> None:
        """Restarts islands that have stagnated; the best of all is never lost."""
        for island in self.islands:
            if island.stale < self.settings.respawn_after or len(self.islands) < 2:
                continue
            rng = np.random.default_rng([self._seed, self.batches, island.index, _STREAM])
            others = [each for each in self.islands if each is not island and each.members]
            if not others:
                continue
            founder = others[int(rng.random() * len(others))].best
            founders = {each.number: each for each in (founder, self._last_home(island)) if each}
            island.found_anew(founders.values())

    def _last_home(self, island: Island) -> Member | None:
        best = self.best
        homes = [each for each in self.islands if best in each.members]
        return best if homes == [island] else None


def _emphasis(index: int, families: Sequence[str], first: int) -> tuple[tuple[float, ...], str]:
    """Returns the family of cases that an island emphasises, of those that count.

    The first island has none.
    """
    kinds = list(dict.fromkeys(families))
    if len(kinds) < 2 or index == 0:
        return (), ""
    family = kinds[(index - 1) % len(kinds)]
    return tuple(float(i >= first and each == family) for i, each in enumerate(families)), family
