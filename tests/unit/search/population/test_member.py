import pytest

from support.members import member


def test_the_fitter_is_greater_then_the_simpler_then_the_earlier():
    best = member(4, 51.0, complexity=30)
    simpler, earlier, later = (
        member(9, 50.0, complexity=5),
        member(1, 50.0, complexity=9),
        member(2, 50.0, complexity=9),
    )
    found = sorted([later, best, earlier, simpler], key=lambda each: each.key(), reverse=True)
    assert found == [best, simpler, earlier, later]


def test_differences_below_a_step_are_noise_unless_the_size_is_the_same():
    assert member(1, 50.008, complexity=9).key() < member(2, 50.001, complexity=8).key()
    assert member(1, 50.031, complexity=9).key() > member(2, 50.001, complexity=8).key()
    assert member(1, 50.001, complexity=9).key() < member(2, 50.008, complexity=9).key()


def test_without_emphasis_the_worth_is_the_fitness():
    assert member(1, 47.5, case_scores=(1.0, 2.0, 3.0, 4.0)).worth() == 47.5


def test_half_of_the_worth_comes_from_the_emphasised_cases():
    one = member(1, 40.0, case_scores=(10.0, 30.0, 60.0, 60.0))
    assert one.worth((1.0, 1.0, 0.0, 0.0)) == pytest.approx((40 + 20) / 2)


def test_the_worth_of_who_was_stopped_is_that_of_its_own_cases():
    one = member(1, 40.0, case_scores=(30.0,), is_whole=False)
    assert one.worth((1.0, 0.0)) == pytest.approx(35.0)
    assert one.worth((0.0, 1.0)) == 40.0  # it never came to what is emphasised


def test_who_was_stopped_ranks_below_who_went_on():
    stopped = member(1, 95.0, case_scores=(95.0,), is_whole=False)
    assert stopped.key() < member(2, 40.0).key()
