"""The arithmetic of PPO: advantages, the clipped objective, and one update as one compiled scan."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from podium.rl.ppo.network import CRITIC, IMPOSSIBLE, Observations, Parameters, forward


class Rules(NamedTuple):
    """What is fixed during a training; it is part of the compiled program."""

    epochs: int = 3
    minibatches: int = 8
    discount: float = 1.0
    trace: float = 0.97  # lambda of the generalised advantage estimate
    clip: float = 0.2
    value_weight: float = 0.5
    max_gradient: float = 0.5
    is_critic_alone: bool = False  # the actor stays as it is


class Learned(NamedTuple):
    """What a training changes: the weights, and the optimiser's moments of them."""

    w: Parameters
    moments: Any


class Scales(NamedTuple):
    """What falls in the course of a training."""

    rate: Any
    entropy: Any


class Lessons(NamedTuple):
    """What was seen, and where a teacher placed the pods."""

    seen: Observations
    choices: Any


class Batch(NamedTuple):
    """What one iteration played: (steps, environments, ...)."""

    seen: Observations
    actions: Any
    log_chances: Any  # of the actions, when they were drawn
    values: Any
    rewards: Any
    is_done: Any
    last_values: Any  # (environments,) of what is seen after the last step


class Sample(NamedTuple):
    """Decisions to learn from, in one row."""

    seen: Observations
    actions: jax.Array
    log_chances: jax.Array
    values: jax.Array
    advantages: jax.Array
    returns: jax.Array


@partial(jax.jit)
def act(
    w: Parameters, key: jax.Array, step: int, seen: Observations
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Draws an action for each observation; gives its logarithmic chance and the values too."""
    found = forward(w, seen)
    own_key = jax.random.fold_in(key, step)
    actions = jax.random.categorical(own_key, found.log_chances, axis=-1)
    taken = jnp.take_along_axis(found.log_chances, actions[:, None], axis=-1)[:, 0]
    return actions, taken, found.values


@partial(jax.jit)
def values_of(w: Parameters, seen: Observations) -> jax.Array:
    """Gives what the critic expects."""
    return forward(w, seen).values


def advantages_of(
    rewards: jax.Array, values: jax.Array, is_done: jax.Array, last_values: jax.Array,
    discount: float, trace: float,
) -> jax.Array:  # fmt: skip
    """Estimates how much better each action was than expected (GAE, Schulman et al. 2016)."""
    following = jnp.concatenate([values[1:], last_values[None]])
    goes_on = 1.0 - is_done.astype(jnp.float32)
    surprise = rewards + discount * following * goes_on - values

    def backward(later: jax.Array, step: tuple[jax.Array, jax.Array]) -> Any:
        now = step[0] + discount * trace * step[1] * later
        return now, now

    start = jnp.zeros_like(last_values)
    return jax.lax.scan(backward, start, (surprise, goes_on), reverse=True)[1]


def optimiser(rules: Rules) -> optax.GradientTransformation:
    """Makes Adam with clipped gradients; the learning rate is given to every update."""
    return optax.chain(optax.clip_by_global_norm(rules.max_gradient), optax.scale_by_adam(eps=1e-5))


def loss_of(
    w: Parameters, sample: Sample, entropy_weight: jax.Array, rules: Rules
) -> tuple[jax.Array, dict[str, jax.Array]]:
    """Gives the clipped objective with the critic's error and the entropy."""
    found = forward(w, sample.seen)
    taken = jnp.take_along_axis(found.log_chances, sample.actions[:, None], axis=-1)[:, 0]
    ratio = jnp.exp(taken - sample.log_chances)
    spread = jnp.std(sample.advantages) + 1e-8
    advantages = (sample.advantages - jnp.mean(sample.advantages)) / spread
    clipped = jnp.clip(ratio, 1 - rules.clip, 1 + rules.clip)
    gain = jnp.minimum(ratio * advantages, clipped * advantages).mean()
    error = jnp.square(found.values - sample.returns).mean()
    possible = found.log_chances > IMPOSSIBLE / 2
    chances = jnp.where(possible, jnp.exp(found.log_chances), 0.0)
    entropy = -(chances * jnp.where(possible, found.log_chances, 0.0)).sum(axis=-1).mean()
    loss = -gain + rules.value_weight * error - entropy_weight * entropy
    figures = {
        "loss": loss, "value_error": error, "entropy": entropy,
        "clipped": (jnp.abs(ratio - 1) > rules.clip).mean(),
        "divergence": (sample.log_chances - taken).mean(),
    }  # fmt: skip
    return loss, figures


def samples_of(batch: Batch, rules: Rules) -> Sample:
    """Lays all decisions of a batch out in one row, with their advantages."""
    advantages = advantages_of(
        batch.rewards, batch.values, batch.is_done, batch.last_values, rules.discount, rules.trace
    )
    sample = Sample(
        batch.seen, batch.actions, batch.log_chances, batch.values, advantages,
        advantages + batch.values,
    )  # fmt: skip
    found: Sample = jax.tree.map(lambda each: each.reshape(-1, *each.shape[2:]), sample)
    return found


@partial(jax.jit, static_argnames=("rules",), donate_argnames=("learned",))
def update(
    learned: Learned, key: jax.Array, batch: Batch, scales: Scales, rules: Rules
) -> tuple[Learned, dict[str, jax.Array]]:
    """Improves the network by a batch: epochs of minibatches in one scan."""
    samples = samples_of(batch, rules)
    size = samples.actions.shape[0]

    def learn(learned: Learned, picked: jax.Array) -> tuple[Learned, dict[str, jax.Array]]:
        sample = jax.tree.map(lambda each: each[picked], samples)
        slope = jax.value_and_grad(loss_of, has_aux=True)
        (_, figures), slopes = slope(learned.w, sample, scales.entropy, rules)
        if rules.is_critic_alone:
            slopes = {name: each * name.startswith(CRITIC) for name, each in slopes.items()}
        return _moved(learned, slopes, scales.rate, rules), figures

    keys = jax.random.split(key, rules.epochs)
    orders = jax.vmap(lambda each: jax.random.permutation(each, size))(keys)
    kept = size // rules.minibatches * rules.minibatches
    picked = orders[:, :kept].reshape(rules.epochs * rules.minibatches, -1)
    learned, figures = jax.lax.scan(learn, learned, picked)
    explained = 1 - jnp.var(samples.returns - samples.values) / (jnp.var(samples.returns) + 1e-8)
    means = {name: each.mean() for name, each in figures.items()}
    return learned, means | {"explained": explained}


def begun(w: Parameters, rules: Rules) -> Learned:
    """Makes the optimiser's moments of weights that nothing was learned with."""
    return Learned(w, optimiser(rules).init(w))


def _moved(learned: Learned, slopes: Any, rate: Any, rules: Rules) -> Learned:
    moves, moments = optimiser(rules).update(slopes, learned.moments, learned.w)
    return Learned(jax.tree.map(lambda each, move: each - rate * move, learned.w, moves), moments)


def imitation_loss(w: Parameters, lessons: Lessons) -> jax.Array:
    """Gives the surprise at a teacher's nodes; whether the teacher would hold is not asked."""
    mask = lessons.seen.mask.at[:, -1].set(False)
    found = forward(w, lessons.seen._replace(mask=mask)).log_chances
    return -jnp.take_along_axis(found, lessons.choices[:, None], axis=-1).mean()


@partial(jax.jit, static_argnames=("rules", "minibatch"), donate_argnames=("learned",))
def imitate(
    learned: Learned, key: jax.Array, lessons: Lessons, rate: float, rules: Rules, minibatch: int
) -> tuple[Learned, jax.Array]:
    """Follows all lessons once, in one scan; gives the mean surprise."""

    def learn(learned: Learned, picked: jax.Array) -> tuple[Learned, jax.Array]:
        some = jax.tree.map(lambda each: each[picked], lessons)
        loss, slopes = jax.value_and_grad(imitation_loss)(learned.w, some)
        return _moved(learned, slopes, rate, rules), loss

    size = lessons.choices.shape[0]
    order = jax.random.permutation(key, size)
    picked = order[: size // minibatch * minibatch].reshape(-1, minibatch)
    learned, losses = jax.lax.scan(learn, learned, picked)
    return learned, losses.mean()
