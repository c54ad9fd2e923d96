"""Judges a batch: proposals become rows of the store, and gains go back to generators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from podium.search.candidate.gates import read_candidate
from podium.search.candidate.text import complexity_of
from podium.search.candidate.verdict import ALLOWLIST, NOVELTY, SYNTAX, Judgement, Verdict
from podium.search.generators.generator import Cost, Generator, Proposal
from podium.search.population import Archive
from podium.search.population.member import BRED, REPAIR, TUNED
from podium.search.run.batch import Sample
from podium.search.run.executor import Task
from podium.search.run.plan import PROMPTED, RunPlan
from podium.store import CandidateRecord
from podium.store.records import JUDGED


def proposed(run_id: str, batch: int, sample: Sample, proposal: Proposal) -> CandidateRecord:
    """Builds the row of a candidate that is still to be judged."""
    record = CandidateRecord(
        run_id=run_id, number=sample.number, batch=batch, island=sample.island, kind=sample.kind,
        source=proposal.source, operators=proposal.operators,
        parents=sample.parents if proposal.parents is None else proposal.parents,
        prompt=_clean(proposal.prompt), thought=_clean(proposal.thought),
        text=_clean(proposal.text), reason=_clean(proposal.problem), cost=asdict(proposal.cost),
    )  # fmt: skip
    read = read_candidate(record.text)
    if isinstance(read, Verdict):
        return record
    return replace(
        record, fingerprint=read.fingerprint, may_hold=read.may_hold, complexity=read.complexity,
    )  # fmt: skip


def refused(record: CandidateRecord, gate: str, reason: str) -> CandidateRecord:
    """Builds the row of a candidate that is refused without a worker."""
    return replace(record, state=JUDGED, accepted=False, gate=gate, reason=_clean(reason))


def judged(record: CandidateRecord, found: Judgement) -> CandidateRecord:
    """Builds the row of a judged candidate."""
    decisions = found.decisions
    accepted, is_tuned = found.verdict.accepted, found.text != record.text
    return replace(
        record,
        complexity=complexity_of(found.text) if is_tuned else record.complexity,
        state=JUDGED, accepted=accepted, gate=found.verdict.gate,
        reason=_clean(found.verdict.reason), text=_clean(found.text),
        signature=decisions.signature if decisions else "",
        behaviour=decisions.behaviour if decisions else (),
        may_hold=record.may_hold or bool(found.scores.get("may_hold")),
        fitness=found.scores.get("fitness"), scores=_figures(found.scores), cases=found.cases,
        diagnostics=_clean(found.diagnostics),
        seconds=found.seconds, cost={**record.cost, "evaluations": found.evaluations},
    )  # fmt: skip


def problem_of(record: CandidateRecord) -> tuple[str, str] | None:
    """Explains why a proposal cannot be judged at all: it has no text, or is not a candidate."""
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


@dataclass(slots=True)
class Known:
    """Remembers the texts of a run, to refuse those that compute what an earlier one does.

    Which are earlier must not depend on who answers first: candidates count in the order of their
    batches; what a model wrote counts once later ones are planned by it, so that two models that
    write the same at the same time are both heard.
    """

    plan: RunPlan
    _owners: dict[str, set[tuple[int, bool, int]]] = field(default_factory=dict)

    def add(self, row: CandidateRecord) -> None:
        """Remembers a candidate."""
        if row.fingerprint:
            self._owners.setdefault(row.fingerprint, set()).add(_place(row))

    def problem_of(self, row: CandidateRecord) -> tuple[str, str] | None:
        """Explains why a run does not want a text; a variant is known on purpose."""
        if row.kind == TUNED:
            return None
        if row.may_hold and not self.plan.may_hold:
            return ALLOWLIST, "it may hold pods; place every pod on a node where it fits"
        if any(self._is_earlier(each, row) for each in self._owners.get(row.fingerprint, ())):
            return NOVELTY, "it computes the same as a candidate that was judged before"
        return None

    def _is_earlier(self, place: tuple[int, bool, int], row: CandidateRecord) -> bool:
        batch, is_prompted, _ = place
        is_heard = not is_prompted or batch + self.plan.pipeline.lag < row.batch
        return is_heard and place < _place(row)


def _place(row: CandidateRecord) -> tuple[int, bool, int]:
    """Returns where a candidate stands in the order of its run."""
    return row.batch, row.source.partition(":")[0] in PROMPTED, row.number


def task_of(row: CandidateRecord, sample: Sample) -> Task:
    """Returns what a worker is sent to judge a candidate."""
    return Task(row.number, row.text, row.complexity, row.island, sample.rival)


def report_gains(
    generators: Mapping[int, Generator],
    archive: Archive,
    rows: Sequence[CandidateRecord],
    baseline: float,
) -> None:
    """Reports to each candidate's generator how much it gained over its best parent.

    A candidate without parents that are known is compared with fgd.
    """
    for row in rows:
        generator = generators.get(row.number)
        if generator is None or row.kind not in (BRED, REPAIR):
            continue
        known = [archive.fitness[each] for each in row.parents if each in archive.fitness]
        gain = None
        if row.accepted and row.fitness is not None:
            gain = row.fitness - max(known, default=baseline)
        cost: dict[str, Any] = {k: v for k, v in row.cost.items() if k != "evaluations"}
        generator.learn(row.source, gain, Cost(**cost))
