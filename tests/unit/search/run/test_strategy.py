import numpy as np
import pytest

from podium.search.run.strategy import CmaEs


def found(optimum, generations, seed=(1,), points=8, stretch=1.0):
    """Minimises the distance from an optimum, some axes longer than others."""
    strategy = CmaEs([0.5] * len(optimum), 0.25, points, seed)
    axes = stretch ** np.arange(len(optimum))
    best, least = None, np.inf
    for _ in range(generations):
        asked = strategy.ask()
        assert all(((each >= 0) & (each <= 1)).all() for each in asked)
        losses = [float((((each - optimum) * axes) ** 2).sum()) for each in asked]
        strategy.tell(asked, losses)
        if min(losses) < least:
            least, best = min(losses), asked[int(np.argmin(losses))]
    return best, strategy


@pytest.mark.parametrize("optimum", [[0.3], [0.1, 0.9], [0.0, 1.0, 0.5], [0.2, 0.4, 0.6, 0.8, 0.1]])
def test_a_planted_optimum_is_found_even_on_the_bounds(optimum):
    best, _ = found(np.array(optimum), 60)
    assert best == pytest.approx(np.array(optimum), abs=0.02)


def test_axes_of_different_lengths_are_learnt():
    best, _ = found(np.array([0.3, 0.7, 0.4]), 150, stretch=30.0)
    assert best == pytest.approx(np.array([0.3, 0.7, 0.4]), abs=0.05)


def test_the_same_seed_draws_the_same_points_and_nobody_elses_numbers():
    np.random.seed(3)  # noqa: NPY002 - it must stay as it is
    before = np.random.get_state()[1].tolist()  # noqa: NPY002
    one, other, third = (found(np.array([0.2, 0.8]), 5, (seed,))[0] for seed in (4, 4, 5))
    assert one.tolist() == other.tolist() != third.tolist()
    assert np.random.get_state()[1].tolist() == before  # noqa: NPY002


def test_a_strategy_that_stands_still_is_done():
    _, strategy = found(np.array([0.5, 0.5]), 3)
    assert not strategy.is_done
    _, strategy = found(np.array([0.5, 0.5]), 120)
    assert strategy.is_done


def test_only_the_order_of_losses_counts():
    strategies = [CmaEs([0.5, 0.5], 0.25, 8, (9,)) for _ in range(2)]
    for _ in range(4):
        first, second = (each.ask() for each in strategies)
        losses = [float(each.sum()) for each in first]
        strategies[0].tell(first, losses)
        strategies[1].tell(second, [1e6 * each**3 for each in losses])
    assert np.array(strategies[0].ask()).tolist() == np.array(strategies[1].ask()).tolist()
