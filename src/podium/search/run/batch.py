"""Plans a batch: its samples, who writes them, and which refused candidates are repaired."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from podium.evaluation.measures import Values
from podium.search.candidate.verdict import ALLOWLIST, COMPILE, CONTRACT, SIGNATURE, SYNTAX, TINY
from podium.search.generators.generator import (
    Exemplar,
    Failure,
    Generator,
    Request,
)
from podium.search.population import Archive, Island, Member
from podium.search.population.member import BRED, REPAIR, SEED, TUNED
from podium.search.population.selection import choose_parents
from podium.search.run.plan import PROMPTED, RANDOM, RunPlan
from podium.search.run.tunings import FEWEST, POINTS, Tunings
from podium.store import CandidateRecord

PARENTS = 3
_CHOICE, _OWN = 0, 1  # streams of a candidate's random numbers


@dataclass(frozen=True, slots=True)
class Sample:
    """How one candidate of a batch comes about."""

    number: int
    island: int
    kind: str
    generator: str = ""
    text: str = ""  # given, not proposed: a seed, or what is to be tuned
    name: str = ""  # of a seed
    parents: tuple[int, ...] = ()
    request: Request | None = None
    rival: tuple[Values, ...] = ()  # whom it races against in place of its island's

    @property
    def is_prompted(self) -> bool:
        """Returns whether it is asked for in words, of somebody who may take long to answer."""
        return self.generator in PROMPTED


def first_batch(plan: RunPlan, starters: Sequence[tuple[str, str]]) -> list[Sample]:
    """Plans how a run begins: with texts that every island gets, or with random programs."""
    if plan.start == RANDOM and not starters:
        drawn = plan.fillers or plan.generators
        return [_bred(plan, None, number, drawn) for number in range(plan.batch)]
    return [
        Sample(number, number % plan.customs.islands, SEED, "", text, name)
        for number, (name, text) in enumerate(starters)
    ]


def next_batch(plan: RunPlan, archive: Archive, batch: int) -> list[Sample]:
    """Plans what generators write at once for a batch, by the archive as it is."""
    drawn = plan.generators if batch > plan.ahead else plan.fillers
    return [each for each in _planned(plan, archive, batch, drawn) if not each.is_prompted]


def asked_ahead(plan: RunPlan, archive: Archive, batch: int) -> list[Sample]:
    """Plans what models are to write for a batch; nothing for those that come too soon for them."""
    if batch <= plan.ahead:
        return []
    return [each for each in _planned(plan, archive, batch, plan.generators) if each.is_prompted]


def _planned(
    plan: RunPlan, archive: Archive, batch: int, drawn: Sequence[tuple[str, float]]
) -> list[Sample]:
    """Plans the bred samples of a batch; islands take turns."""
    islands = archive.islands
    numbers = [batch * plan.block + i for i in range(plan.batch)] if drawn else []
    return [_bred(plan, islands[i % len(islands)], n, drawn) for i, n in enumerate(numbers)]


def tuning_batch(
    plan: RunPlan, archive: Archive, batch: int, tunings: Tunings, most: int
) -> list[Sample]:
    """Plans a generation of variants, or as many as a batch of nothing else has room for."""
    points = POINTS if plan.batch >= POINTS else FEWEST
    # Beside what is bred, or in its place.
    first = batch * plan.block + (plan.batch if plan.generators else 0)
    room = min(most, points if plan.generators else max(points, plan.batch))
    found: list[Sample] = []
    while len(found) + points <= room:
        numbers = range(first + len(found), first + len(found) + points)
        variants = tunings.generation(archive, numbers)
        if not variants:
            break
        found += [
            Sample(number, each.island, TUNED, "", each.text, "", (each.parent,), None, each.rival)
            for number, each in variants.items()
        ]
    return found


def exemplar_of(member: Member) -> Exemplar:
    """Describes a member to generators."""
    return Exemplar(member.number, member.text, member.fitness, member.thought, member.diagnostics)


def losses_of(best: Member | None) -> str:
    """Describes where GPUs are lost under the best so far: the first line of its diagnostics."""
    if best is None or not best.diagnostics:
        return ""
    return f"Under program {best.number}, the best so far: {best.diagnostics.splitlines()[0]}"


def _bred(
    plan: RunPlan, island: Island | None, number: int, drawn: Sequence[tuple[str, float]]
) -> Sample:
    rng = np.random.default_rng([plan.seed, number, _CHOICE])
    generator = _generator(drawn, rng)
    parents = choose_parents(rng, island, PARENTS) if island is not None else []
    request = Request(
        seed=(plan.seed, number, _OWN),
        parents=tuple(exemplar_of(each) for each in parents),
        is_stagnant=island is not None and island.stale > plan.customs.respawn_after // 2,
    )
    index = island.index if island is not None else number % plan.customs.islands
    numbers = tuple(each.number for each in parents)
    return Sample(number, index, BRED, generator, parents=numbers, request=request)


def _generator(drawn: Sequence[tuple[str, float]], rng: np.random.Generator) -> str:
    left = rng.random() * sum(weight for _, weight in drawn)
    for name, weight in drawn:
        left -= weight
        if left < 0:
            return name
    return drawn[-1][0]


REPAIRABLE = (SYNTAX, ALLOWLIST, SIGNATURE, TINY, CONTRACT, COMPILE)
"""Gates whose refusal says what is wrong with the text."""


def repair_of(
    plan: RunPlan, generator: Generator | None, sample: Sample, row: CandidateRecord
) -> Sample | None:
    """Plans one attempt at repair of what a gate refused, where the generator can."""
    is_read = bool(row.text) and row.gate in REPAIRABLE  # no text: there is nothing to mend
    if generator is None or not generator.can_repair or not is_read:
        return None
    assert sample.request is not None
    failure = Failure(row.text, row.gate, row.reason)
    request = replace(sample.request, failure=failure, seed=(*sample.request.seed, 1))
    # It joins a later batch, as whatever a model writes.
    number = sample.number + plan.block // 2 + plan.ahead * plan.block
    return replace(sample, number=number, kind=REPAIR, request=request)
