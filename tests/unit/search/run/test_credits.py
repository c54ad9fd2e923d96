from dataclasses import replace

from podium.search.run.credits import LEAST, MOST, OperatorCredits
from support.stored import bred, judged

FITNESS = {0: 90.0, 1: 92.0}


def row(number, operator, fitness, parents=(0,)):
    """Gives a bred candidate; without a fitness it was refused."""
    made = replace(bred(number), kind="bred", parents=parents, operators=(operator, "later"))
    return judged(made, fitness, accepted=fitness is not None)


def credited(*rows):
    credits = OperatorCredits()
    credits.end_batch(rows, FITNESS)
    return credits.weights()


def test_nobody_is_preferred_before_anything_has_helped():
    assert credited(row(2, "swap", 89.0), row(3, "grow", None)) == {}


def test_who_helps_is_used_more_often_and_who_never_does_less():
    rows = [row(i, "swap", 90.5) for i in range(10)] + [row(i, "grow", 80.0) for i in range(10, 50)]
    weights = credited(*rows)
    assert weights["swap"] > 1.5
    assert LEAST <= weights["grow"] < 0.6


def test_one_trial_says_little():
    rows = [row(i, "swap", 90.1) for i in range(40)] + [row(99, "grow", None)]
    assert 0.8 < credited(*rows)["grow"] < 1


def test_gains_are_over_the_best_parent_that_was_used():
    none = credited(row(2, "swap", 91.0, (0, 1)), row(3, "grow", 92.5, (0, 1)))
    assert none["swap"] < 1 < none["grow"]


def test_a_leap_from_a_bad_parent_counts_as_a_point():
    leap = [row(1, "swap", 90.0, ()), row(2, "swap", 99.0)]
    steps = [row(i, "grow", 91.0) for i in range(3, 5)]
    weights = credited(*leap, *steps)
    assert weights["grow"] > weights["swap"]
    assert max(weights.values()) <= MOST


def test_what_helped_long_ago_fades():
    credits = OperatorCredits()
    credits.end_batch([row(i, "swap", 91.0) for i in range(20)], FITNESS)
    credits.end_batch([row(i, "grow", 90.1) for i in range(20)], FITNESS)
    assert credits.weights()["swap"] > credits.weights()["grow"]
    for _ in range(200):
        credits.end_batch([row(0, "swap", 90.0), row(1, "grow", 90.2)], FITNESS)
    assert credits.weights()["swap"] < credits.weights()["grow"]


def test_reading_the_same_batches_again_gives_the_same_weights():
    batches = [
        [row(10 * b + i, "ab"[i % 2], 90.0 + i * b / 10) for i in range(6)] for b in range(9)
    ]
    one, other = OperatorCredits(), OperatorCredits()
    for batch in batches:
        one.end_batch(batch, FITNESS)
        other.end_batch(batch, FITNESS)
    assert one.weights() == other.weights()
