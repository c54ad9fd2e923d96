import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.service.extender.scale import foremost, scaled

HOLD = -np.inf
SCORES = st.lists(
    st.one_of(
        st.just(HOLD),
        st.integers(-3, 3).map(float),
        st.floats(allow_nan=False, allow_infinity=False),
    ),
    max_size=40,
).map(np.array)


@given(SCORES, st.sampled_from(["rank", "linear"]), st.sampled_from(["order", "equal"]))
def test_the_order_is_exactly_the_policys(scores, scale, ties):
    scores = scores.astype(float)
    points = scaled(scores, scale, ties)
    assert points.dtype == np.int64
    assert ((points >= 0) & (points <= 1000)).all()
    assert ((points == 0) == (scores == HOLD)).all()
    for i in range(len(scores)):
        for j in range(len(scores)):
            if scores[i] > scores[j]:
                assert points[i] >= points[j]
                assert scale == "linear" or points[i] > points[j]
            elif scores[i] == scores[j] and ties == "equal":
                assert points[i] == points[j]
            elif scores[i] == scores[j] > HOLD and i < j:
                assert points[i] >= points[j]
                assert scale == "linear" or points[i] > points[j]


@given(SCORES, st.sampled_from(["rank", "linear"]))
def test_the_best_node_is_alone_on_top_where_ties_have_an_order(scores, scale):
    points = scaled(scores.astype(float), scale, "order")
    accepted = scores > HOLD
    if accepted.any():
        assert (points == 1000).sum() == 1
        assert points.argmax() == np.where(accepted, scores, HOLD).argmax()


def test_ranks_count_down_from_the_best():
    assert scaled(np.array([5.0, 7.0, HOLD, 5.0])).tolist() == [999, 1000, 0, 998]
    assert scaled(np.array([5.0, 7.0, HOLD, 5.0]), ties="equal").tolist() == [999, 1000, 0, 999]


def test_all_from_the_thousandth_on_are_alike():
    points = scaled(np.arange(2000, 0, -1).astype(float))
    assert points[:1000].tolist() == list(range(1000, 0, -1))
    assert set(points[1000:].tolist()) == {1}


def test_proportions_stay_where_the_scale_is_linear():
    points = scaled(np.array([0.0, 50.0, 100.0]), "linear")
    assert points.tolist() == [1, 500, 1000]


@pytest.mark.parametrize("scale", ["rank", "linear"])
def test_a_policy_that_likes_all_alike_leaves_them_alike_or_takes_the_first(scale):
    alike = np.zeros(3)
    assert scaled(alike, scale, "equal").tolist() == [1000] * 3
    assert scaled(alike, scale, "order").argmax() == 0
    assert scaled(np.array([]), scale).tolist() == []


# Who may be left out of an answer.


@pytest.mark.parametrize("ties", ["order", "equal"])
@pytest.mark.parametrize("scale", ["rank", "linear"])
@pytest.mark.parametrize("seed", range(25))
def test_who_is_left_out_could_not_have_won(seed, scale, ties):
    """kube-scheduler adds ten times points and weight to what its own plugins give."""
    rng = np.random.default_rng(seed)
    nodes = int(rng.integers(1, 2000))
    scores = np.round(rng.random(nodes) * rng.choice([3, 40, 1e6]))
    scores[rng.random(nodes) < rng.random()] = -np.inf
    points = scaled(scores, scale, ties)
    answered = np.zeros_like(points)
    kept = foremost(points)
    answered[kept] = points[kept]
    for weight in (1, 2, 200):
        plugins = rng.choice([rng.integers(0, 1201, nodes), 1200 * rng.integers(0, 2, nodes)])
        whole, cut = (10 * weight * each + plugins for each in (points, answered))
        assert np.flatnonzero(whole == whole.max()).tolist() == (
            np.flatnonzero(cut == cut.max()).tolist()
        )


def test_equal_nodes_are_named_however_many_they_are():
    points = scaled(np.array([10.0] * 100 + [9.0] * 100 + [8.0] * 200), "rank", "equal")
    assert len(foremost(points)) == 400


def test_of_many_nodes_in_order_the_foremost_are_named():
    assert len(foremost(scaled(np.arange(1500.0)))) == 128
