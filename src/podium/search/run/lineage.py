"""Tells how a candidate came about: from whom, by which operator, and what each step gained."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from podium.search.population.member import SEED
from podium.store import CandidateRecord

COLUMNS = (
    "number", "batch", "island", "kind", "source", "operator", "parents", "state", "accepted",
    "gate", "reason", "fitness", "gain", "complexity", "may_hold", "evaluations", "seconds",
    "tokens", "usd",
)  # fmt: skip
"""What an export says of each candidate."""


@dataclass(frozen=True, slots=True)
class Step:
    """A candidate and what it gained over the best of the parents that were used."""

    record: CandidateRecord
    gain: float | None  # None: it has no parents, or was not measured on all cases

    @property
    def operator(self) -> str:
        """Names what made it."""
        record = self.record
        return record.operators[0] if record.operators else record.kind

    def as_object(self) -> dict[str, Any]:
        """Describes the step as JSON types."""
        record, cost = self.record, self.record.cost
        tokens = cost.get("tokens_in", 0) + cost.get("tokens_out", 0)
        beside = {
            "operator": self.operator, "parents": list(record.parents), "gain": self.gain,
            "evaluations": cost.get("evaluations", 0), "tokens": tokens, "usd": cost.get("usd"),
        }  # fmt: skip
        return {name: beside.get(name, getattr(record, name, None)) for name in COLUMNS}


def steps_of(records: Iterable[CandidateRecord]) -> list[Step]:
    """Returns all candidates of a run with their gains, in their order."""
    rows = list(records)
    fitness = {each.number: each.fitness for each in rows if each.fitness is not None}
    return [Step(each, _gain(each, fitness)) for each in rows]


def lineage_of(records: Iterable[CandidateRecord], number: int) -> list[Step]:
    """Follows a candidate back to where it began, by the best parent at each step; that first."""
    steps = {each.record.number: each for each in steps_of(records)}
    found: list[Step] = []
    step = steps.get(number)
    while step is not None and step not in found:
        found.append(step)
        parents = [steps[each] for each in step.record.parents if each in steps]
        is_seed = step.record.kind == SEED
        step = None if is_seed else max(parents, key=_rank, default=None)
    return found[::-1]


def _rank(step: Step) -> tuple[float, int]:
    fitness = step.record.fitness
    return (fitness if fitness is not None else float("-inf")), -step.record.number


def _gain(record: CandidateRecord, fitness: Mapping[int, float]) -> float | None:
    known = [fitness[each] for each in record.parents if each in fitness]
    return record.fitness - max(known) if known and record.fitness is not None else None
