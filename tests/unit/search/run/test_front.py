import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.search.run.front import SENSES, best_per_complexity, front, fronts_of
from support.stored import bred, judged

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


def candidate(number, at_130, at_100, parts, fragmented=8.0, **changes):
    mean = {"allocation_130": at_130, "allocation_100": at_100, "fragmentation": fragmented}
    facts = {"may_hold": False, "scores": {"mean": mean}, "complexity": parts, **changes}
    return judged(bred(number), at_130, **facts)


RECORDS = [
    candidate(0, 94.0, 93.0, 3),
    candidate(1, 96.0, 95.0, 40),
    candidate(2, 95.9, 94.0, 41),  # beaten by 1
    candidate(3, 95.0, 95.5, 40),
    candidate(4, 95.0, 95.5, 40),  # as 3
    candidate(5, 99.0, 85.0, 90, may_hold=True),
    candidate(6, 97.0, 93.0, 50, may_hold=True),
    candidate(7, 96.5, 92.0, 60, may_hold=True),  # beaten by 6
    judged(bred(8), None, accepted=False, scores={}),
    bred(9),
]


def numbers(records):
    return [each.number for each in records]


@pytest.fixture
def fronts():
    return fronts_of(RECORDS)


def test_the_front_holds_what_no_other_beats_the_fittest_first(fronts):
    assert numbers(fronts[0].records) == [1, 3, 0]


def test_policies_that_may_hold_pods_have_a_front_of_their_own(fronts):
    assert [each.may_hold for each in fronts] == [False, True]
    assert numbers(fronts[1].records) == [5, 6]


def test_the_order_of_the_records_changes_nothing_but_which_twin_is_first():
    turned = fronts_of(RECORDS[::-1])
    assert [numbers(each.records) for each in turned] == [[1, 4, 0], [5, 6]]


def test_each_size_has_its_best_where_larger_is_better(fronts):
    assert numbers(fronts[0].by_complexity) == [0, 1]
    assert numbers(fronts[1].by_complexity) == [6, 5]


def test_a_short_list_begins_with_the_best_in_each_figure(fronts):
    # 1 leads at 130 %, 3 at 100 %, all in fragmentation, and 0 in size.
    assert numbers(fronts[0].shortened(2)) == [1, 3]
    assert numbers(fronts[0].shortened(3)) == [1, 3, 0]


def test_waits_count_where_they_are_measured():
    waits = [(50.0, 900.0, 8.0, 9), (60.0, 800.0, 8.0, 9), (61.0, 800.0, 8.0, 9)]
    keys = ("wait_mean_s", "wait_p95_s", "fragmentation_arriving")
    records = [
        judged(
            bred(i),
            50.0,
            complexity=row[-1],
            scores={"mean": dict(zip(keys, row[:3], strict=True)) | {"queue_busy": i}},
        )
        for i, row in enumerate(waits)
    ]
    (found,) = fronts_of(records)
    assert found.names == (*keys, "complexity")
    assert numbers(found.records) == [0, 1]


def test_a_run_in_which_nothing_was_accepted_has_no_front():
    assert fronts_of(RECORDS[8:]) == []


def test_a_front_as_data_has_its_figures(fronts):
    told = fronts[0].as_object()
    assert told["figures"] == ["allocation_130", "allocation_100", "fragmentation", "complexity"]
    assert told["candidates"][0] == {
        "number": 1,
        "fitness": 96.0,
        "allocation_130": 96.0,
        "allocation_100": 95.0,
        "fragmentation": 8.0,
        "complexity": 40.0,
        "source": "",
        "kind": "bred",
    }
    assert [each["number"] for each in told["best_per_complexity"]] == [0, 1]
