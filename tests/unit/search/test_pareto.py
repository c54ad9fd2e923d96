import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.search.pareto import SENSES, best_per_complexity, front

NUMBERS = st.integers(-3, 3)
POINTS = st.lists(st.tuples(NUMBERS, NUMBERS, NUMBERS), max_size=12)
SIGNS = (1, -1, 1)


def beats(one, other):
    gains = [s * (a - b) for s, a, b in zip(SIGNS, one, other, strict=True)]
    return min(gains) >= 0 and max(gains) > 0


@given(POINTS)
def test_a_point_is_on_the_front_when_no_other_beats_it(points):
    expected = [i for i, p in enumerate(points) if not any(beats(q, p) for q in points)]
    assert front(points, SIGNS) == expected


@given(POINTS)
def test_what_is_not_on_the_front_is_beaten_by_something_that_is(points):
    kept = front(points, SIGNS)
    for index, point in enumerate(points):
        assert index in kept or any(beats(points[other], point) for other in kept)


def test_equal_points_stay_together():
    assert front([(1, 2), (1, 2), (0, 2)], (1, 1)) == [0, 1]


def test_a_front_over_all_figures_keeps_each_best():
    names = ("allocation_130", "allocation_100", "fragmentation", "wait_mean_s", "complexity")
    best_at_130, best_at_100, short = (97, 84, 8, 50, 40), (95, 94, 8, 50, 40), (94, 93, 9, 60, 3)
    worse = (94, 83, 9, 60, 41)
    senses = [SENSES[name] for name in names]
    assert front([best_at_130, best_at_100, short, worse], senses) == [0, 1, 2]


def test_the_front_of_many_points_is_that_of_few_that_span_it():
    rng = np.random.default_rng(1)
    best = np.array([[9.0, 1.0], [5.0, 5.0], [1.0, 9.0]])
    beaten = best[rng.integers(3, size=20_000)] - rng.random((20_000, 2)) - 0.01
    assert front(np.concatenate([beaten, best]), (1, 1)) == [20_000, 20_001, 20_002]


def test_a_point_that_lacks_a_figure_is_an_error():
    with pytest.raises(ValueError, match="shape"):
        front([(1, 2), (1,)], (1, 1))


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(1, 5)), max_size=12))
def test_each_size_is_better_than_all_that_are_smaller(rows):
    fitness, complexity = [row[0] for row in rows], [row[1] for row in rows]
    found = best_per_complexity(fitness, complexity)
    sizes, values = [complexity[i] for i in found], [fitness[i] for i in found]
    assert sizes == sorted(set(sizes))
    assert values == sorted(set(values))
    for value, count in rows:
        assert any(fitness[i] >= value and complexity[i] <= count for i in found)
