"""Decides by a condensed Q-table: the worth of each node in each state that training visited.

A state is the free share of every node and the size of the next pods, each in bins. Nodes stand in
the order of their bins, so that clusters which differ in nothing but the order of their nodes are
one state; an action is a place in that order, or to hold the pod. A state that was never visited
is decided by the aim alone: the node whose worth grows most, as `compact` and `balanced` decide.

After roeehub/DRL-k8s-scheduler, with CPU and GPUs beside memory and any number of bins.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from podium.errors import InputError, UnknownName
from podium.model.records import GPU_MILLI, POD
from podium.policies.policy import ClusterPolicy
from podium.policies.session import HOLD
from podium.policies.weights import Weights

Shares = npt.NDArray[np.floating[Any]]
VERSION = 1
RESOURCES = ("cpu", "memory", "gpu")
_FIELDS = {"cpu": "cpu_milli", "memory": "memory_mib"}
MOST_BINS = 1000
EMPTY = 0.05
"""A node counts as empty up to this used share."""


@dataclass(frozen=True, slots=True)
class Aim:
    """What is wanted of the used shares of nodes; any number of aims can be added to AIMS."""

    summary: str
    worth: Callable[[Shares], Shares]  # of used shares from 0 to 1, each by itself


AIMS: dict[str, Aim] = {
    "balance": Aim("all nodes equally in use: roots of used shares", np.sqrt),
    "compact": Aim("few nodes in use, and those full: squares of used shares", np.square),
    "empty-nodes": Aim("as many empty nodes as possible", lambda used: (used <= EMPTY) * 1.0),
}
"""The aims by name: a table is trained for one of them, and falls back to it."""


@dataclass(frozen=True, slots=True)
class Condensing:
    """How a cluster and the next pods become a state."""

    resources: tuple[str, ...] = ("memory",)
    node_bins: int = 10
    pod_bins: int = 10
    look_ahead: int = 1  # pods in the state, the offered one included

    def __post_init__(self) -> None:
        for name in self.resources:
            if name not in RESOURCES:
                raise UnknownName.among("resource", name, RESOURCES)
        sizes = (self.node_bins, self.pod_bins)
        if not self.resources or self.look_ahead < 1 or not all(1 <= n <= MOST_BINS for n in sizes):
            raise ValueError(f"give resources, 1 to {MOST_BINS} bins, and at least 1 pod ahead")

    def free(self, nodes: npt.NDArray[Any]) -> Shares:
        """Returns the free share of each resource on each node, in a last dimension."""
        return np.stack([_free(nodes, name) for name in self.resources], axis=-1)

    def wanted(self, pods: npt.NDArray[Any], nodes: npt.NDArray[Any]) -> Shares:
        """Returns what pods ask for as shares of each node: (..., nodes, resources)."""
        return np.stack(
            [_wanted(pods, name)[..., None] / np.maximum(1, _total(nodes, name))
             for name in self.resources], axis=-1,
        )  # fmt: skip

    def states(
        self, nodes: npt.NDArray[Any], pods: npt.NDArray[Any]
    ) -> tuple[npt.NDArray[np.int16], npt.NDArray[np.int64]]:
        """Condenses many clusters at once: (clusters, nodes) and (clusters, pods ahead).

        Returns the keys of the states, and the numbers of the nodes in the order of the state.
        """
        free = self.free(nodes)
        bins = _binned(free, self.node_bins)
        # By bins first, so that equal states are equal keys; then exactly; then by rank.
        place = np.zeros(nodes.shape)
        for i in range(len(self.resources)):
            place = place * self.node_bins + bins[..., i]
        order = np.argsort(place + 0.999 * free.mean(axis=-1), axis=-1, kind="stable")
        sorted_bins = np.take_along_axis(bins, order[..., None], axis=-2)
        ahead = self._pod_bins(nodes, pods)
        flat = (len(nodes), -1)
        return np.hstack([sorted_bins.reshape(flat), ahead.reshape(flat)]), order

    def _pod_bins(
        self, nodes: npt.NDArray[Any], pods: npt.NDArray[Any]
    ) -> npt.NDArray[np.int16]:  # fmt: skip
        """Bins what each pod asks for, as shares of the largest node; -1 where there is no pod."""
        shares = [_wanted(pods, name) / np.maximum(1, _total(nodes, name).max(axis=-1))[:, None]
                  for name in self.resources]  # fmt: skip
        bins = _binned(np.stack(shares, axis=-1), self.pod_bins)
        absent = (pods["cpu_milli"] < 0)[..., None]
        found: npt.NDArray[np.int16] = np.where(absent, np.int16(-1), bins)
        return found

    def greedy(self, aim: Aim, pod: npt.NDArray[Any], nodes: npt.NDArray[Any]) -> Shares:
        """Returns how much the worth of each node would grow with a pod: (..., nodes)."""
        used = np.clip(1 - self.free(nodes), 0.0, 1.0)
        after = np.clip(used + self.wanted(pod, nodes), 0.0, 1.0)
        grown: Shares = (aim.worth(after) - aim.worth(used)).sum(axis=-1)
        return grown


def _total(nodes: npt.NDArray[Any], resource: str) -> npt.NDArray[Any]:
    if resource == "gpu":
        gpus: npt.NDArray[Any] = GPU_MILLI * nodes["gpu_count"]
        return gpus
    total: npt.NDArray[Any] = nodes[f"{_FIELDS[resource]}_total"]
    return total


def _free(nodes: npt.NDArray[Any], resource: str) -> Shares:
    is_gpu = resource == "gpu"
    left = nodes["gpu_milli_left"].sum(axis=-1) if is_gpu else nodes[f"{_FIELDS[resource]}_left"]
    shares: Shares = left / np.maximum(1, _total(nodes, resource))
    return shares


def _wanted(pods: npt.NDArray[Any], resource: str) -> npt.NDArray[np.int64]:
    if resource == "gpu":
        gpus: npt.NDArray[np.int64] = pods["gpu_count"].astype(np.int64) * pods["gpu_milli"]
        return gpus
    wanted: npt.NDArray[np.int64] = pods[_FIELDS[resource]].astype(np.int64)
    return wanted


def _binned(shares: Shares, bins: int) -> npt.NDArray[np.int16]:
    # The small number keeps 0.3 of ten bins in the third, whatever binary fractions say.
    found: npt.NDArray[np.int16]
    found = np.clip(np.floor(shares * bins + 1e-9), 0, bins - 1).astype(np.int16)
    return found


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """The states that were visited, and what each action was worth there."""

    condensing: Condensing
    aim: str
    keys: npt.NDArray[np.int16]  # (states, nodes * resources + pods ahead * resources)
    values: npt.NDArray[np.float64]  # (states, nodes + 1): the last is to hold
    visits: npt.NDArray[np.int64]  # (states, nodes + 1)
    least_visits: int = 1  # of an action that is taken into account

    @property
    def nodes(self) -> int:
        """Counts the nodes of the clusters that the table knows."""
        return int(self.values.shape[1]) - 1

    def sheet(self, most: int = 20) -> str:
        """Writes the states that were visited most, and what to do there, as a plain table."""
        totals = self.visits.sum(axis=1)
        chosen = np.argsort(-totals, kind="stable")[:most]
        wide = self.nodes * len(self.condensing.resources)
        titles = ["free of nodes", "pods", "visits", *(f"node {i + 1}" for i in range(self.nodes))]
        rows = [[*titles, "hold", "takes"]]
        for i in chosen.tolist():
            row = [_bins(self.keys[i, :wide]), _bins(self.keys[i, wide:]), f"{totals[i]:,}"]
            rows.append([*row, *self._worths(i), self._taken(i)])
        widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
        lines = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True))
                 for row in rows]  # fmt: skip
        return "\n".join([self.description, "", *lines])

    @property
    def description(self) -> str:
        """Describes in words what the table is about."""
        of, known = self.condensing, f"{len(self.keys):,} states of {self.nodes} nodes"
        return (
            f"{known}, {int(self.visits.sum()):,} visits; aim {self.aim}: "
            f"{AIMS[self.aim].summary}\n"
            f"bins of the free {', '.join(of.resources)} of nodes, the fullest first, "
            f"0 to {of.node_bins - 1}; of pods 0 to {of.pod_bins - 1}; "
            "worth of each node in that order, - where it was tried too seldom"
        )

    def _worths(self, state: int) -> list[str]:
        both = zip(self.values[state], self.visits[state], strict=True)
        return [f"{value:.1f}" if visits >= self.least_visits else "-" for value, visits in both]

    def _taken(self, state: int) -> str:
        known = np.where(self.visits[state] >= self.least_visits, self.values[state], -np.inf)
        best = int(known.argmax())
        if not np.isfinite(known[best]):
            return self.aim
        return "hold" if best == self.nodes else f"node {best + 1}"


def _bins(bins: npt.NDArray[np.int16]) -> str:
    return " ".join(map(str, bins.tolist()))


class TableChooser:
    """Decides by a table; it remembers nothing but the pods that were announced."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._rows = {key.tobytes(): i for i, key in enumerate(table.keys)}
        self._ahead = np.zeros(0, POD)
        self.look_ahead = table.condensing.look_ahead - 1

    def observe(self, situation: Any) -> None:
        """Takes note of the pods that are offered next."""
        self._ahead = situation.ahead

    def choose(self, pod: Any, nodes: npt.NDArray[Any], feasible: npt.NDArray[np.bool_]) -> float:
        """Gives the node that is worth most, or HOLD."""
        worths, hold = self._worths(pod, nodes, feasible)
        best = int(worths.argmax())
        return HOLD if hold > worths[best] else best

    def scores(
        self, pod: Any, nodes: npt.NDArray[Any], feasible: npt.NDArray[np.bool_]
    ) -> Shares:  # fmt: skip
        """Gives the worth of every node; refuses all of them where the pod is to be held."""
        worths, hold = self._worths(pod, nodes, feasible)
        return np.full(len(nodes), HOLD) if hold > worths.max() else worths

    def _worths(
        self, pod: Any, nodes: npt.NDArray[Any], feasible: npt.NDArray[np.bool_]
    ) -> tuple[Shares, float]:
        table, pods = self._table, self._pods(pod)
        keys, orders = table.condensing.states(nodes[None], pods[None])
        row = self._rows.get(keys[0].tobytes()) if len(nodes) == table.nodes else None
        if row is not None:
            is_known = table.visits[row] >= table.least_visits
            found = np.full(len(nodes), -np.inf)
            found[orders[0]] = np.where(is_known[:-1], table.values[row, :-1], -np.inf)
            found[~feasible] = -np.inf
            if np.isfinite(found).any():
                return found, float(table.values[row, -1]) if is_known[-1] else -np.inf
        grown = table.condensing.greedy(AIMS[table.aim], pods[:1], nodes[None])[0]
        return np.where(feasible, grown, -np.inf), -np.inf

    def _pods(self, pod: Any) -> npt.NDArray[Any]:
        size = self._table.condensing.look_ahead
        pods = absent_pods((size,))
        pods[0] = tuple(pod)
        count = min(size - 1, len(self._ahead))
        pods[1 : 1 + count] = self._ahead[:count]
        return pods


def absent_pods(shape: tuple[int, ...]) -> npt.NDArray[Any]:
    """Makes records that stand for no pod."""
    pods = np.zeros(shape, POD)
    pods["cpu_milli"] = -1
    return pods


def make(weights: Weights) -> ClusterPolicy:
    """Makes the policy of a saved table."""
    table = read_table(weights)
    return ClusterPolicy(
        weights.name, lambda _seed: TableChooser(table),
        f"Q-table for {table.nodes} nodes: {AIMS[table.aim].summary}.",
        origin="trained", may_hold=bool((table.visits[:, -1] >= table.least_visits).any()),
        text=table.sheet(),
    )  # fmt: skip


def facts_of(table: Table) -> dict[str, Any]:
    """Describes a table as its card does."""
    of = table.condensing
    return {
        "table_version": VERSION, "aim": table.aim, "resources": list(of.resources),
        "node_bins": of.node_bins, "pod_bins": of.pod_bins, "look_ahead": of.look_ahead,
        "nodes": table.nodes, "states": len(table.keys), "least_visits": table.least_visits,
    }  # fmt: skip


def read_table(weights: Weights) -> Table:
    """Reads a table from arrays and card, and checks that they fit together."""
    card, arrays = weights.card, weights.arrays
    where = f"card of {weights.name}"
    try:
        of = Condensing(
            tuple(card["resources"]), card["node_bins"], card["pod_bins"], card["look_ahead"]
        )
        table = Table(
            of, str(card["aim"]), arrays["keys"], arrays["values"], arrays["visits"],
            int(card["least_visits"]),
        )  # fmt: skip
        _check(table, card)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        hint = "train again, or restore both files"
        raise InputError(f"not a Q-table: {error}", where=where, hint=hint) from error
    if table.aim not in AIMS:
        raise UnknownName.among("aim", table.aim, AIMS, where=where)
    return table


def _check(table: Table, card: Mapping[str, Any]) -> None:
    if card["table_version"] != VERSION:
        raise ValueError(f"this Podium reads tables of version {VERSION}")
    states, nodes = int(card["states"]), int(card["nodes"])
    wide = (nodes + table.condensing.look_ahead) * len(table.condensing.resources)
    expected: dict[str, tuple[npt.NDArray[Any], tuple[int, int], str]] = {
        "keys": (table.keys, (states, wide), "i"),
        "values": (table.values, (states, nodes + 1), "f"),
        "visits": (table.visits, (states, nodes + 1), "i"),
    }
    for name, (array, shape, kind) in expected.items():
        if array.shape != shape or array.dtype.kind != kind:
            raise ValueError(f"{name} are {array.dtype} of shape {array.shape}, not {shape}")
    if not np.isfinite(table.values).all():
        raise ValueError("a worth is not a finite number")
