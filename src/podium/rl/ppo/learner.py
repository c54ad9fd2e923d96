"""Learns by PPO: plays episodes in the environment, and improves the network by what came of it.

Every iteration begins new episodes, drawn by its own number. So the state of a training is the
network, the optimiser and a counter, and a resumed one goes on to the bit.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import numpy as np
import numpy.typing as npt

from podium.policies.networks.features import CONTEXT_NAMES
from podium.rl.configuration import Device
from podium.rl.device import device_named
from podium.rl.environment.placement import Placement
from podium.rl.environment.world import World
from podium.rl.learner import Arrays, Trained, count_of, like
from podium.rl.ppo.algorithm import Configuration, card_facts
from podium.rl.ppo.imitation import lessons_of
from podium.rl.ppo.network import CRITIC, Observations, first_parameters
from podium.rl.ppo.update import (
    Batch,
    Learned,
    Rules,
    Scales,
    act,
    begun,
    imitate,
    update,
    values_of,
)

ROUNDS_LEFT = CONTEXT_NAMES.index("rounds_left")
EPISODES = 3
"""An iteration begins so many episodes of each environment after the one before it."""

FALL = 0.1
"""What the learning rate and the entropy fall to, as a share of the first."""

_WEIGHT, _MOMENT = "weight/", "moment/"


class PpoLearner:
    """Is a learner of `podium.rl.training`."""

    def __init__(
        self, configuration: Configuration, world: World, seed: int, device: Device
    ) -> None:
        self._configuration, self._world, self._seed = configuration, world, seed
        self._device = device_named(device)
        rules = configuration.environment
        self._environment = Placement(
            world, rules.environments, look_ahead=rules.look_ahead, seed=world.seeds[0]
        )
        self._rules = rules_of(configuration)
        self._iterations = 0
        self._is_warm = False
        self._learned = self._begun()
        self._buffers = self._allocated()

    def iterate(self) -> Mapping[str, float]:
        """Plays, learns, and returns the figures of both."""
        with jax.default_device(self._device):
            if not self._is_warm:
                self._warm_up()
            batch, figures = self._play()
            settings = self._configuration.ppo
            share = min(1.0, self._iterations / max(1, settings.schedule_iterations))
            falling = 1.0 - (1.0 - FALL) * share
            scales = Scales(settings.learning_rate * falling, settings.entropy * falling)
            self._learned, found = update(self._learned, self._key(1), batch, scales, self._rules)
            figures |= {name: float(each) for name, each in found.items()}
        self._iterations += 1
        return figures

    def trained(self) -> Trained:
        """Returns the actor as it is now."""
        arrays = {
            name: np.asarray(each) for name, each in self._learned.w.items()
            if not name.startswith(CRITIC)
        }  # fmt: skip
        return Trained("attention", arrays, card_facts(self._configuration))

    def state(self) -> Arrays:
        """Returns weights, moments of the optimiser and the counter."""
        moments = jax.tree.leaves(self._learned.moments)
        found: dict[str, npt.NDArray[Any]] = {
            "iterations": np.array(self._iterations), "is_warm": np.array(self._is_warm)
        }  # fmt: skip
        found |= {_WEIGHT + name: np.array(each) for name, each in self._learned.w.items()}
        return found | {f"{_MOMENT}{i}": np.array(each) for i, each in enumerate(moments)}

    def restore(self, state: Arrays) -> None:
        """Takes up a state."""
        w = {name: self._put(like(each, state, _WEIGHT + name))
             for name, each in self._learned.w.items()}  # fmt: skip
        leaves, kind = jax.tree.flatten(self._learned.moments)
        moments = [self._put(like(each, state, f"{_MOMENT}{i}")) for i, each in enumerate(leaves)]
        self._iterations, self._is_warm = count_of(state, "iterations"), bool(state["is_warm"])
        self._learned = Learned(w, jax.tree.unflatten(kind, moments))

    def _put(self, array: npt.NDArray[Any]) -> jax.Array:
        return jax.device_put(array, self._device)

    def _begun(self) -> Learned:
        shape, warm = self._configuration.network, self._configuration.warm_start
        rng = np.random.default_rng([self._seed, 0])
        drawn = first_parameters(rng, shape.width, shape.heads, shape.attention, warm.hold_bias)
        learned = begun({name: self._put(each) for name, each in drawn.items()}, self._rules)
        found: Learned = jax.device_put(learned, self._device)
        return found

    def _key(self, purpose: int) -> jax.Array:
        return jax.random.fold_in(jax.random.key(self._seed), 4 * self._iterations + purpose)

    def _warm_up(self) -> None:
        """Imitates the teacher's placements, and forgets the optimiser's moments after it."""
        warm = self._configuration.warm_start
        self._is_warm = True
        if not warm.teacher:
            return
        self._environment.reset(self._episode_seed())
        rng = np.random.default_rng([self._seed, 1])
        lessons = lessons_of(self._environment, warm.teacher, warm.steps, rng)
        learned, key = begun(self._learned.w, self._rules), self._key(2)
        for epoch in range(warm.epochs):
            rate = warm.learning_rate * (1.0 - epoch / warm.epochs)
            order = jax.random.fold_in(key, epoch)
            learned, _ = imitate(learned, order, lessons, rate, self._rules, warm.minibatch)
        self._learned = begun(learned.w, self._rules)

    def _episode_seed(self) -> int:
        """Names the seed of the first environment's first episode in this iteration."""
        seeds, size = self._world.seeds, self._configuration.environment.environments
        return seeds[(self._seed + self._iterations * EPISODES) * size % len(seeds)]

    def _allocated(self) -> Batch:
        shown, steps = self._environment, self._configuration.ppo.steps
        shape = (steps, len(shown))
        arrays = (shown.nodes, shown.pods, shown.context, shown.mask)
        return Batch(
            seen=Observations(*(np.zeros((steps, *each.shape), each.dtype) for each in arrays)),
            actions=np.zeros(shape, np.int32),
            log_chances=np.zeros(shape, np.float32),
            values=np.zeros(shape, np.float32),
            rewards=np.zeros(shape, np.float32),
            is_done=np.zeros(shape, np.bool_),
            last_values=np.zeros(len(shown), np.float32),
        )

    def _play(self) -> tuple[Batch, dict[str, float]]:
        environment, kept = self._environment, self._buffers
        settings = self._configuration.ppo
        environment.reset(self._episode_seed())
        key, size = self._key(0), len(kept.last_values)
        owed = np.zeros(size, np.float32)  # of a sparse reward, what is paid at the end
        endings: list[npt.NDArray[np.float64]] = []
        rules = self._configuration.environment
        is_sparse, hold_cost = rules.reward == "sparse", np.float32(rules.hold_cost)
        for step in range(settings.steps):
            drawn = act(self._learned.w, key, step, self._note(step))
            kept.actions[step], kept.log_chances[step], kept.values[step] = jax.device_get(drawn)
            environment.step(kept.actions[step].astype(np.int64))
            is_done, held = environment.is_done, kept.actions[step] == environment.num_nodes
            reward = (environment.reward - hold_cost * held) * settings.reward_scale
            if is_sparse:
                owed += reward
                reward, owed = np.where(is_done, owed, 0), np.where(is_done, 0, owed)
            kept.rewards[step], kept.is_done[step] = reward, is_done
            endings.append(environment.final_allocation[is_done])
        last = np.asarray(values_of(self._learned.w, self._shown()))
        return kept._replace(last_values=last), _figures(kept, np.concatenate(endings))

    def _shown(self) -> Observations:
        shown = self._environment
        return Observations(shown.nodes, shown.pods, shown.context, shown.mask)

    def _note(self, step: int) -> Observations:
        """Keeps what is shown now for learning; nothing changes it before the next iteration."""
        kept = Observations(*(each[step] for each in self._buffers.seen))
        for row, shown in zip(kept, self._shown(), strict=True):
            row[:] = shown
        # In the last round whatever fits is placed.
        last = 1.5 / self._configuration.environment.max_rounds
        kept.mask[:, -1] &= kept.context[:, ROUNDS_LEFT] > last
        return kept


def _figures(played: Batch, allocations: npt.NDArray[np.float64]) -> dict[str, float]:
    held = played.actions == played.seen.mask.shape[-1] - 1
    return {
        "steps": float(held.size),
        "episodes": float(len(allocations)),
        "reward": float(played.rewards.sum() / max(1, len(allocations))),
        "gpu_allocation": float(allocations.mean()) if len(allocations) else 0.0,
        "held_share": float(held.mean()),
    }


def rules_of(configuration: Configuration) -> Rules:
    """Takes what is fixed during a training."""
    ppo = configuration.ppo
    return Rules(
        ppo.epochs, ppo.minibatches, ppo.discount, ppo.trace, ppo.clip, ppo.value_weight,
        ppo.max_gradient,
    )  # fmt: skip
