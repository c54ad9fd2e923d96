"""Has proposals judged: refuses what nobody needs to run, and stores every judgement at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from podium.search.run.executor import Context, Executor, Task
from podium.search.run.plan import RunPlan
from podium.search.run.progress import Tally
from podium.search.run.samples import TUNED
from podium.search.run.verdicts import judged, problem_of, refused
from podium.search.verdict import ALLOWLIST, NOVELTY
from podium.store import CandidateRecord, Store
from podium.store.records import JUDGED


@dataclass(slots=True)
class Jury:
    """Judges the candidates of one run."""

    plan: RunPlan
    store: Store
    executor: Executor
    tally: Tally
    fingerprints: set[str] = field(default_factory=set)  # of what was judged before

    def judge(
        self, rows: Sequence[CandidateRecord], context: Context, heard: Callable[[], None]
    ) -> list[CandidateRecord]:
        """Judges what is not judged yet; `heard` is called after every judgement of a worker."""
        done = {row.number: row for row in rows if row.state == JUDGED}
        tasks: list[Task] = []
        for row in rows:
            if row.number in done:
                self.fingerprints.add(row.fingerprint)
                continue
            problem = problem_of(row) or self._unwanted(row)
            if problem is not None:
                done[row.number] = self._keep(refused(row, *problem))
            else:
                tasks.append(self._task(row))
        waiting = {row.number: row for row in rows}
        for each in self.executor.run(tasks, context):
            row = judged(waiting[each.number], each)
            done[each.number] = self._keep(row)
            heard()
        return [done[row.number] for row in rows]

    def _unwanted(self, row: CandidateRecord) -> tuple[str, str] | None:
        """Refuses what this run does not want; a text that is to be tuned is known on purpose."""
        if row.kind == TUNED:
            return None
        if row.may_hold and not self.plan.may_hold:
            return ALLOWLIST, "it may hold pods; place every pod on a node where it fits"
        if row.fingerprint in self.fingerprints:
            return NOVELTY, "it computes the same as a candidate that was judged before"
        self.fingerprints.add(row.fingerprint)
        return None

    def _task(self, row: CandidateRecord) -> Task:
        tuning = self.plan.tuning.evaluations if row.kind == TUNED else 0
        return Task(row.number, row.text, row.complexity, tuning, self.plan.seed + row.number)

    def _keep(self, row: CandidateRecord) -> CandidateRecord:
        self.store.candidates.judge([row])
        self.tally.count_judgement(row)
        return row
