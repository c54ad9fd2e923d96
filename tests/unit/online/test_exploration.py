import math

import pytest

from podium.online.exploration import EXPLOITATION, EXPLORATION, FORCED, ExplorationCap


def greedy(cap, decisions):
    """Explores whenever it may."""
    taken = []
    for _ in range(decisions):
        taken.append(cap.allows())
        cap.count(EXPLORATION if taken[-1] else EXPLOITATION)
    return taken


def test_the_cap_is_used_up_and_not_exceeded():
    taken = greedy(ExplorationCap(0.25, 100), 1000)
    assert sum(taken) == 250
    assert taken[:4] == [False, False, False, True]


@pytest.mark.parametrize(("share", "window", "expected"), [(0.29, 100, 29), (0.1, 30, 3)])
def test_a_share_that_binary_numbers_cannot_hold_is_used_in_full(share, window, expected):
    assert sum(greedy(ExplorationCap(share, window), window)) == expected


@pytest.mark.parametrize("share", [0.1, 0.25, 0.3, 0.4])
def test_decisions_that_did_not_explore_earn_no_burst_later(share):
    cap = ExplorationCap(share, 100)
    for _ in range(300):
        cap.count(EXPLOITATION)
    taken = greedy(cap, 200)
    for size in (10, 20, 50, 100):
        most = max(sum(taken[start : start + size]) for start in range(len(taken) - size))
        assert share * size - 1 <= most <= math.ceil(share * size)


def test_nothing_is_explored_under_a_cap_of_zero_and_all_under_one():
    assert not any(greedy(ExplorationCap(0.0, 10), 50))
    assert all(greedy(ExplorationCap(1.0, 10), 50))


def test_forced_decisions_are_counted_apart_and_earn_no_exploration():
    cap = ExplorationCap(0.25, 100)
    for _ in range(50):
        cap.count(FORCED)
    assert not cap.allows()
    assert cap.totals == {EXPLORATION: 0, EXPLOITATION: 0, FORCED: 50}
    assert cap.ratio == 0.0


def test_counters_read_back_as_they_were():
    one, other = ExplorationCap(0.3, 20), ExplorationCap(0.3, 20)
    greedy(one, 33)
    one.count(FORCED)
    other.restore(one.as_object())
    assert other.as_object() == one.as_object()
    assert greedy(other, 40) == greedy(one, 40)


def test_a_shorter_window_takes_over_the_last_decisions():
    one, other = ExplorationCap(0.5, 20), ExplorationCap(0.5, 4)
    greedy(one, 20)
    other.restore(one.as_object())
    assert other.ratio == 0.5
