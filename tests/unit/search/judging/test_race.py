from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.evaluation.cases import Case, Stage, TrainingSet
from podium.search.candidate.verdict import Rejected
from podium.search.judging.fitness import Outcome, fitness_named
from podium.search.judging.judge import Judge
from podium.search.judging.race import RACE_MARGIN, Bar, Race, Rivals, check_race, hopeful
from podium.search.population import Member
from podium.search.run.records import judged
from podium.search.sandbox.limits import Limits
from podium.store import CandidateRecord
from support.hostile import GOOD

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


def test_who_does_not_take_a_bar_is_stopped_exactly_there():
    race = Race((), (Bar(2, 81.0),))
    assert race.cases == 2
    race.check(outcomes([40.0]), FITNESS)
    race.check(outcomes([19.0, 19.0]), FITNESS)
    with pytest.raises(Rejected, match=r"after 2 cases: fitness 80\.00, and 81\.00 is needed"):
        race.check(outcomes([20.0, 20.0]), FITNESS)
    race.check(outcomes([20.0, 20.0, 20.0]), FITNESS)
    assert race.is_stopped(outcomes([20.0, 20.0]), FITNESS)
    assert not race.is_stopped(outcomes([19.0, 19.0]), FITNESS)
    assert not race.is_stopped(outcomes([20.0]), FITNESS)
    assert Race.from_object(race.as_object()) == race


def test_a_candidate_that_is_stopped_between_stages_is_accepted_as_far_as_it_came():
    cases = tuple(Case(nodes=6, pods=60, seed=1000 + i) for i in range(3))
    staged = TrainingSet(cases, stages=(Stage(0, 1, 0.5), Stage(1, 3)))
    limits = Limits(time_s=60.0, trial_s=30.0)
    with Judge(staged, "inflation", 1, limits) as judge:
        whole = judge.judge(GOOD, rivals=Rivals(bars=(Bar(1, 1.0),)))
        stopped = judge.judge(GOOD, rivals=Rivals(bars=(Bar(1, 100.0),)))
    assert whole.verdict.accepted
    assert len(whole.scores["stages"]) == 2
    assert whole.scores["stages"][-1] == whole.scores["fitness"]
    assert (stopped.verdict.accepted, stopped.verdict.gate) == (True, "race")
    assert "100.00 is needed" in stopped.verdict.reason
    assert "fitness" not in stopped.scores
    assert stopped.scores["stages"] == whole.scores["stages"][:1]
    assert stopped.cases == whole.cases[:1]
    row = judged(CandidateRecord("run", 1), replace(stopped, number=1, text=GOOD))
    assert (row.accepted, row.fitness, len(row.scores["by_case"])) == (True, None, 1)
    member = Member.of(row)
    assert (member.is_whole, member.fitness) == (False, stopped.scores["stages"][0])


def test_who_was_run_on_all_cases_is_judged_by_the_last_stage_where_that_counts():
    cases = tuple(Case(nodes=6, pods=60, seed=1000 + i) for i in range(3))
    stages = (Stage(0, 1, 0.5), Stage(1, 3))
    limits = Limits(time_s=60.0, trial_s=30.0)
    staged = TrainingSet(cases, stages=stages, is_judged_last=True)
    last = TrainingSet(cases[1:])
    with Judge(staged, "inflation", 1, limits) as judge, Judge(last, "inflation", 1, limits) as own:
        found, alone = judge.judge(GOOD), own.judge(GOOD)
    assert len(found.cases) == len(found.scores["cases"]) == 3
    for key in ("fitness", "inflation", "mean", "fgd"):
        assert found.scores[key] == alone.scores[key]
