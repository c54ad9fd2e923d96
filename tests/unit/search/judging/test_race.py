import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.search.candidate.verdict import Rejected
from podium.search.judging.fitness import Outcome, fitness_named
from podium.search.judging.race import RACE_MARGIN, check_race, hopeful

FITNESS = fitness_named("fragmentation")
PERCENT = st.floats(0, 90)


def outcomes(fragmentation):
    """Gives outcomes whose fitness is 100 less the figure."""
    return [Outcome("inflation", {"fragmentation": each}, {}) for each in fragmentation]


def cases_run(own, incumbent):
    """Counts the cases that a candidate runs before it is refused, or all."""
    for count in range(1, len(own) + 1):
        try:
            check_race(outcomes(own[:count]), outcomes(incumbent), FITNESS)
        except Rejected:
            return count
    return len(own) + 1


@given(st.lists(PERCENT, min_size=1, max_size=12))
def test_who_is_as_good_as_the_incumbent_is_never_refused(values):
    assert cases_run(values, values) == len(values) + 1


@given(st.lists(PERCENT, min_size=1, max_size=12), st.floats(0, 10))
def test_who_is_better_on_every_case_is_never_refused(values, gain):
    better = [max(0.0, each - gain) for each in values]
    assert cases_run(better, values) == len(values) + 1


@given(st.lists(PERCENT, min_size=2, max_size=12))
def test_who_is_five_points_worse_everywhere_is_refused_after_two_cases(values):
    assert cases_run([each + 5 for each in values], values) <= 2


@given(st.lists(PERCENT, min_size=2, max_size=12), st.floats(0, RACE_MARGIN * 0.99))
def test_who_is_a_little_worse_everywhere_goes_on(values, loss):
    assert cases_run([each + loss for each in values], values) == len(values) + 1


def test_one_bad_case_among_good_ones_is_taken_for_chance():
    assert cases_run([20.0, 12.5, 20.0, 20.0], [20.0] * 4) == 5
    assert cases_run([21.4, 15.0, 20.0], [20.0] * 3) == 4


def test_two_errors_above_the_mean_are_hoped_for():
    assert hopeful([-3.0]) == -1.0
    assert hopeful([-2.0, -2.0]) == -2.0
    assert hopeful([-3.0, -1.0]) == pytest.approx(0.0)
    assert hopeful([1.0, 2.0, 3.0]) > 2.0


def test_who_trails_is_told_by_how_much():
    with pytest.raises(Rejected, match=r"after 1 case: fitness 70\.00 against 80\.00"):
        check_race(outcomes([30.0]), outcomes([20.0, 20.0]), FITNESS)
