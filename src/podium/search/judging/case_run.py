"""Runs a policy on one case by the protocol of the case, and measures it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from podium.evaluation.measures import Held, Values, measure_case, measure_funsearch
from podium.evaluation.waste import Losses, details_of, measure_in_use, measure_losses
from podium.policies import PairPolicy, load
from podium.search.candidate.verdict import Rejected
from podium.search.judging.fitness import BASELINE
from podium.search.judging.fixtures import Fixtures
from podium.search.judging.form import Form
from podium.search.judging.scrutiny import check_held, hold_refusal
from podium.sim import Result
from podium.sim.execution import execute


@dataclass(frozen=True, slots=True, eq=False)
class CaseRun:
    """What a policy reached on a case; by the rules of FunSearch there is no result."""

    values: Values
    held: Held
    result: Result | None

    def condensed(self) -> CaseRun:
        """Leaves out what can be derived again."""
        kept = None if self.result is None else replace(self.result, derived={})
        return replace(self, result=kept)


def run_case(fixtures: Fixtures, index: int, form: Form, *, may_hold: bool) -> CaseRun:
    """Runs a candidate on a case; raises Rejected where it holds pods and may not."""
    plan, other = fixtures.plans[index], fixtures.by_funsearch[index]
    if other is None:
        result = execute(replace(plan, policy=form.policy, tier=form.tier(plan)))
        check_held(result, may_hold=may_hold)
        values = measure_case(result)
        if fixtures.is_detailed:
            values |= details_of(losses_of(fixtures, index, result)) | measure_in_use(result)
        return CaseRun(values, (result.held_decisions, result.decisions), result)
    found = other.run_plainly(form.policy) if form.is_plain else other.run(form.policy)
    held = found.held, found.placed + found.failed_attempts
    if found.held and not may_hold:
        raise Rejected(hold_refusal([held], [f"{plan.trace.name} funsearch seed {plan.seed}"]))
    return CaseRun(measure_funsearch(found), held, None)


def losses_of(fixtures: Fixtures, index: int, result: Result | None) -> Losses:
    """Measures what a run lost; nothing is known of one by the rules of FunSearch."""
    return {} if result is None else measure_losses(result, fixtures.median_pods[index])


def run_baseline(fixtures: Fixtures) -> Sequence[tuple[Values, Losses]]:
    """Measures fgd on every case, and what it loses there."""
    policy = load(BASELINE)
    assert isinstance(policy, PairPolicy)
    form = Form(policy, is_compiled=True)
    found = []
    for index in range(len(fixtures.plans)):
        run = run_case(fixtures, index, form, may_hold=True)
        found.append((run.values, losses_of(fixtures, index, run.result)))
    return found
