"""The network as it is trained: the arithmetic of `policies/networks/attention.py`, in batches.

The actor's arrays are what a policy is made of; the critic's (`critic_...`) stay with the trainer.
Holding is decided apart from the nodes: its chance does not depend on how many nodes there are.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from podium.policies.networks.attention import network_shapes

Parameters = dict[str, jax.Array]

CRITIC = "critic_"
IMPOSSIBLE = -1e9
"""The logit of what may not be chosen; minus infinity would make gradients NaN."""

FIRST_WEIGHT = 0.1
"""The last layers begin small: at first all nodes are nearly alike."""


class Observations(NamedTuple):
    """A batch of what environments show."""

    nodes: Any  # float32 (batch, num_nodes, NODE_FEATURES)
    pods: Any  # float32 (batch, 1 + look_ahead, POD_FEATURES)
    context: Any  # float32 (batch, CONTEXT_FEATURES)
    mask: Any  # bool (batch, num_nodes + 1): what may be chosen, holding last


class Outputs(NamedTuple):
    """What the network says of a batch."""

    log_chances: jax.Array  # (batch, num_nodes + 1) of the actions, holding last
    values: jax.Array  # (batch,)


def first_parameters(
    rng: np.random.Generator, width: int, heads: int, attention: str, hold_bias: float
) -> dict[str, npt.NDArray[np.float32]]:
    """Draws the weights that training begins with."""
    shapes = network_shapes(width, heads, attention)
    known = shapes["hold_w"][0]
    shapes |= {
        CRITIC + "w": (known, width), CRITIC + "b": (width,), CRITIC + "v": (width,),
        CRITIC + "c": (1,),
    }  # fmt: skip
    found = {name: _drawn(rng, name, shape) for name, shape in shapes.items()}
    found["hold_c"][:] = hold_bias
    return found


def _drawn(rng: np.random.Generator, name: str, shape: tuple[int, ...]) -> npt.NDArray[np.float32]:
    if name.endswith(("_b", "_c")):
        return np.zeros(shape, np.float32)
    inputs = shape[-2] if len(shape) > 1 else shape[0]
    scale = np.sqrt(2.0 / inputs) * (FIRST_WEIGHT if name.endswith("_v") else 1.0)
    found: npt.NDArray[np.float32] = (rng.standard_normal(shape) * scale).astype(np.float32)
    return found


def forward(w: Parameters, seen: Observations) -> Outputs:
    """Evaluates the network on a batch."""
    query = _query(w, seen.pods, seen.context)
    present = seen.nodes[..., 0] > 0
    asked = query @ w["node_q"] + w["node_b"]
    hidden = jax.nn.relu(_by_row(seen.nodes, w["node_w"]) + asked[:, None, :])
    if "self_q" in w:
        hidden = hidden + _between(w, hidden, present)
    told, known = query @ w["point_q"] + w["point_b"], query
    if "key_w" in w:
        summary = _summary(w, query, hidden, present)
        told, known = told + summary @ w["point_s"], jnp.concatenate([query, summary], axis=-1)
    pointed = jax.nn.relu(_by_row(hidden, w["point_w"]) + told[:, None, :])
    logits = _by_row(pointed, w["point_v"][:, None])[..., 0]
    holding = _head(w, "hold", known)
    return Outputs(_log_chances(logits, holding, seen.mask), _head(w, "critic", known))


def _by_row(values: jax.Array, weights: jax.Array) -> jax.Array:
    """Multiplies the last axis as one matrix: on a CPU its slopes take half the time so."""
    rows = values.reshape(-1, values.shape[-1]) @ weights
    return rows.reshape(*values.shape[:-1], weights.shape[-1])


def _query(w: Parameters, pods: jax.Array, context: jax.Array) -> jax.Array:
    shown = jax.nn.relu(_by_row(pods, w["pod_w"]) + w["pod_b"]) * pods[..., :1]
    behind = shown[:, 1:].sum(axis=1) / max(1, pods.shape[1] - 1)
    told = jnp.concatenate([shown[:, 0], behind, context], axis=-1)
    return jax.nn.relu(told @ w["query_w"] + w["query_b"])


def _summary(w: Parameters, query: jax.Array, hidden: jax.Array, present: jax.Array) -> jax.Array:
    heads, width = w["key_w"].shape[0], query.shape[-1]
    keys = query @ w["key_w"].transpose(1, 0, 2).reshape(width, -1) * width**-0.5
    barred = jnp.where(present, 0.0, IMPOSSIBLE)
    gathered = _attended(hidden, keys.reshape(-1, heads, width), barred)
    return jax.nn.relu(gathered.reshape(len(query), -1) @ w["value_w"] + w["value_b"])


@jax.custom_vjp  # type: ignore[untyped-decorator]
def _attended(hidden: jax.Array, keys: jax.Array, barred: jax.Array) -> jax.Array:
    """Gathers what each head attends to: (batch, heads, width)."""
    return _attend(hidden, keys, barred)[0]


_Attention = tuple[jax.Array, jax.Array, jax.Array]


def _attend(hidden: jax.Array, keys: jax.Array, barred: jax.Array) -> tuple[jax.Array, _Attention]:
    alike = hidden @ keys.transpose(0, 2, 1) + barred[:, :, None]
    share = jax.nn.softmax(alike, axis=1)  # (batch, num_nodes, heads)
    return share.transpose(0, 2, 1) @ hidden, (hidden, keys, share)


def _attend_back(kept: _Attention, slope: jax.Array) -> tuple[jax.Array, jax.Array, None]:
    """Gives the slopes of nodes and keys: those that JAX derives take three times as long."""
    hidden, keys, share = kept
    of_share = hidden @ slope.transpose(0, 2, 1)
    of_alike = share * (of_share - (share * of_share).sum(axis=1, keepdims=True))
    both, told = jnp.concatenate([share, of_alike], -1), jnp.concatenate([slope, keys], 1)
    return both @ told, of_alike.transpose(0, 2, 1) @ hidden, None


_attended.defvjp(_attend, _attend_back)


def _between(w: Parameters, hidden: jax.Array, present: jax.Array) -> jax.Array:
    asked, told = hidden @ w["self_q"], hidden @ w["self_k"]
    alike = jnp.einsum("bnw,bmw->bnm", asked, told) * hidden.shape[-1] ** -0.5
    share = jax.nn.softmax(jnp.where(present[:, None, :], alike, IMPOSSIBLE), axis=-1)
    return jnp.einsum("bnm,bmw->bnw", share, hidden @ w["self_v"])


def _head(w: Parameters, name: str, known: jax.Array) -> jax.Array:
    hidden = jax.nn.relu(known @ w[f"{name}_w"] + w[f"{name}_b"])
    found: jax.Array = hidden @ w[f"{name}_v"] + w[f"{name}_c"][0]
    return found


def _log_chances(logits: jax.Array, holding: jax.Array, mask: jax.Array) -> jax.Array:
    nodes = jax.nn.log_softmax(jnp.where(mask[:, :-1], logits, IMPOSSIBLE), axis=-1)
    may_hold = mask[:, -1]
    placing = jnp.where(may_hold, jax.nn.log_sigmoid(-holding), 0.0)
    held = jnp.where(may_hold, jax.nn.log_sigmoid(holding), IMPOSSIBLE)
    return jnp.concatenate([nodes + placing[:, None], held[:, None]], axis=-1)
