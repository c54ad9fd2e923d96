"""The three steps of the MLP learner: each improves what it is for, and is resumed exactly."""

from dataclasses import replace

import jax
import numpy as np
import pytest

from podium.errors import InputError, MissingError, MissingExtra
from podium.policies import load
from podium.policies.networks.mlp import mlp_policy
from podium.rl.configuration import create_config
from podium.rl.mlp import algorithm
from podium.rl.mlp.algorithm import make_judge, make_learner
from podium.rl.mlp.descent import descent, policy_loss, ranking_loss
from podium.rl.mlp.gradient import draw
from podium.rl.mlp.imitation import record
from podium.rl.mlp.parameters import first_arrays, flat
from podium.rl.mlp.trials import AT_130, Trials, inflation_case

UNITS = 8


def configuration(**evolution):
    return create_config(
        "mlp",
        network={"hidden_units": UNITS},
        imitation={"iterations": 2, "steps": 20, "batch": 16, "nodes": 12, "seeds": 1},
        gradient={"iterations": 2, "nodes": 6, "environments": 4, "batch": 64},
        evolution={
            "population": 4, "nodes": [8, 12], "generations": [2], "seeds": 3, "workers": 1,
            **evolution,
        },
        validation={"nodes": 12, "seeds": 1},
    )  # fmt: skip


def test_imitation_learns_to_take_what_the_teacher_takes():
    rng = np.random.default_rng(1)
    net = first_arrays(UNITS, rng)
    cases = [inflation_case("openb-share-heavy", 16, 1000)]
    decisions = record(load("best-fit"), cases, net, 1, rng)
    adam, moved = descent(0.01), net
    state = adam.begun(net)
    losses = []
    for _ in range(3):
        rows = rng.integers(0, len(decisions.seen), (100, 32))
        moved, state, loss = adam.step(
            ranking_loss, moved, state, decisions.seen[rows], decisions.mask[rows]
        )
        losses.append(loss)
    assert losses[2] < losses[1] < losses[0]
    assert losses[2] < 0.5 * np.log(decisions.mask.sum(axis=1)).mean()  # half of guessing


def test_a_net_can_imitate_a_policy_that_names_the_gpu():
    rng = np.random.default_rng(1)
    net = first_arrays(UNITS, rng)
    decisions = record(load("fgd"), [inflation_case("openb-share-only", 8, 1000)], net, 1, rng)
    assert decisions.mask[:, :2].all()  # what was taken, and another place


def test_policy_gradient_improves_what_runs_come_to():
    rng = np.random.default_rng(3)
    net = first_arrays(UNITS, rng)
    trials = Trials(UNITS, 1)
    unseen = [inflation_case("openb-multi-gpu", 8, 1800 + i) for i in range(12)]
    before = trials.run([flat(net)], unseen)[0, :, AT_130].mean()
    adam = descent(0.01)
    state = adam.begun(net)
    for i in range(20):
        drawn = draw(net, [inflation_case("openb-multi-gpu", 8, 1000 + i)], 12, rng)
        rows = np.resize(rng.permutation(len(drawn)), (2, 256))
        moved, state, _ = adam.step(
            policy_loss, net, state, drawn.seen[rows], drawn.mask[rows], drawn.taken[rows],
            drawn.advantage[rows],
        )  # fmt: skip
        net.update(moved)
    after = trials.run([flat(net)], unseen)[0, :, AT_130].mean()
    assert after > before + 1.0


def test_advantages_compare_runs_of_one_plan():
    rng = np.random.default_rng(3)
    drawn = draw(first_arrays(UNITS, rng), [inflation_case("openb", 6, 1000)], 6, rng)
    assert drawn.mask[np.arange(len(drawn)), drawn.taken].all()
    assert len(np.unique(drawn.advantage)) > 1
    assert 0 < drawn.allocation <= 100


@pytest.fixture(scope="module")
def states():
    """Runs a learner through all three steps; returns its state before each iteration."""
    learner = make_learner(configuration(), 7, "cpu")
    found = [copied(learner.state())]
    for _ in range(6):
        learner.iterate()
        found.append(copied(learner.state()))
    return found


def copied(state):
    return {name: np.array(each) for name, each in state.items()}


@pytest.mark.parametrize("iteration", [1, 3, 5])  # of imitation, of the gradient, of evolution
def test_a_learner_that_is_resumed_goes_on_as_if_nothing_had_happened(states, iteration):
    resumed = make_learner(configuration(), 7, "cpu")
    resumed.restore(states[iteration])
    resumed.iterate()
    found, expected = resumed.state(), states[iteration + 1]
    assert found.keys() == expected.keys()
    for name, each in expected.items():
        assert np.array_equal(found[name], each), name


@pytest.mark.parametrize(
    ("iteration", "name", "wrong"),
    [
        (1, "iteration", np.array([-1])),
        (1, "average", np.zeros(3)),
        (1, "net/bias", np.zeros(3)),
        (1, "optimiser/01", np.zeros(3, np.float32)),
        (5, "distribution/mean", np.zeros(3)),
        (5, "distribution/sigma", np.array([np.nan])),
        (5, "distribution/generation", np.array([0.5])),
    ],
)
def test_a_state_that_no_learner_returned_is_not_taken_up(states, iteration, name, wrong):
    assert name in states[iteration]
    learner = make_learner(configuration(), 7, "cpu")
    with pytest.raises(InputError):
        learner.restore({**states[iteration], name: wrong})


@pytest.mark.deep
def test_the_number_of_processes_changes_nothing():
    found = []
    for workers in (1, 2):
        own = configuration(workers=workers)
        alone = replace(
            own,
            imitation=replace(own.imitation, iterations=0),
            gradient=replace(own.gradient, iterations=0),
        )
        learner = make_learner(alone, 7, "cpu")
        for _ in range(3):
            learner.iterate()
        found.append(flat(learner.trained().arrays))
        learner.close()
    assert np.array_equal(*found)


def test_what_was_trained_is_judged_on_validation_seeds_and_places_what_fits():
    learner = make_learner(configuration(), 7, "cpu")
    learner.iterate()
    trained = learner.trained()
    assert trained.network == "mlp"
    figures = make_judge(configuration())(trained)
    assert {"score", "gpu_allocation", "gain", "least_gain_100"} <= figures.keys()
    assert not mlp_policy("mlp", trained.arrays).may_hold


def test_a_device_that_is_not_there_is_named():
    if any(each.platform == "gpu" for each in jax.devices()):
        pytest.skip("this machine has a GPU")
    with pytest.raises(MissingError, match="JAX finds no gpu"):
        descent(0.5, "gpu")


def test_without_jax_the_extra_is_named_and_evolution_goes_on(monkeypatch):
    monkeypatch.setattr(algorithm, "find_spec", lambda _name: None)
    own = configuration()
    with pytest.raises(MissingExtra, match="needs the extra 'rl'"):
        make_learner(own, 7, "cpu")
    alone = replace(
        own,
        imitation=replace(own.imitation, iterations=0),
        gradient=replace(own.gradient, iterations=0),
    )
    assert make_learner(alone, 7, "cpu").trained().network == "mlp"
