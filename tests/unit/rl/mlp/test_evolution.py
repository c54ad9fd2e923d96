"""Evolution: the distribution moves to what is worth more, and goes on as if never interrupted."""

import numpy as np

from podium.rl.mlp.evolution import Distribution

TARGET = np.linspace(-1, 2, 12)
SCALES = np.geomspace(0.1, 1, 12)


def generation(before, rng):
    drawn = before.drawn(rng, 16)
    return before.moved(drawn, -np.square((drawn - TARGET) / SCALES).sum(axis=1))


def test_the_middle_moves_to_the_best_weights():
    rng, found = np.random.default_rng(1), Distribution.around(np.zeros(12), SCALES, 0.5)
    for _ in range(150):
        found = generation(found, rng)
    assert np.abs((found.mean - TARGET) / SCALES).max() < 0.02
    assert found.sigma < 0.5
    assert found.generation == 150


def test_a_distribution_that_was_written_goes_on_alike():
    rng, found = np.random.default_rng(1), Distribution.around(np.zeros(12), SCALES, 0.5)
    for _ in range(5):
        found = generation(found, rng)
    again = Distribution.from_arrays(found.as_arrays())
    draws = np.random.default_rng(2), np.random.default_rng(2)
    one, other = generation(found, draws[0]), generation(again, draws[1])
    for name, each in one.as_arrays().items():
        assert np.array_equal(each, other.as_arrays()[name]), name


def test_nothing_is_read_where_nothing_was_written():
    assert Distribution.from_arrays({}) is None


def test_a_wider_distribution_stays_where_it_is():
    found = generation(Distribution.around(np.zeros(12), SCALES, 0.5), np.random.default_rng(1))
    wider = found.widened(2.0)
    assert np.array_equal(wider.mean, found.mean)
    assert wider.sigma == 2.0
    assert not wider.sigma_path.any()
