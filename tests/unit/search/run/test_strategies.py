import pytest

from podium.errors import UnknownName
from podium.search.run.strategies import STRATEGIES, StrategyRun, plan_of, summarise_strategies
from support.searches import PLAN_OF_TESTS


def trials(arm, *validations):
    return [
        StrategyRun(arm, 1000 + i, "run", 500, 9.0, 95.0, value, 94.0, 40)
        for i, value in enumerate(validations)
    ]


def test_arms_share_everything_but_who_writes_candidates():
    for arm in ("genetic", "random", "llm", "command"):
        plan = plan_of(arm, PLAN_OF_TESTS)
        assert plan.generators == ((arm, 1.0),)
        assert (plan.training, plan.fitness, plan.batch) == (
            PLAN_OF_TESTS.training, PLAN_OF_TESTS.fitness, PLAN_OF_TESTS.batch,
        )  # fmt: skip


def test_an_unknown_arm_is_an_error_that_names_the_known_ones():
    with pytest.raises(UnknownName, match='"genetik"'):
        plan_of("genetik", PLAN_OF_TESTS)


def test_leads_are_those_of_two_groups():
    rows = summarise_strategies(
        [*trials("genetic", 96.0, 95.0, 97.0), *trials("random", 94.5, 93.5, 94.0)]
    )
    first, second = rows
    assert (first.arm, first.runs, first.lead) == ("genetic", 3, None)
    assert first.gain == pytest.approx(2.0)
    assert second.lead == pytest.approx(2.0)
    assert 0 < second.lead_low < second.lead < second.lead_high
    assert second.p_value == 0.1  # 2 of the 20 ways to deal six runs to two groups


def test_five_runs_of_each_strategy_can_show_a_lead_beyond_chance():
    rows = summarise_strategies(
        [
            *trials("genetic", 96.0, 95.0, 97.0, 96.5, 95.5),
            *trials("random", *[94.0, 93.0] * 2, 93.5),
        ]
    )
    assert rows[1].p_value == pytest.approx(2 / 252)


def test_intervals_hold_the_mean():
    (row,) = summarise_strategies(trials("genetic", 94.0, 95.0, 96.0, 97.0, 98.0))
    assert row.low < row.validation == 96.0 < row.high


def test_every_arm_says_what_it_is():
    assert all(text and not text.endswith(".") for text in STRATEGIES.values())
