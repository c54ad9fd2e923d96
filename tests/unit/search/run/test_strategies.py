from dataclasses import replace

import pytest

from podium.errors import UnknownName
from podium.search.candidate.constants import read_constants
from podium.search.run.plan import Budget
from podium.search.run.strategies import STRATEGIES, StrategyRun, plan_of, summarise_strategies
from support.searches import PLAN_OF_TESTS, Sittings

BUDGET = 60


def trials(arm, *validations):
    return [
        StrategyRun(arm, 1000 + i, "run", 500, 9.0, 95.0, value, 94.0, 40)
        for i, value in enumerate(validations)
    ]


def test_arms_share_everything_but_who_writes_candidates():
    for arm in ("genetic", "random", "llm", "command"):
        plan = plan_of(arm, PLAN_OF_TESTS, BUDGET)
        assert plan.generators == ((arm, 1.0),)
        assert (plan.training, plan.fitness, plan.batch) == (
            PLAN_OF_TESTS.training, PLAN_OF_TESTS.fitness, PLAN_OF_TESTS.batch,
        )  # fmt: skip


def test_an_unknown_arm_is_an_error_that_names_the_known_ones():
    with pytest.raises(UnknownName, match='"genetik"'):
        plan_of("genetik", PLAN_OF_TESTS, BUDGET)


def test_the_arm_of_tuned_formulas_spends_the_budget_and_breeds_nothing(tmp_path, executor):
    plan = replace(plan_of("tuned", PLAN_OF_TESTS, 200), batch=24)
    assert not plan.generators
    sittings = Sittings(tmp_path, executor, plan, {}, starters=plan.starters)
    search = sittings.search()
    search.go(Budget(200))
    assert search.ending == "evaluation budget reached (200)"
    rows = sittings.store.candidates.of("run")
    assert {row.kind for row in rows} == {"seed", "tuned"}
    assert search.tally.evaluations == 200
    tunable = sum(bool(read_constants(text)) for _, text in plan.starters)
    tuned = {row.parents for row in rows if row.kind == "tuned"}
    assert len(tuned) >= tunable / 2  # not one formula alone


def test_leads_are_paired_by_seed():
    rows = summarise_strategies(
        [*trials("genetic", 96.0, 95.0, 97.0), *trials("random", 95.5, 94.5, 96.5)]
    )
    first, second = rows
    assert (first.arm, first.runs, first.lead) == ("genetic", 3, None)
    assert first.gain == pytest.approx(2.0)
    assert (second.lead, second.lead_low, second.lead_high) == pytest.approx((0.5, 0.5, 0.5))
    assert second.p_value == 0.25  # 2 of the 8 patterns of signs


def test_intervals_hold_the_mean():
    (row,) = summarise_strategies(trials("genetic", 94.0, 95.0, 96.0, 97.0, 98.0))
    assert row.low < row.validation == 96.0 < row.high


def test_every_arm_says_what_it_is():
    assert all(text and not text.endswith(".") for text in STRATEGIES.values())
