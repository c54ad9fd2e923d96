import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.service.extender.scale import named, scaled

HOLD = -np.inf
SCORES = st.lists(
    st.one_of(
        st.just(HOLD),
        st.integers(-3, 3).map(float),
        st.floats(allow_nan=False, allow_infinity=False),
    ),
    max_size=40,
).map(np.array)


@given(SCORES, st.sampled_from(["order", "equal"]))
def test_the_order_is_exactly_the_policys(scores, ties):
    scores = scores.astype(float)
    points = scaled(scores, ties)
    assert points.dtype == np.int64
    assert ((points >= 0) & (points <= 1000)).all()
    assert ((points == 0) == (scores == HOLD)).all()
    for i in range(len(scores)):
        for j in range(len(scores)):
            if scores[i] > scores[j]:
                assert points[i] > points[j]
            elif scores[i] == scores[j] and ties == "equal":
                assert points[i] == points[j]
            elif scores[i] == scores[j] > HOLD and i < j:
                assert points[i] > points[j]


@given(SCORES, st.randoms(use_true_random=False))
def test_where_nodes_stand_changes_no_points(scores, random):
    scores = scores.astype(float)
    order = list(range(len(scores)))
    random.shuffle(order)
    assert scaled(scores[order]).tolist() == scaled(scores)[order].tolist()


def test_ranks_count_down_from_the_best():
    assert scaled(np.array([5.0, 7.0, HOLD, 5.0])).tolist() == [999, 1000, 0, 999]
    assert scaled(np.array([5.0, 7.0, HOLD, 5.0]), "order").tolist() == [999, 1000, 0, 998]


def test_all_from_the_thousandth_on_are_alike():
    points = scaled(np.arange(2000, 0, -1).astype(float))
    assert points[:1000].tolist() == list(range(1000, 0, -1))
    assert set(points[1000:].tolist()) == {1}


def test_a_policy_that_likes_all_alike_leaves_them_alike_or_takes_the_first():
    alike = np.zeros(3)
    assert scaled(alike).tolist() == [1000] * 3
    assert scaled(alike, "order").argmax() == 0
    assert scaled(np.array([])).tolist() == []


# Who may be left out of an answer.


@pytest.mark.parametrize("weight", [1, 2, 25, 200])
@pytest.mark.parametrize("ties", ["order", "equal"])
@pytest.mark.parametrize("seed", range(10))
def test_who_is_left_out_could_not_have_won(seed, ties, weight):
    """kube-scheduler adds ten times points and weight to what its own plugins give."""
    rng = np.random.default_rng(seed)
    nodes = int(rng.integers(1, 2000))
    scores = np.round(rng.random(nodes) * rng.choice([3, 40, 1e6]))
    scores[rng.random(nodes) < rng.random()] = -np.inf
    points = scaled(scores, ties)
    most = int(rng.choice([200, 1200]))  # that other plugins give together
    answered = np.zeros_like(points)
    kept = named(points, most // (10 * weight) + 1)
    answered[kept] = points[kept]
    plugins = rng.choice([rng.integers(0, most + 1, nodes), most * rng.integers(0, 2, nodes)])
    whole, cut = (10 * weight * each + plugins for each in (points, answered))
    assert np.flatnonzero(whole == whole.max()).tolist() == (
        np.flatnonzero(cut == cut.max()).tolist()
    )


def test_only_the_best_are_named_where_nothing_else_can_win():
    points = scaled(np.array([10.0] * 100 + [9.0] * 100 + [8.0] * 200))
    assert named(points, 1).tolist() == list(range(100))
    assert len(named(points, 128)) == 400


def test_nobody_is_named_where_all_are_alike():
    assert named(np.full(50, 1000), 128).tolist() == []
    assert named(np.zeros(0, np.int64), 128).tolist() == []


def test_all_with_points_are_named_where_preferences_count():
    assert named(scaled(np.array([3.0, HOLD, 1.0])), 1000).tolist() == [0, 2]
