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


def test_differences_beyond_the_third_digit_are_noise():
    assert member(1, 50.00011, complexity=9).key() < member(2, 50.00009, complexity=8).key()


def test_without_emphasis_the_worth_is_the_fitness():
    assert member(1, 47.5, case_scores=(1.0, 2.0, 3.0, 4.0)).worth() == 47.5


def test_half_of_the_worth_comes_from_the_emphasised_cases():
    one = member(1, 40.0, case_scores=(10.0, 30.0, 60.0, 60.0))
    assert one.worth((1.0, 1.0, 0.0, 0.0)) == pytest.approx((40 + 20) / 2)


def test_an_emphasis_of_other_cases_is_a_mistake():
    with pytest.raises(ValueError, match="longer"):
        member(1).worth((1.0,))
