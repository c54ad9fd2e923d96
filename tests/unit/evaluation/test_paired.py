import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podium.evaluation import paired as resampling
from podium.evaluation.paired import holm

ANY_SEED = 20_230


def interval(values, level=0.95):
    return resampling.interval(values, np.random.default_rng(ANY_SEED), level)


def sign_flip_p(differences):
    return resampling.sign_flip_p(differences, np.random.default_rng(ANY_SEED))


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
    monkeypatch.setattr(resampling, "EXACT_PAIRS", 0)
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


def test_a_higher_level_gives_a_wider_interval():
    values = np.random.default_rng(5).normal(size=20)
    low, high = interval(values)
    wide_low, wide_high = interval(values, level=0.99)
    assert wide_low < low < high < wide_high


@pytest.mark.parametrize(
    ("p_values", "corrected"),
    [
        ([], ()),
        ([0.03], (0.03,)),
        ([0.01, 0.04, 0.03, 0.005], (0.03, 0.06, 0.06, 0.02)),
        ([0.6, 0.7], (1.0, 1.0)),
    ],
)
def test_corrected_p_values_are_those_worked_out_by_hand(p_values, corrected):
    assert holm(p_values) == pytest.approx(corrected)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=9))
def test_correction_raises_p_values_and_keeps_their_order(p_values):
    corrected = holm(p_values)
    assert all(p <= q <= 1 for p, q in zip(p_values, corrected, strict=True))
    pairs = sorted(zip(p_values, corrected, strict=True))
    assert [q for _, q in pairs] == sorted(corrected)


def test_with_correction_luck_among_many_is_rarely_taken_for_a_gain():
    random = np.random.default_rng(3)
    lucky = 0
    for _ in range(200):
        p_values = [sign_flip_p(sample) for sample in random.normal(size=(8, 10))]
        lucky += min(holm(p_values)) < 0.05
    assert lucky / 200 <= 0.09
    assert lucky > 0
