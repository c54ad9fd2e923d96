"""Learns by PPO: plays episodes in the environment, and improves the network by what came of it.

Every iteration begins new episodes, drawn by its own number. So the state of a training is the
network, the optimiser and a counter, and a resumed one goes on to the bit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np
import numpy.typing as npt

from podium.errors import UsageError
from podium.policies.networks.features import CONTEXT_NAMES
from podium.policies.weights import LARGEST_BYTES, unpacked
from podium.rl.configuration import Device
from podium.rl.device import device_named
from podium.rl.environment.placement import Placement
from podium.rl.learner import Arrays, Trained, count_of, like
from podium.rl.ppo.algorithm import Configuration, card_facts, make_world
from podium.rl.ppo.imitation import lessons_of
from podium.rl.ppo.network import CRITIC, Observations, Parameters, first_parameters
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

CRITIC_EPOCHS = 20
"""Passes over an iteration in which a critic learns what an actor that is given reaches."""

FALL = 0.1
"""What the learning rate and the entropy fall to, as a share of the first."""

_WEIGHT, _MOMENT = "weight/", "moment/"


@dataclass(frozen=True, slots=True, eq=False)
class Ground:
    """Environments on clusters of one size, and room for what an iteration plays there."""

    environment: Placement
    buffers: Batch
    hold_cost: float  # as a share of the GPUs: a hold costs as many GPUs on every size

    @classmethod
    def of(cls, configuration: Configuration, nodes: int) -> Ground:
        """Lays out as many decisions as on other sizes: longer episodes in fewer environments."""
        rules, world = configuration.environment, make_world(configuration, nodes)
        times = nodes / configuration.cluster.nodes if configuration.cluster.nodes else 1.0
        count = max(1, round(rules.environments / times))
        environment = Placement(
            world, count, look_ahead=rules.look_ahead, seed=world.seeds[0]
        )  # fmt: skip
        steps = max(1, configuration.ppo.steps * rules.environments // count)
        return cls(environment, _allocated(environment, steps), rules.hold_cost / times)

    def shown(self) -> Observations:
        """Gives what the environments show, which the next step writes over."""
        shown = self.environment
        return Observations(shown.nodes, shown.pods, shown.context, shown.mask)

    def note(self, step: int, max_rounds: int) -> Observations:
        """Keeps what is shown now for learning; nothing changes it before the next iteration."""
        kept = Observations(*(each[step] for each in self.buffers.seen))
        for row, shown in zip(kept, self.shown(), strict=True):
            row[:] = shown
        # In the last round whatever fits is placed.
        kept.mask[:, -1] &= kept.context[:, ROUNDS_LEFT] > 1.5 / max_rounds
        return kept


class PpoLearner:
    """Is a learner of `podium.rl.training`."""

    def __init__(self, configuration: Configuration, seed: int, device: Device) -> None:
        self._configuration, self._seed = configuration, seed
        self._device = device_named(device)
        cluster = configuration.cluster
        self._sizes = cluster.sizes or (cluster.nodes,)
        self._grounds = {size: Ground.of(configuration, size) for size in set(self._sizes)}
        self._rules = rules_of(configuration)
        self._iterations = 0
        self._is_warm = False
        self._learned = self._begun()

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
        return self._without_moments({name: self._put(each) for name, each in drawn.items()})

    def _without_moments(self, w: Parameters) -> Learned:
        """Begins the optimiser; all is put on the device, lest an update be compiled twice."""
        found: Learned = jax.device_put(begun(w, self._rules), self._device)
        return found

    def _ground(self) -> Ground:
        return self._grounds[self._sizes[self._iterations % len(self._sizes)]]

    def _key(self, purpose: int) -> jax.Array:
        return jax.random.fold_in(jax.random.key(self._seed), 4 * self._iterations + purpose)

    def _warm_up(self) -> None:
        """Imitates the teacher's placements, and forgets the optimiser's moments after it."""
        warm = self._configuration.warm_start
        self._is_warm = True
        if warm.weights:
            self._take_weights(Path(warm.weights))
        if warm.weights or not warm.teacher:
            return
        environment = self._ground().environment
        environment.reset(self._episode_seed(environment))
        rng = np.random.default_rng([self._seed, 1])
        lessons = lessons_of(environment, warm.teacher, warm.steps, rng)
        learned, key = self._without_moments(self._learned.w), self._key(2)
        minibatch = min(warm.minibatch, len(lessons.choices))
        for epoch in range(warm.epochs):
            rate = warm.learning_rate * (1.0 - epoch / warm.epochs)
            order = jax.random.fold_in(key, epoch)
            learned, _ = imitate(learned, order, lessons, rate, self._rules, minibatch)
        self._learned = self._without_moments(learned.w)

    def _take_weights(self, path: Path) -> None:
        """Begins with an actor that was trained before; its critic is learned first, alone."""
        found = unpacked(path, path.read_bytes(), LARGEST_BYTES)
        w = {name: each if name.startswith(CRITIC) else self._put(like(each, found, name))
             for name, each in self._learned.w.items()}  # fmt: skip
        self._learned, rate = self._without_moments(w), self._configuration.warm_start.learning_rate
        batch, _ = self._play()
        rules = self._rules._replace(epochs=CRITIC_EPOCHS, is_critic_alone=True)
        learned, _ = update(self._learned, self._key(2), batch, Scales(rate, 0.0), rules)
        self._learned = self._without_moments(learned.w)

    def _episode_seed(self, environment: Placement) -> int:
        """Names the seed of the first environment's first episode in this iteration."""
        seeds, first = environment.world.seeds, self._seed + self._iterations * EPISODES
        return seeds[first * len(environment) % len(seeds)]

    def _play(self) -> tuple[Batch, dict[str, float]]:
        ground, rules = self._ground(), self._configuration.environment
        environment, kept, key = ground.environment, ground.buffers, self._key(0)
        environment.reset(self._episode_seed(environment))
        owed = np.zeros(len(environment), np.float32)  # of a sparse reward, what the end pays
        endings: list[npt.NDArray[np.float64]] = []
        scale, hold_cost = self._configuration.ppo.reward_scale, np.float32(ground.hold_cost)
        for step in range(len(kept.actions)):
            drawn = act(self._learned.w, key, step, ground.note(step, rules.max_rounds))
            kept.actions[step], kept.log_chances[step], kept.values[step] = jax.device_get(drawn)
            environment.step(kept.actions[step].astype(np.int64))
            is_done, held = environment.is_done, kept.actions[step] == environment.num_nodes
            reward = (environment.reward - hold_cost * held) * scale
            if rules.reward == "sparse":
                owed += reward
                reward, owed = np.where(is_done, owed, 0), np.where(is_done, 0, owed)
            kept.rewards[step], kept.is_done[step] = reward, is_done
            endings.append(environment.final_allocation[is_done])
        last = np.asarray(values_of(self._learned.w, ground.shown()))
        ended = np.concatenate(endings)
        if not len(ended):
            raise UsageError(
                f"no episode ended within {len(kept.actions):,} decisions", where="ppo.steps",
                hint="raise it: every iteration begins new episodes, and ends would never be seen",
            )  # fmt: skip
        return kept._replace(last_values=last), _figures(kept, ended)


def _allocated(shown: Placement, steps: int) -> Batch:
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
