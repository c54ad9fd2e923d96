"""Plans repairs: which refused candidates their generator may mend, and what it is told."""

from __future__ import annotations

from dataclasses import replace

from podium.search.generator import Failure, Generator
from podium.search.run.plan import RunPlan
from podium.search.run.samples import REPAIR, Sample
from podium.search.verdict import ALLOWLIST, COMPILE, CONTRACT, SIGNATURE, SYNTAX, TINY
from podium.store import CandidateRecord

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
