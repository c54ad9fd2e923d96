"""Plans a batch: its samples, who writes them, and which refused candidates are repaired."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace

import numpy as np

from podium.search.candidate.constants import read_constants
from podium.search.candidate.verdict import ALLOWLIST, COMPILE, CONTRACT, SIGNATURE, SYNTAX, TINY
from podium.search.generators.generator import (
    Exemplar,
    Failure,
    Generator,
    Proposal,
    Request,
    Spent,
)
from podium.search.population import Archive, Island, Member
from podium.search.population.member import BRED, REPAIR, SEED, TUNED
from podium.search.population.selection import choose_parents
from podium.search.run.plan import RANDOM, RunPlan
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


def first_batch(plan: RunPlan, starters: Sequence[tuple[str, str]]) -> list[Sample]:
    """Plans how a run begins: with texts that every island gets, or with random programs."""
    if plan.start == RANDOM and not starters:
        return [_bred(plan, None, number) for number in range(plan.batch)]
    return [
        Sample(number, number % plan.customs.islands, SEED, "", text, name)
        for number, (name, text) in enumerate(starters)
    ]


def next_batch(plan: RunPlan, archive: Archive) -> list[Sample]:
    """Plans a batch from the archive as it is; islands take turns."""
    first = archive.batches * plan.block
    if not plan.generators:
        return _tunings(plan, archive, first)
    found: list[Sample] = []
    for i in range(plan.batch):
        island = archive.islands[i % len(archive.islands)]
        is_turn = plan.tuning.every and archive.batches % plan.tuning.every == 0
        target = _tunable(archive, island) if is_turn and i < len(archive.islands) else None
        taken = {each.parents for each in found if each.kind == TUNED}
        if target is not None and (target.number,) not in taken:
            number = first + i
            sample = Sample(number, island.index, TUNED, "", target.text, "", (target.number,))
        else:
            sample = _bred(plan, island, first + i)
        found.append(sample)
    return found


def _tunings(plan: RunPlan, archive: Archive, first: int) -> list[Sample]:
    """Plans a batch that only tunes what was never tuned."""
    left: dict[int, tuple[int, Member]] = {}
    for island in archive.islands:
        for member in island.members:
            if member.number not in archive.tuned and read_constants(member.text):
                left.setdefault(member.number, (island.index, member))
    return [
        Sample(first + i, island, TUNED, "", member.text, "", (member.number,))
        for i, (island, member) in enumerate(list(left.values())[: plan.batch])
    ]


def exemplar_of(member: Member) -> Exemplar:
    """Describes a member to generators."""
    return Exemplar(member.number, member.text, member.fitness, member.thought, member.diagnostics)


def losses_of(best: Member | None) -> str:
    """Describes where GPUs are lost under the best so far: the first line of its diagnostics."""
    if best is None or not best.diagnostics:
        return ""
    return f"Under program {best.number}, the best so far: {best.diagnostics.splitlines()[0]}"


def _bred(plan: RunPlan, island: Island | None, number: int) -> Sample:
    rng = np.random.default_rng([plan.seed, number, _CHOICE])
    generator = _generator(plan, rng)
    parents = choose_parents(rng, island, PARENTS) if island is not None else []
    request = Request(
        seed=(plan.seed, number, _OWN),
        parents=tuple(exemplar_of(each) for each in parents),
        is_stagnant=island is not None and island.stale > plan.customs.respawn_after // 2,
    )
    index = island.index if island is not None else number % plan.customs.islands
    numbers = tuple(each.number for each in parents)
    return Sample(number, index, BRED, generator, parents=numbers, request=request)


def _generator(plan: RunPlan, rng: np.random.Generator) -> str:
    left = rng.random() * sum(weight for _, weight in plan.generators)
    for name, weight in plan.generators:
        left -= weight
        if left < 0:
            return name
    return plan.generators[-1][0]


def _tunable(archive: Archive, island: Island) -> Member | None:
    """Finds the best member of an island whose constants were never tuned."""
    for member in sorted(island.members, key=island.key, reverse=True):
        if member.number not in archive.tuned and read_constants(member.text):
            return member
    return None


MOST_AT_ONCE = 8

Write = Callable[[Sample], Proposal | Spent]
Written = list[tuple[Sample, Proposal | Spent]]


def as_written(samples: Sequence[Sample], write: Write) -> Iterator[Written]:
    """Yields proposals as they come, in any order: they are paid for, and must be stored at once.

    Leaving early skips the samples that no generator has begun to write.
    """
    threads = ThreadPoolExecutor(max(1, min(MOST_AT_ONCE, len(samples))))
    try:
        waiting = {threads.submit(write, each): each for each in samples}
        while waiting:
            done, _ = wait(waiting, return_when=FIRST_COMPLETED)
            yield [(waiting.pop(each), each.result()) for each in done]
    finally:
        threads.shutdown(cancel_futures=True)


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
    number = sample.number + plan.block // 2
    return replace(sample, number=number, kind=REPAIR, request=request)
