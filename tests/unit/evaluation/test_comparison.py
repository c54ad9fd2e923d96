import pytest

from podium.evaluation.comparison import BASELINES, METRICS, compare, leads_of
from podium.reports.summary import summarise
from support.runs import three_pods


def runs(*values, metric="gpu_allocation"):
    return [{"seed": 1000 + i, metric: value} for i, value in enumerate(values)]


def ranked(metric, **summaries):
    return compare(
        {name.replace("_", "-"): found for name, found in summaries.items()}, metric, frozenset()
    )


def test_policies_are_ranked_by_their_mean():
    found = ranked("gpu_allocation", mine=runs(0.8, 0.9), fgd=runs(0.9, 0.9), random=runs(0.5, 0.7))
    assert [(row.rank, row.policy) for row in found.rows] == [
        (1, "fgd"),
        (2, "mine"),
        (3, "random"),
    ]
    assert [row.mean for row in found.rows] == pytest.approx([0.9, 0.85, 0.6])
    assert found.seeds == (1000, 1001)


def test_where_less_is_better_the_least_comes_first():
    found = ranked(
        "wait_mean_s",
        mine=runs(5, 7, metric="wait_mean_s"),
        fgd=runs(50, 70, metric="wait_mean_s"),
    )
    assert [row.policy for row in found.rows] == ["mine", "fgd"]


def test_the_yardstick_is_the_best_baseline_that_takes_part():
    found = ranked(
        "gpu_allocation", mine=runs(0.95), random=runs(0.7), best_fit=runs(0.9), other=runs(0.8)
    )
    assert found.yardstick == "best-fit"
    by_name = {row.policy: row for row in found.rows}
    assert by_name["best-fit"].p_value is None
    assert by_name["mine"].difference == pytest.approx(0.05)
    assert by_name["random"].difference == pytest.approx(-0.2)


def test_without_a_baseline_the_best_is_the_yardstick():
    found = ranked("gpu_allocation", mine=runs(0.8), other=runs(0.9))
    assert found.yardstick == "other"


def test_differences_are_taken_seed_by_seed():
    # The seeds differ far more than the policies do; pairing takes that out.
    found = ranked(
        "gpu_allocation",
        mine=runs(0.11, 0.51, 0.91, 0.21, 0.71),
        fgd=runs(0.10, 0.50, 0.90, 0.20, 0.70),
    )
    mine = found.rows[0]
    assert mine.difference == pytest.approx(0.01)
    assert (mine.difference_low, mine.difference_high) == pytest.approx((0.01, 0.01))
    assert mine.p_value == 2 / 32
    assert mine.high - mine.low > 0.3


def test_equal_means_share_the_better_rank_and_stand_in_order_of_names():
    found = ranked(
        "placed",
        b=runs(8, metric="placed"),
        a=runs(8, metric="placed"),
        c=runs(9, metric="placed"),
        d=runs(7, metric="placed"),
    )
    assert [(row.rank, row.policy) for row in found.rows] == [
        (1, "c"),
        (2, "a"),
        (2, "b"),
        (4, "d"),
    ]


def test_a_policy_equal_to_the_yardstick_is_no_better():
    found = ranked("gpu_allocation", fgd=runs(0.9, 0.8), mine=runs(0.9, 0.8))
    assert found.rows[1].p_value == 1.0
    assert found.rows[1].difference == 0


def test_seeds_that_are_one_run_have_no_interval_and_no_p():
    same = runs(0.9, 0.9, 0.9, 0.9, 0.9, 0.9)
    found = ranked("gpu_allocation", fgd=same, mine=runs(*[0.8] * 6))
    for row in found.rows:
        assert (row.low, row.high, row.difference_low, row.difference_high) == (None,) * 4
        assert row.p_value is None
    assert found.rows[1].difference == pytest.approx(-0.1)
    assert found.repeated == (
        "all 6 seeds come to one and the same run: nothing is left to chance, so there is no "
        "interval and no p"
    )


def test_a_policy_that_draws_is_tested_against_one_that_does_not():
    found = ranked("gpu_allocation", fgd=runs(0.9, 0.9, 0.9), random=runs(0.5, 0.6, 0.7))
    fgd, random = found.rows
    assert (fgd.low, fgd.high) == (None, None)
    assert random.low < random.mean < random.high
    assert random.p_value == 2 / 8
    assert found.repeated == (
        "all 3 seeds come to one and the same run of fgd: so these have no interval, and no p "
        "against each other"
    )


def test_runs_that_differ_in_another_figure_are_several():
    several = [{**run, "fragmentation": i} for i, run in enumerate(runs(8, 8, metric="placed"))]
    others = [{**run, "fragmentation": i} for i, run in enumerate(runs(9, 9, metric="placed"))]
    found = ranked("placed", fgd=several, mine=others)
    assert not found.repeated
    assert found.rows[0].p_value == 0.5


@pytest.mark.parametrize(("mine", "is_better", "p_value"), [
    ((0.8, 0.8), False, None), ((0.8, 0.9), True, 0.5),
])  # fmt: skip
def test_a_lead_over_seeds_that_are_one_run_is_no_more_than_a_difference(mine, is_better, p_value):
    (lead,) = leads_of("mine", {"mine": runs(*mine), "fgd": runs(0.5, 0.5)}, "gpu_allocation")
    assert lead.difference.mean == pytest.approx(sum(mine) / 2 - 0.5)
    assert (lead.difference.low is None) == (p_value is None)
    assert (lead.is_better, lead.p_value) == (is_better, p_value)


def test_policies_that_may_hold_are_marked():
    found = compare({"fgd": runs(0.9), "mine": runs(0.8)}, "gpu_allocation", frozenset({"mine"}))
    assert {row.policy: row.may_hold for row in found.rows} == {"fgd": False, "mine": True}


@pytest.mark.parametrize("metric", METRICS)
def test_every_metric_is_in_the_summary_of_a_run(metric):
    assert metric in summarise(three_pods())


def test_every_baseline_is_a_policy_that_ships():
    from podium.policies import catalogue

    assert set(BASELINES) <= {policy.name for policy in catalogue()}
