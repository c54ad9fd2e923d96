from itertools import permutations

import pytest

from podium.online.priority import priority_score


def test_short_jobs_go_first_and_whoever_waits_moves_up():
    assert priority_score(10.0) > priority_score(1000.0)
    assert priority_score(1000.0, waited_s=1e5) > priority_score(10.0)
    assert priority_score(1000.0, weight=200.0) > priority_score(10.0)


@pytest.mark.parametrize("expected_s", [1e-6, 1.0, 1e10])
@pytest.mark.parametrize("waited_s", [0.0, 1e10])
@pytest.mark.parametrize("weight", [1e-9, 1.0, 1e15])
def test_a_priority_is_between_0_and_100(expected_s, waited_s, weight):
    assert 0.0 <= priority_score(expected_s, waited_s, weight) <= 100.0


def test_the_order_keeps_the_weighted_time_until_jobs_are_done_lowest():
    # Smith's rule: with two jobs, the one of more weight for its time goes first.
    jobs = [(30.0, 1.0), (100.0, 5.0), (20.0, 0.5), (400.0, 10.0)]

    def cost(order):
        done_s, total = 0.0, 0.0
        for expected_s, weight in order:
            done_s += expected_s
            total += weight * done_s
        return total

    ranked = sorted(jobs, key=lambda job: -priority_score(job[0], weight=job[1]))
    assert cost(ranked) == min(cost(order) for order in permutations(jobs))
