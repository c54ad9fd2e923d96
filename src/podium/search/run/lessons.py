"""Tells generators what became of their proposals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from podium.search.generator import Cost, Generator
from podium.search.population import Archive
from podium.search.run.samples import BRED, REPAIR
from podium.store import CandidateRecord


def teach(
    generators: Mapping[str, Generator],
    archive: Archive,
    rows: Sequence[CandidateRecord],
    usual: float,
) -> None:
    """Tells what each row gained over its parents in the archive; without any, over the usual."""
    for row in rows:
        generator = generators.get(row.source.partition(":")[0])
        if generator is None or row.kind not in (BRED, REPAIR):
            continue
        parents = [found for each in row.parents if (found := archive.member(each))]
        expected = max((each.fitness for each in parents), default=usual)
        gain = row.fitness - expected if row.accepted and row.fitness is not None else None
        cost: dict[str, Any] = {k: v for k, v in row.cost.items() if k != "evaluations"}
        generator.learn(row.source, gain, Cost(**cost))
