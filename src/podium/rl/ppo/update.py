"""The arithmetic of PPO: advantages, the clipped objective, and one update as one compiled scan."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from podium.rl.ppo.network import IMPOSSIBLE, Observations, Parameters, forward


class Rules(NamedTuple):
    """What is fixed during a training; it is part of the compiled program."""

    epochs: int = 3
    minibatches: int = 8
    discount: float = 1.0
    trace: float = 0.97  # lambda of the generalised advantage estimate
    clip: float = 0.2
    value_weight: float = 0.5
    max_gradient: float = 0.5


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


@jax.jit
def act(
    w: Parameters, key: jax.Array, seen: Observations
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Draws an action for each observation; gives its logarithmic chance and the values too."""
    found = forward(w, seen)
    actions = jax.random.categorical(key, found.log_chances, axis=-1)
    taken = jnp.take_along_axis(found.log_chances, actions[:, None], axis=-1)[:, 0]
    return actions, taken, found.values


@jax.jit
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
    return jax.tree.map(lambda each: each.reshape(-1, *each.shape[2:]), sample)


@partial(jax.jit, static_argnames=("rules",), donate_argnames=("w", "moments"))
def update(
    w: Parameters, moments: Any, key: jax.Array, batch: Batch, rate: jax.Array,
    entropy_weight: jax.Array, rules: Rules,
) -> tuple[Parameters, Any, dict[str, jax.Array]]:  # fmt: skip
    """Improves the network by a batch: epochs of minibatches in one scan."""
    samples = samples_of(batch, rules)
    size = samples.actions.shape[0]
    steps = optimiser(rules)

    def learn(carried: Any, picked: jax.Array) -> Any:
        w, moments = carried
        sample = jax.tree.map(lambda each: each[picked], samples)
        (_, figures), slopes = jax.value_and_grad(loss_of, has_aux=True)(
            w, sample, entropy_weight, rules
        )
        moves, moments = steps.update(slopes, moments, w)
        w = jax.tree.map(lambda each, move: each - rate * move, w, moves)
        return (w, moments), figures

    keys = jax.random.split(key, rules.epochs)
    orders = jax.vmap(lambda each: jax.random.permutation(each, size))(keys)
    kept = size // rules.minibatches * rules.minibatches
    picked = orders[:, :kept].reshape(rules.epochs * rules.minibatches, -1)
    (w, moments), figures = jax.lax.scan(learn, (w, moments), picked)
    explained = 1 - jnp.var(samples.returns - samples.values) / (jnp.var(samples.returns) + 1e-8)
    means = {name: each.mean() for name, each in figures.items()}
    return w, moments, means | {"explained": explained}


def imitation_loss(w: Parameters, seen: Observations, choices: jax.Array) -> jax.Array:
    """Gives the surprise at a teacher's nodes; whether the teacher would hold is not asked."""
    placing = seen._replace(mask=seen.mask.at[:, -1].set(False))
    found = forward(w, placing).log_chances
    return -jnp.take_along_axis(found, choices[:, None], axis=-1).mean()


@partial(jax.jit, static_argnames=("rules", "minibatch"), donate_argnames=("w", "moments"))
def imitate(
    w: Parameters, moments: Any, key: jax.Array, seen: Observations, choices: jax.Array,
    rate: float, rules: Rules, minibatch: int,
) -> tuple[Parameters, Any, jax.Array]:  # fmt: skip
    """Follows a teacher's choices through all of them once, in one scan."""
    steps = optimiser(rules)

    def learn(carried: Any, picked: jax.Array) -> Any:
        w, moments = carried
        loss, slopes = jax.value_and_grad(imitation_loss)(
            w, jax.tree.map(lambda each: each[picked], seen), choices[picked]
        )
        moves, moments = steps.update(slopes, moments, w)
        return (jax.tree.map(lambda each, move: each - rate * move, w, moves), moments), loss

    size = choices.shape[0]
    order = jax.random.permutation(key, size)
    picked = order[: size // minibatch * minibatch].reshape(-1, minibatch)
    (w, moments), losses = jax.lax.scan(learn, (w, moments), picked)
    return w, moments, losses.mean()
