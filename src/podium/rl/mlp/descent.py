"""Steps along gradients of a net's weights, with JAX and optax. Importing this imports both.

Two losses: how badly the net ranks what a teacher took, and the policy gradient.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
import optax

from podium.rl.device import device_named

Parameters = Mapping[str, Any]

TRAINED = ("linear", "hidden", "bias", "out")
"""The arrays that gradients change; what features mean is left to evolution."""

CLIPPED = 1.0  # length of a gradient


def net_scores(parameters: Parameters, seen: Any) -> Any:
    """Runs the net on features, as `policies.networks.mlp.evaluate` does."""
    units = seen @ parameters["hidden"] + parameters["bias"]
    return seen @ parameters["linear"] + (units / (1 + jnp.abs(units))) @ parameters["out"]


def _chances(parameters: Parameters, seen: Any, mask: Any) -> Any:
    scores = jnp.where(mask, net_scores(parameters, seen), -jnp.inf)
    return jax.nn.log_softmax(scores, axis=-1)


def ranking_loss(parameters: Parameters, seen: Any, mask: Any) -> Any:
    """Returns how unlikely the net is to take what was taken, which comes first."""
    return -_chances(parameters, seen, mask)[..., 0].mean()


def policy_loss(parameters: Parameters, seen: Any, mask: Any, taken: Any, advantage: Any) -> Any:
    """Makes what did better than the others of its group more likely (REINFORCE)."""
    chances = jnp.take_along_axis(_chances(parameters, seen, mask), taken[..., None], -1)[..., 0]
    return -(advantage * chances).sum() / jnp.maximum(1, (advantage != 0).sum())


@cache
def descent(learning_rate: float, device: str = "cpu") -> Descent:
    """Returns the same compiled steps whenever they are asked for."""
    return Descent(learning_rate, device)


class Descent:
    """Adam on the arrays that gradients change; its state is plain arrays."""

    def __init__(self, learning_rate: float, device: str) -> None:
        self._device = device_named(device)
        self._optimiser = optax.chain(optax.clip_by_global_norm(CLIPPED), optax.adam(learning_rate))
        self._steps = {loss: self._compiled(loss) for loss in (ranking_loss, policy_loss)}

    def begun(self, parameters: Parameters) -> list[npt.NDArray[Any]]:
        """Returns the state of an optimiser that has done nothing."""
        return [np.asarray(leaf) for leaf in jax.tree.leaves(self._fresh(parameters))]

    def step(
        self, loss: Callable[..., Any], parameters: Parameters, state: list[npt.NDArray[Any]],
        *batch: Any,
    ) -> tuple[dict[str, npt.NDArray[np.float64]], list[npt.NDArray[Any]], float]:  # fmt: skip
        """Does one step for each item of the batch's first axis, in one compiled loop."""
        shape = jax.tree.structure(self._fresh(parameters))
        with jax.default_device(self._device):
            moved, kept, value = self._steps[loss](
                _single(parameters), jax.tree.unflatten(shape, state), batch
            )
        arrays = {name: np.asarray(moved[name], np.float64) for name in TRAINED}
        return arrays, [np.asarray(leaf) for leaf in jax.tree.leaves(kept)], float(value)

    def _fresh(self, parameters: Parameters) -> Any:
        return self._optimiser.init(_single(parameters))

    def _compiled(self, loss: Callable[..., Any]) -> Any:
        def one(carried: Any, batch: Any) -> Any:
            parameters, state = carried
            value, gradient = jax.value_and_grad(loss)(parameters, *batch)
            updates, state = self._optimiser.update(gradient, state)
            return (optax.apply_updates(parameters, updates), state), value

        def all_steps(parameters: Any, state: Any, batches: Any) -> Any:
            (parameters, state), values = jax.lax.scan(one, (parameters, state), batches)
            return parameters, state, values.mean()

        return jax.jit(all_steps)


def _single(parameters: Parameters) -> dict[str, Any]:
    return {name: jnp.asarray(parameters[name], jnp.float32) for name in TRAINED}
