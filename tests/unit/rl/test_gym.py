"""Offers environments to Gymnasium as other people's trainers expect them."""

import subprocess
import sys

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import podium.rl
from podium.errors import UnknownName, UsageError

NAME = "podium/Placement-v0"
SMALL = {"nodes": 4, "seeds": range(1000, 1008)}


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"protocol": "inflation", "reward": "fragmentation"},
        {"protocol": "replay", "pods": 40, "look_ahead": 0},
        {"max_steps": 5, "reward": {"waiting": 1.0, "balance": 0.5}},
    ],
)
def test_gymnasium_finds_nothing_wrong(settings):
    check_env(gymnasium.make(NAME, **SMALL, **settings).unwrapped)


def test_a_mask_says_what_is_allowed():
    environment = gymnasium.make(NAME, **SMALL)
    _, told = environment.reset(seed=1000)
    for _ in range(300):
        shown, _, is_over, _, told = environment.step(int(told["action_mask"].argmax()))
        if is_over:
            assert not shown["nodes"].any()
            assert not told["action_mask"].any()
            assert 0 < told["gpu_allocation"] <= 1
            _, told = environment.reset()
        assert told["action_mask"].any()


def test_episodes_go_through_the_seeds_of_the_world():
    environment = gymnasium.make(NAME, **SMALL)
    found = [environment.reset(seed=1006)[1]["seed"]]
    for _ in range(3):
        environment.step(0)
        found.append(environment.reset()[1]["seed"])
    assert found == [1006, 1007, 1000, 1001]
    assert environment.reset()[1]["seed"] == 1001  # nothing of it was played yet


def test_a_vector_of_environments_tells_how_episodes_ended():
    vector = gymnasium.make_vec(NAME, num_envs=4, **SMALL)
    shown, told = vector.reset(seed=1000)
    assert vector.observation_space.contains(shown)
    assert told["action_mask"].shape == (4, 5)
    kept = shown["nodes"].copy()
    ended = 0
    for _ in range(200):
        after, reward, is_over, is_cut, told = vector.step(told["action_mask"].argmax(axis=1))
        assert reward.shape == is_over.shape == (4,)
        assert not is_cut.any()
        ended += is_over.sum()
        if is_over.any():
            np.testing.assert_array_equal(told["_final_obs"], is_over)
            assert told["final_info"]["gpu_allocation"][is_over].min() > 0
            assert (
                told["final_obs"][np.flatnonzero(is_over)[0]]["pods"].shape
                == shown["pods"][0].shape
            )
        assert vector.observation_space.contains(after)
    assert ended > 4
    np.testing.assert_array_equal(shown["nodes"], kept)


def test_a_vector_begins_the_next_episodes_when_it_is_reset():
    vector = gymnasium.make_vec(NAME, num_envs=2, **SMALL)
    vector.reset(seed=1000)
    vector.step(vector.action_space.sample())
    vector.reset()
    native = vector.placement
    assert [native.plan(i).seed for i in range(2)] == [1002, 1003]


def test_a_vector_and_one_environment_play_alike():
    vector = gymnasium.make_vec(NAME, num_envs=1, **SMALL)
    single = gymnasium.make(NAME, **SMALL)
    (shown, told), (alone, own) = vector.reset(seed=1000), single.reset(seed=1000)
    random = np.random.default_rng(0)
    for _ in range(60):
        for name in alone:
            np.testing.assert_array_equal(shown[name][0], alone[name])
        action = int(random.choice(np.flatnonzero(own["action_mask"])))
        shown, _, is_over, _, told = vector.step(np.array([action]))
        alone, _, is_own_over, _, own = single.step(action)
        assert is_over[0] == is_own_over
        if is_own_over:
            alone, own = single.reset()
        np.testing.assert_array_equal(told["action_mask"][0], own["action_mask"])


@pytest.mark.parametrize("action", [99, -1, 2.5, np.nan])
def test_an_action_that_is_none_is_told(action):
    one = gymnasium.make("podium/Placement-v0", nodes=4).unwrapped
    many = gymnasium.make_vec("podium/Placement-v0", num_envs=2, nodes=4).unwrapped
    for environment, given in ((one, action), (many, np.array([0, action]))):
        environment.reset(seed=1000)
        with pytest.raises(UsageError, match=r"^argument action: action") as caught:
            environment.step(given)
        assert "whole number" in caught.value.hint


def test_settings_beside_a_world_and_unknown_ones_are_told():
    world = podium.rl.World.of_trace("openb", nodes=4)
    with pytest.raises(UsageError, match="nodes beside a world"):
        gymnasium.make("podium/Placement-v0", world=world, nodes=8)
    with pytest.raises(UnknownName, match='unknown setting of a world "node"'):
        gymnasium.make("podium/Placement-v0", node=8)


def test_an_unknown_protocol_is_told():
    with pytest.raises(UnknownName, match='unknown protocol "round"'):
        gymnasium.make(NAME, protocol="round")


WITHOUT = """
import sys
sys.modules["gymnasium"] = None
import podium.rl
assert podium.rl.Placement
try:
    podium.rl.PlacementEnv
except Exception as error:
    print(type(error).__name__, error, error.hint)
"""


def test_without_gymnasium_environments_work_and_the_install_line_is_told():
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("MissingExtra an environment of Gymnasium needs the extra 'rl'")
    assert "install" in done.stdout


def test_names_are_listed_before_they_are_imported():
    assert {"Placement", "World", "REWARDS", "PlacementEnv"} <= set(dir(podium.rl))
    with pytest.raises(AttributeError):
        podium.rl.Nothing  # noqa: B018
