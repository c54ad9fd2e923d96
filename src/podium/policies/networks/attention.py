"""Decides by attention: the offered pod asks all nodes, and points at one of them or is held.

The offered pod, the pods behind it and the state of the queue make a query. The nodes are encoded
in its light; the query attends to them (linear in their number), and the summary that it gets
decides with it whether the pod is held, and else which node is best. The order and the number of
the nodes do not matter. `rl/ppo/network.py` trains the same arithmetic.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from podium.errors import InputError
from podium.files.excerpt import excerpt
from podium.policies.networks.features import CONTEXT_FEATURES, NODE_FEATURES, POD_FEATURES
from podium.policies.networks.observation import Observer
from podium.policies.policy import ClusterPolicy
from podium.policies.session import HOLD, Situation
from podium.policies.weights import TRAIN_AGAIN, Weights, net_array

Floats = npt.NDArray[np.float32]
Arrays = Mapping[str, npt.NDArray[Any]]

KINDS = ("cross", "self", "none")
"""What the summary is made of: the nodes that the pod attends to, after they have attended to each
other or not; or nothing."""

ALWAYS = ("pod_w", "pod_b", "query_w", "query_b", "node_w", "node_b", "node_q")
POINTER = ("point_w", "point_q", "point_b", "point_v")
HOLDING = ("hold_w", "hold_b", "hold_v", "hold_c")
ATTENDING = ("key_w", "value_w", "value_b", "point_s")
BETWEEN = ("self_q", "self_k", "self_v")


NODES_AT_ONCE = 256


class AttentionNetwork:
    """Evaluates the network on one observation."""

    def __init__(self, arrays: Arrays, *, attention: str, may_hold: bool) -> None:
        names = [*ALWAYS, *POINTER, *HOLDING]
        names += ATTENDING if attention != "none" else ()
        names += BETWEEN if attention == "self" else ()
        self._w = {name: np.asarray(arrays[name], np.float32) for name in names}
        self._attention, self._may_hold = attention, may_hold

    def decide(
        self, nodes: Floats, pods: Floats, context: Floats
    ) -> tuple[npt.NDArray[np.float32], float]:
        """Gives the logits of the nodes, and that of holding: above 0 the pod is held."""
        w = self._w
        query = self._query(pods, context)
        hidden = _relu(_by_node(nodes, w["node_w"]) + (query @ w["node_q"] + w["node_b"]))
        if self._attention == "self":
            hidden = hidden + self._between(hidden)
        told = query @ w["point_q"] + w["point_b"]
        summary = np.zeros(0, np.float32)
        if self._attention != "none":
            summary = self._summary(query, hidden)
            told = told + summary @ w["point_s"]
        logits = _by_node(_relu(_by_node(hidden, w["point_w"]) + told), w["point_v"])
        if not self._may_hold:
            return logits, -np.inf
        known = np.concatenate([query, summary])
        holding = _relu(known @ w["hold_w"] + w["hold_b"]) @ w["hold_v"] + w["hold_c"][0]
        return logits, float(holding)

    def _query(self, pods: Floats, context: Floats) -> Floats:
        w = self._w
        shown = _relu(pods @ w["pod_w"] + w["pod_b"]) * pods[:, :1]  # an absent pod says nothing
        behind = shown[1:].sum(axis=0) / max(1, len(pods) - 1)
        return _relu(np.concatenate([shown[0], behind, context]) @ w["query_w"] + w["query_b"])

    def _summary(self, query: Floats, hidden: Floats) -> Floats:
        w = self._w
        heads = np.tensordot(w["key_w"], query, axes=([1], [0]))  # (heads, width)
        share = _softmax(_by_node(hidden, heads.T) * np.float32(len(query) ** -0.5), axis=0)
        return _relu((share.T @ hidden).reshape(-1) @ w["value_w"] + w["value_b"])

    def _between(self, hidden: Floats) -> Floats:
        w = self._w
        scale = np.float32(hidden.shape[1] ** -0.5)
        alike = (hidden @ w["self_q"]) @ (hidden @ w["self_k"]).T * scale
        return _softmax(alike, axis=1) @ (hidden @ w["self_v"])


def _by_node(rows: Floats, weights: Floats) -> Floats:
    """Multiplies some nodes at a time: BLAS would divide more among threads, which costs more."""
    blocks = range(0, max(1, len(rows)), NODES_AT_ONCE)
    return np.concatenate([rows[i : i + NODES_AT_ONCE] @ weights for i in blocks])


def _relu(values: Any) -> Floats:
    found: Floats = np.maximum(values, np.float32(0))
    return found


def _softmax(values: Floats, axis: int) -> Floats:
    raised = np.exp(values - values.max(axis=axis, keepdims=True))
    found: Floats = raised / raised.sum(axis=axis, keepdims=True)
    return found


class AttentionChooser:
    """Chooses for one run; it holds only where a run says how often that may still be done."""

    def __init__(self, network: AttentionNetwork, look_ahead: int) -> None:
        self.look_ahead = look_ahead
        self._network = network
        self._situation: Situation | None = None
        self._seen = Observer(look_ahead)

    def observe(self, situation: Situation) -> None:
        """Takes note of the queue around the pod that is offered next."""
        self._situation = situation

    def choose(self, pod: Any, nodes: npt.NDArray[Any], feasible: npt.NDArray[np.bool_]) -> float:
        """Returns the best node that fits, or HOLD."""
        logits, is_held = self._decide(pod, nodes, feasible)
        return HOLD if is_held else int(np.where(feasible, logits, -np.inf).argmax())

    def scores(
        self, pod: Any, nodes: npt.NDArray[Any], feasible: npt.NDArray[np.bool_]
    ) -> npt.NDArray[np.float64]:
        """Returns the logits of the nodes; HOLD for all where the pod is held."""
        logits, is_held = self._decide(pod, nodes, feasible)
        return np.full(len(nodes), HOLD) if is_held else logits.astype(np.float64)

    def _decide(
        self, pod: Any, nodes: npt.NDArray[Any], feasible: npt.NDArray[np.bool_]
    ) -> tuple[Floats, bool]:
        situation, self._situation = self._situation or ALONE, None
        seen = self._seen
        seen.look(pod, nodes, feasible, situation)
        logits, holding = self._network.decide(seen.nodes, seen.pods, seen.context)
        return logits, may_wait(situation) and holding > 0


ALONE = Situation()
"""Where nobody tells of a queue: no pod behind, and none may be held."""


def may_wait(situation: Situation) -> bool:
    """Tells whether a pod may be held: there is another round in which it is offered again.

    In the last round whatever fits is placed, so that no pod is left over that has room.
    """
    return situation.may_hold and situation.round < situation.max_rounds - 1


def make(weights: Weights) -> ClusterPolicy:
    """Builds the policy that a card and its arrays describe."""
    card = weights.card
    look_ahead = weights.whole_number("look_ahead", 0, MOST_AHEAD, default=0)
    attention, may_hold = _attention(weights), _may_hold(weights)
    arrays = _checked(weights, attention)
    network = AttentionNetwork(arrays, attention=attention, may_hold=may_hold)
    return ClusterPolicy(
        weights.name,
        lambda _seed: AttentionChooser(network, look_ahead),
        summary=str(card.get("summary", "Chooses by attention over nodes, trained with PPO.")),
        origin="trained",
        may_hold=may_hold,
    )


def _attention(weights: Weights) -> str:
    found = weights.card.get("attention", "cross")
    if found not in KINDS:
        raise InputError(
            f"attention is {excerpt(found)}", where=f"card of {weights.name}",
            hint=f"one of {', '.join(KINDS)} is expected",
        )  # fmt: skip
    return str(found)


def _may_hold(weights: Weights) -> bool:
    found = weights.card.get("may_hold", True)
    if not isinstance(found, bool):
        raise InputError(
            f"may_hold is {excerpt(found)}", where=f"card of {weights.name}",
            hint="true or false is expected",
        )  # fmt: skip
    return found


def _checked(weights: Weights, attention: str) -> Arrays:
    """Refuses weights that are not of this network, or of other features than this release has."""
    width = _size(weights, "pod_b", 1, MOST_WIDTH)
    heads = _size(weights, "key_w", 3, MOST_HEADS) if attention != "none" else 0
    shapes = network_shapes(width, heads, attention)
    return {name: net_array(weights, name, shape, np.float32) for name, shape in shapes.items()}


def _size(weights: Weights, name: str, dimensions: int, most: int) -> int:
    """Reads a size of the network off an array, before anything is made of that size."""
    found: tuple[int, ...] = weights.arrays[name].shape if name in weights.arrays else ()
    if len(found) != dimensions or not 1 <= found[0] <= most:
        raise InputError(
            f"the array {name} has the shape {found}, not {dimensions} dimensions of 1 to {most:,}",
            where=weights.name, hint=TRAIN_AGAIN,
        )  # fmt: skip
    return found[0]


MOST_AHEAD = 64
MOST_WIDTH = 1024
MOST_HEADS = 64


def network_shapes(width: int, heads: int, attention: str) -> dict[str, tuple[int, ...]]:
    """Lists the arrays of a network by name, with their shapes."""
    square = (width, width)
    known = width if attention == "none" else 2 * width
    shapes: dict[str, tuple[int, ...]] = {
        "pod_w": (POD_FEATURES, width), "pod_b": (width,),
        "query_w": (2 * width + CONTEXT_FEATURES, width), "query_b": (width,),
        "node_w": (NODE_FEATURES, width), "node_b": (width,), "node_q": square,
        "point_w": square, "point_q": square, "point_b": (width,), "point_v": (width,),
        "hold_w": (known, width), "hold_b": (width,), "hold_v": (width,), "hold_c": (1,),
    }  # fmt: skip
    if attention != "none":
        shapes |= {
            "key_w": (heads, *square), "value_w": (heads * width, width), "value_b": (width,),
            "point_s": square,
        }  # fmt: skip
    if attention == "self":
        shapes |= dict.fromkeys(BETWEEN, square)
    return shapes
