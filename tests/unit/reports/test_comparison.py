import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podium.reports import comparison
from podium.reports.comparison import BASELINES, METRICS, compare, interval, sign_flip_p
from podium.reports.summary import summarise
from support.runs import three_pods

DIFFERENCES = st.lists(
    st.integers(-50, 50).map(lambda number: number / 8), min_size=1, max_size=7
).map(np.array)


def by_enumeration(differences):
    """Tries every pattern of signs: the share that is at least as far from 0."""
    observed = abs(sum(differences))
    patterns = list(itertools.product((1, -1), repeat=len(differences)))
    sums = [abs(sum(s * d for s, d in zip(p, differences, strict=True))) for p in patterns]
    return sum(total >= observed for total in sums) / len(patterns)


@pytest.mark.parametrize(
    ("differences", "p"),
    [
        ([1, 2, 3, 4, 5], 2 / 32),
        ([1, 2, -1], 6 / 8),
        ([3], 1),
        ([0, 0, 0], 1),
        ([5, -5], 1),
        ([1] * 14, 2 / 2**14),
    ],
)
def test_p_values_are_those_worked_out_by_hand(differences, p):
    assert sign_flip_p(np.array(differences, float)) == p


@given(DIFFERENCES)
def test_a_p_value_is_the_share_of_all_sign_patterns(differences):
    assert sign_flip_p(differences) == pytest.approx(by_enumeration(differences.tolist()))


@given(DIFFERENCES, st.floats(0.01, 100))
def test_a_p_value_heeds_neither_direction_nor_unit(differences, factor):
    p = sign_flip_p(differences)
    assert sign_flip_p(-differences) == p
    assert sign_flip_p(factor * differences) == p
    assert 0 < p <= 1


def test_many_pairs_are_drawn_and_come_close_to_the_exact_value(monkeypatch):
    differences = np.array([0.3, 1.0, -0.4, 0.9, 0.2, -0.1, 0.7, 0.5])
    exact = sign_flip_p(differences)
    monkeypatch.setattr(comparison, "_EXACT_PAIRS", 0)
    assert sign_flip_p(differences) == pytest.approx(exact, abs=0.02)


def test_no_draw_makes_a_p_value_of_zero():
    assert sign_flip_p(np.ones(40)) == 1 / 10_001
    assert sign_flip_p(np.zeros(40)) == 1.0


def test_one_value_is_a_point():
    assert interval(np.array([3.5])) == (3.5, 3.5)


def test_two_values_span_their_interval():
    # A resampled mean is the lower value, the middle or the upper one: 1/4, 1/2, 1/4.
    assert interval(np.array([0.0, 1.0])) == (0.0, 1.0)


VALUES = st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=12).map(np.array)


@settings(max_examples=30)
@given(VALUES)
def test_an_interval_holds_the_mean_and_stays_within_the_values(values):
    low, high = interval(values)
    noise = 1e-9 * np.abs(values).max()
    assert values.min() - noise <= low <= values.mean() + noise
    assert values.mean() - noise <= high <= values.max() + noise


def test_an_interval_moves_and_stretches_with_its_values():
    values = np.array([1.0, 4.0, 2.0, 8.0, 5.0])
    low, high = interval(values)
    assert interval(10 * values + 3) == pytest.approx((10 * low + 3, 10 * high + 3))


def test_intervals_cover_the_true_mean_about_as_often_as_they_say():
    random = np.random.default_rng(1)
    intervals = [interval(sample) for sample in random.normal(7.0, 2.0, (200, 20))]
    covered = np.mean([low <= 7.0 <= high for low, high in intervals])
    assert 0.88 <= covered <= 0.99


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


def test_policies_that_may_hold_are_marked():
    found = compare({"fgd": runs(0.9), "mine": runs(0.8)}, "gpu_allocation", frozenset({"mine"}))
    assert {row.policy: row.may_hold for row in found.rows} == {"fgd": False, "mine": True}


@pytest.mark.parametrize("metric", METRICS)
def test_every_metric_is_in_the_summary_of_a_run(metric):
    assert metric in summarise(three_pods())


def test_every_baseline_is_a_policy_that_ships():
    from podium.policies import catalogue

    assert set(BASELINES) <= {policy.name for policy in catalogue()}
