import pytest

from podium.errors import UnknownName, UsageError
from podium.search.judging.fitness import RULES, Outcome, fitness_named, mean_values


def _inflated(
    at_130, at_100, usual_at_100=90.0, fragmentation=5.0, cpu_only_placed=100.0, family=""
):
    values = {
        "allocation_130": at_130, "allocation_100": at_100, "fragmentation": fragmentation,
        "cpu_only_placed": cpu_only_placed,
    }  # fmt: skip
    usual = {
        "allocation_130": 92.0, "allocation_100": usual_at_100, "fragmentation": 6.0,
        "cpu_only_placed": 100.0,
    }  # fmt: skip
    return Outcome("inflation", values, usual, family)


def _waited(mean_s, usual_mean_s, p95_s=300.0, usual_p95_s=300.0, fragments=11.0):
    rest = {"allocation_arriving": 48.0, "queue_busy": 40.0}
    own = {"wait_mean_s": mean_s, "wait_p95_s": p95_s, "fragmentation_arriving": fragments}
    usual = {"wait_mean_s": usual_mean_s, "wait_p95_s": usual_p95_s, "fragmentation_arriving": 11.0}
    return Outcome("replay", rest | own, rest | usual)


def test_inflation_is_the_mean_allocation_at_130_percent():
    outcomes = [_inflated(95.0, 90.0), _inflated(97.0, 89.5)]
    assert fitness_named("inflation").score(outcomes) == pytest.approx(96.0)


def test_falling_behind_fgd_at_100_percent_costs_two_points_a_point_beyond_the_tolerance():
    assert fitness_named("inflation").score([_inflated(98.0, 88.0)]) == pytest.approx(
        98.0 - 2 * 1.5
    )


def test_what_one_trace_loses_at_100_percent_no_other_makes_up_for():
    outcomes = [
        _inflated(98.0, 88.0, family="a"),
        _inflated(98.0, 88.5, family="a"),
        _inflated(98.0, 99.0, family="b"),
        _inflated(98.0, 89.0, family="c"),
    ]
    # Two cases of a trace are chance to a lesser degree than one: half of the tolerance is left.
    assert fitness_named("inflation").score(outcomes) == pytest.approx(98.0 - 2 * (1.5 + 0.5))


def test_seeds_of_one_trace_make_up_for_each_other():
    outcomes = [_inflated(98.0, 88.0, family="a"), _inflated(98.0, 92.0, family="a")]
    assert fitness_named("inflation").score(outcomes) == pytest.approx(98.0)


def test_holding_is_the_allocation_at_130_percent_while_the_floor_at_100_percent_is_kept():
    outcomes = [_inflated(98.0, 83.0), _inflated(99.0, 85.0)]
    assert fitness_named("holding:84").score(outcomes) == pytest.approx(98.5)


def test_each_point_below_the_floor_of_holding_costs_a_little_more_than_it_brings():
    assert fitness_named("holding:93").score([_inflated(98.4, 85.0)]) == pytest.approx(98.4 - 2.4)


def test_holding_cpu_only_pods_for_good_does_not_pay():
    starving = _inflated(98.6, 95.0, cpu_only_placed=0.0)
    assert fitness_named("holding:84").score([starving]) == pytest.approx(98.6 - 10)


def test_holding_asks_for_large_cases_and_for_candidates_that_may_hold():
    assert fitness_named("holding:93").kinds == ("holding",)
    assert fitness_named("mix:waiting=1,holding:93=1").kinds == ("replay", "holding")
    assert fitness_named("mix:waiting=1,holding:93=1").may_hold
    assert not fitness_named("inflation").may_hold


@pytest.mark.parametrize(
    "name", ["holding", "holding:", "holding:high", "holding:-1", "holding:101", "holding:nan"]
)
def test_holding_needs_a_floor_in_percent(name):
    with pytest.raises(UsageError, match="names no floor") as caught:
        fitness_named(name)
    assert "holding:93" in caught.value.hint


def test_waiting_is_fifty_for_what_waits_like_fgd_and_more_for_what_waits_less():
    fitness = fitness_named("waiting")
    assert fitness.score([_waited(80.0, 80.0)]) == pytest.approx(50.0)
    assert fitness.score([_waited(0.0, 0.0, 0.0, 0.0)]) == pytest.approx(50.0)
    assert fitness.score([_waited(0.0, 120.0)]) == pytest.approx((75.0 + 50.0) / 2)
    assert fitness.score([_waited(80.0, 80.0, 660.0, 180.0)]) == pytest.approx((50.0 + 25.0) / 2)


def test_one_case_with_endless_waiting_does_not_hide_the_others():
    fitness = fitness_named("waiting")
    endless = _waited(1e6, 1e6)
    one, other = (fitness.score([endless, _waited(wait_s, 120.0)]) for wait_s in (120.0, 0.0))
    assert other - one == pytest.approx(25.0 / 4)


def test_of_two_that_wait_alike_the_one_with_fewer_fragments_is_fitter():
    fitness = fitness_named("waiting")
    assert fitness.score([_waited(80.0, 80.0, fragments=10.4)]) == pytest.approx(50.6)


def test_fragmentation_counts_against_a_candidate():
    assert fitness_named("fragmentation").score([_inflated(9, 9, 9, 7.5)]) == pytest.approx(92.5)


def test_a_mixture_weighs_its_rules_and_needs_the_cases_of_each():
    fitness = fitness_named("mix:inflation=0.7,waiting=0.3")
    outcomes = [_inflated(95.0, 90.0), _waited(80.0, 80.0)]
    assert fitness.kinds == ("inflation", "replay")
    assert fitness.score(outcomes) == pytest.approx(0.7 * 95.0 + 0.3 * 50.0)
    assert fitness.terms(outcomes) == pytest.approx({"inflation": 95.0, "waiting": 50.0})


def test_a_mixture_over_cases_of_one_kind_is_the_rule_of_that_kind():
    fitness = fitness_named("mix:inflation=0.7,waiting=0.3")
    assert fitness.score([_waited(80.0, 80.0)]) == pytest.approx(50.0)


def test_the_formula_is_shown_in_full():
    text = fitness_named("mix:inflation=1,fragmentation=1").text
    assert RULES["inflation"] in text
    assert RULES["fragmentation"] in text
    assert "0.5 x" in text
    assert "is below 93," in fitness_named("holding:93").text


@pytest.mark.parametrize("name", ["inflate", "mix", "mix:", "mix:speed=1"])
def test_an_unknown_rule_is_named_with_those_that_exist(name):
    with pytest.raises(UnknownName) as caught:
        fitness_named(name)
    assert "inflation" in caught.value.hint


@pytest.mark.parametrize("weight", ["0", "-1", "inf", "nan", "", "much"])
def test_a_weight_is_a_positive_number(weight):
    with pytest.raises(UsageError, match="not a positive number"):
        fitness_named(f"mix:inflation={weight}")


def test_means_are_taken_over_the_cases_that_have_the_figure():
    assert mean_values([{"a": 1.0, "b": 2.0}, {"a": 3.0}]) == {"a": 2.0, "b": 2.0}


def _by_funsearch(score, without_retries, wait_s):
    values = {
        "funsearch_score": score, "funsearch_score_without_retries": without_retries,
        "funsearch_fragmentation": 3.0, "funsearch_waited": 1.0, "funsearch_wait_mean_s": wait_s,
    }  # fmt: skip
    return Outcome("funsearch", values, values)


def test_nobody_gains_by_retries_in_the_score_of_funsearch():
    fitness = fitness_named("funsearch")
    assert fitness.score([_by_funsearch(49.0, 47.0, 0.0)]) == 47.0
    assert fitness.score([_by_funsearch(44.7, 45.0, 0.0)]) == 44.7


def test_waiting_beyond_the_limit_costs_points_and_the_more_the_longer():
    fitness = fitness_named("funsearch:40")
    assert fitness.score([_by_funsearch(47.0, 47.0, 40.0)]) == 47.0
    assert fitness.score([_by_funsearch(47.0, 47.0, 80.0)]) == pytest.approx(45.0)
    assert fitness.score([_by_funsearch(47.0, 47.0, 1e9)]) == pytest.approx(37.0)
    both = [_by_funsearch(47.0, 47.0, 0.0), _by_funsearch(47.0, 47.0, 1e9)]
    assert fitness.score(both) == pytest.approx(42.0)
    assert "beyond 40 s" in fitness.text
    assert fitness_named("funsearch").text == fitness.text
    assert fitness.kinds == ("funsearch",)


@pytest.mark.parametrize("name", ["funsearch:", "funsearch:soon", "funsearch:0", "funsearch:inf"])
def test_a_limit_on_waiting_is_a_time(name):
    with pytest.raises(UsageError, match="names no limit on the mean wait"):
        fitness_named(name)
