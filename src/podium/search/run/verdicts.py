"""Turns samples, proposals and judgements into the rows of a run, and rows into members."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from podium.search.gates import read_candidate
from podium.search.generator import Proposal
from podium.search.population import Member
from podium.search.population.archive import Entry
from podium.search.run.executor import Done
from podium.search.run.samples import SEED, TUNED, Sample
from podium.search.size import complexity_of
from podium.search.verdict import SYNTAX, Verdict
from podium.store import CandidateRecord
from podium.store.records import JUDGED


def proposed(run_id: str, batch: int, sample: Sample, proposal: Proposal) -> CandidateRecord:
    """Makes the row of a candidate that is still to be judged."""
    record = CandidateRecord(
        run_id=run_id, number=sample.number, batch=batch, island=sample.island, kind=sample.kind,
        source=proposal.source, operators=proposal.operators, parents=sample.parents,
        prompt=_clean(proposal.prompt), thought=_clean(proposal.thought),
        text=_clean(proposal.text), reason=_clean(proposal.problem), cost=asdict(proposal.cost),
    )  # fmt: skip
    read = read_candidate(record.text)
    if isinstance(read, Verdict):
        return record
    return replace(
        record, fingerprint=read.fingerprint, may_hold=read.may_hold,
        complexity=complexity_of(record.text),
    )  # fmt: skip


def refused(record: CandidateRecord, gate: str, reason: str) -> CandidateRecord:
    """Makes the row of a candidate that no worker needs to see."""
    return replace(record, state=JUDGED, accepted=False, gate=gate, reason=_clean(reason))


def judged(record: CandidateRecord, done: Done) -> CandidateRecord:
    """Makes the row of a judged candidate."""
    found, decisions = done.judgement, done.judgement.decisions
    accepted, is_tuned = found.verdict.accepted, done.text != record.text
    return replace(
        record,
        complexity=complexity_of(done.text) if is_tuned else record.complexity,
        state=JUDGED, accepted=accepted, gate=found.verdict.gate,
        reason=_clean(found.verdict.reason), text=_clean(done.text),
        signature=decisions.signature if decisions else "",
        behaviour=decisions.behaviour if decisions else (),
        may_hold=record.may_hold or bool(found.scores.get("may_hold")),
        fitness=found.scores.get("fitness"), scores=_figures(found.scores), cases=found.cases,
        diagnostics=_clean(found.diagnostics),
        seconds=found.seconds, cost={**record.cost, "evaluations": done.evaluations},
    )  # fmt: skip


def entry_of(record: CandidateRecord) -> Entry:
    """Says to the archive what became of a candidate."""
    return Entry(
        record.number, record.island, record.parents, member_of(record),
        is_for_all=record.kind == SEED, is_tuned=record.kind == TUNED,
    )  # fmt: skip


def member_of(record: CandidateRecord) -> Member | None:
    """Makes a member of an accepted candidate."""
    if not record.accepted or record.fitness is None:
        return None
    return Member(
        number=record.number, text=record.text, fitness=record.fitness,
        complexity=record.complexity, signature=record.signature, behaviour=record.behaviour,
        case_scores=tuple(record.scores["by_case"]), may_hold=record.may_hold,
        thought=record.thought, diagnostics=record.diagnostics,
    )  # fmt: skip


def problem_of(record: CandidateRecord) -> tuple[str, str] | None:
    """Says why a proposal cannot be judged at all: no text came, or it is no candidate."""
    if not record.text:
        return SYNTAX, record.reason or "the generator wrote nothing"
    if record.fingerprint:  # it was read when it was proposed
        return None
    read = read_candidate(record.text)
    return (read.gate, read.reason) if isinstance(read, Verdict) else None


def _figures(scores: Mapping[str, Any]) -> dict[str, Any]:
    if not scores:
        return {}
    kept = {key: value for key, value in scores.items() if key not in ("cases", "fgd")}
    return {**kept, "by_case": [case["score"] for case in scores["cases"]]}


def _clean(text: str) -> str:
    # Half of a surrogate pair is no text, and NUL is none to PostgreSQL.
    return text.encode("utf-8", "replace").decode("utf-8").replace("\0", "")
