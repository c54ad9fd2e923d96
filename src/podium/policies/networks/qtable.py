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

from podium.errors import InputError, UnknownName, UsageError
from podium.model.records import GPU_MILLI, POD
from podium.policies.policy import ClusterPolicy
from podium.policies.session import HOLD
from podium.policies.weights import TRAIN_AGAIN, Weights, finite_array

Shares = npt.NDArray[np.floating[Any]]
VERSION = 1
RESOURCES = ("cpu", "memory", "gpu")
_FIELDS = {"cpu": "cpu_milli", "memory": "memory_mib"}
MOST_BINS = 1000
MOST_AHEAD = 64
MOST_NODES = 10_000
MOST_STATES = 100_000_000
MOST_VISITS = 2**53
LARGEST_WORTH = 1e100
"""Beyond it differences and squares of worths are no numbers any more."""
MOST_ERRORS = 10**6
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


@dataclass(frozen=True, slots=True, eq=False)
class Worths:
    """What is known of states, one a row; a column is a place in the order, the last is to hold."""

    values: npt.NDArray[np.float64]
    visits: npt.NDArray[np.int64]
    spreads: npt.NDArray[np.float64]  # variance of what a single visit was worth

    def at(self, rows: Any) -> Worths:
        """Returns what is known of some states."""
        return Worths(self.values[rows], self.visits[rows], self.spreads[rows])


@dataclass(frozen=True, slots=True)
class Care:
    """How much must be known of a place before it is preferred to what the aim takes by itself."""

    least_visits: int = 20
    errors: float = 2.0  # standard errors between the two


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
        bins, given = (self.node_bins, self.pod_bins), set(self.resources)
        is_whole = all(type(n) is int for n in (*bins, self.look_ahead))
        is_short = is_whole and 1 <= self.look_ahead <= MOST_AHEAD
        is_fine = is_short and all(1 <= n <= MOST_BINS for n in bins)
        if not (given and is_fine and len(given) == len(self.resources)):
            raise UsageError(
                f"give resources, each once, 1 to {MOST_BINS} bins, and 1 to {MOST_AHEAD} pods"
            )

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
        self, nodes: npt.NDArray[Any], pods: npt.NDArray[Any], feasible: npt.NDArray[np.bool_]
    ) -> tuple[npt.NDArray[np.int16], npt.NDArray[np.int64]]:
        """Condenses many clusters at once: (clusters, nodes) and (clusters, pods ahead).

        Returns the keys of the states, and the numbers of the nodes in the order of the state. A
        key tells where the offered pod fits, too: within a bin it fits the emptier nodes only, and
        a table that mixed both cases would think ill of full nodes.
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
        fits, flat = np.take_along_axis(feasible, order, 1).astype(np.int16), (len(nodes), -1)
        return np.hstack([sorted_bins.reshape(flat), ahead.reshape(flat), fits]), order

    def width(self, nodes: int) -> int:
        """Counts the numbers of a key."""
        return (nodes + self.look_ahead) * len(self.resources) + nodes

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


def is_worse(
    worths: Worths, best: npt.NDArray[np.int64], care: Care
) -> npt.NDArray[np.bool_]:  # fmt: skip
    """Tells which places are surely worse than the best one of their state."""
    own = best[:, None]
    errors = worths.spreads / np.maximum(1, worths.visits)
    is_known = worths.visits >= care.least_visits
    lead = np.take_along_axis(worths.values, own, 1) - worths.values
    needed = care.errors * np.sqrt(errors + np.take_along_axis(errors, own, 1))
    found: npt.NDArray[np.bool_] = is_known & np.take_along_axis(is_known, own, 1) & (lead > needed)
    return found


def decided(
    worths: Worths, allowed: npt.NDArray[np.bool_], greedy: npt.NDArray[np.int64], care: Care
) -> npt.NDArray[np.int64]:
    """Chooses a place for each state: the best one that is surely better than what the aim takes.

    Arrays have a row for each state and a column for each place, the last of which is to hold.
    """
    flipped = Worths(-worths.values, worths.visits, worths.spreads)
    is_better = allowed & is_worse(flipped, greedy, care)
    best = np.where(is_better, worths.values, -np.inf).argmax(axis=1)
    chosen: npt.NDArray[np.int64] = np.where(is_better.any(axis=1), best, greedy)
    return chosen


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
    """The states that were visited, and what each place was worth there."""

    condensing: Condensing
    aim: str
    keys: npt.NDArray[np.int16]  # (states, condensing.width(nodes))
    worths: Worths  # (states, nodes + 1)
    care: Care

    @property
    def nodes(self) -> int:
        """Counts the nodes of the clusters that the table knows."""
        return int(self.worths.values.shape[1]) - 1

    def sheet(self, most: int = 20) -> str:
        """Writes the states with a choice that were visited most, and what each node is worth."""
        totals = self.worths.visits.sum(axis=1)
        has_choice = self.keys[:, self.keys.shape[1] - self.nodes :].sum(axis=1) > 1
        places = [f"node {i + 1}" for i in range(self.nodes)]
        most_tried = self.worths.visits.max(axis=1, initial=0)
        ranked = np.argsort(-totals * has_choice, kind="stable")
        shown = ranked[most_tried[ranked] >= self.care.least_visits][:most].tolist()
        if not shown:
            return f"{self.description}\n\n{self._unknown}"
        rows = [["free of nodes", "pods", "fits", "visits", *places, "hold"]]
        rows += [[*self._state(i), f"{totals[i]:,}", *self._shown_worths(i)] for i in shown]
        widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
        lines = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True))
                 for row in rows]  # fmt: skip
        return "\n".join([self.description, "", *lines])

    @property
    def _unknown(self) -> str:
        """Says that no worth can be shown, and what would change that."""
        return (
            f"no node was tried {self.care.least_visits:,} times in any state, so there is no "
            "worth to show yet, and every decision is that of the aim; train for more episodes"
        )

    @property
    def description(self) -> str:
        """Describes in words what the table is about."""
        of, visits = self.condensing, int(self.worths.visits.sum())
        return (
            f"{len(self.keys):,} states of {self.nodes} nodes, {visits:,} visits; aim {self.aim}: "
            f"{AIMS[self.aim].summary}\n"
            f"bins of the free {', '.join(of.resources)} of nodes, the fullest first, "
            f"0 to {of.node_bins - 1}; of pods, 0 to {of.pod_bins - 1}\n"
            "worth of each node in that order against the mean; - where it was tried too seldom\n"
            f"{self._learned()}"
        )

    def _learned(self) -> str:
        """Tells how often the table decides otherwise than its aim by itself would."""
        fits = self.keys[:, self.keys.shape[1] - self.nodes :] > 0
        has_choice, visits = fits.sum(axis=1) > 1, self.worths.visits.sum(axis=1)
        allowed = np.column_stack([fits, np.ones(len(fits), np.bool_)])
        own = fits.argmax(axis=1) if self._prefers_full() else _last(fits)
        others = (decided(self.worths, allowed, own, self.care) != own) & has_choice
        share = visits[others].sum() / max(1, visits[has_choice].sum())
        return (
            f"otherwise than the aim by itself it decides in {int(others.sum()):,} of "
            f"{int(has_choice.sum()):,} states with a choice, {share:.1%} of the visits"
        )

    def _prefers_full(self) -> bool:
        """Tells whether the aim by itself takes the fullest node, which stands first."""
        used = np.array([0.1, 0.15, 0.85, 0.9])
        worth = AIMS[self.aim].worth(used)
        return bool(worth[3] - worth[2] >= worth[1] - worth[0])

    def _state(self, state: int) -> list[str]:
        key, size = self.keys[state], self.nodes
        wide = size * len(self.condensing.resources)
        fits = "".join("+" if each else "-" for each in key[len(key) - size :].tolist())
        return [_bins(key[:wide]), _bins(key[wide : len(key) - size]), fits]

    def _shown_worths(self, state: int) -> list[str]:
        both = zip(self.worths.values[state], self.worths.visits[state], strict=True)
        return [f"{value:.1f}" if visits >= self.care.least_visits else "-"
                for value, visits in both]  # fmt: skip


def _last(fits: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
    last: npt.NDArray[np.int64] = fits.shape[1] - 1 - fits[:, ::-1].argmax(axis=1)
    return last


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
        """Gives the node that is surely worth most, or HOLD."""
        _, order, place = self._asked(pod, nodes, feasible)
        return HOLD if place == len(order) else int(order[place])

    def scores(
        self, pod: Any, nodes: npt.NDArray[Any], feasible: npt.NDArray[np.bool_]
    ) -> Shares:  # fmt: skip
        """Gives the worth of every node, the chosen one's the highest; all HOLD for a hold."""
        worths, order, place = self._asked(pod, nodes, feasible)
        found = np.full(len(nodes), HOLD)
        if place < len(order):
            found[order] = worths
            found[~feasible] = HOLD
            # What is not surely better is not preferred, even where its mean is higher.
            others = np.delete(found, order[place])
            found[order[place]] = max(found[order[place]], np.max(others, initial=HOLD))
            found[order[place]] = np.nextafter(found[order[place]], np.inf)
        return found

    def _asked(
        self, pod: Any, nodes: npt.NDArray[Any], feasible: npt.NDArray[np.bool_]
    ) -> tuple[Shares, npt.NDArray[np.int64], int]:
        """Returns the worth of each place, the nodes in that order, and the place to take."""
        table, pods = self._table, self._pods(pod)
        keys, orders = table.condensing.states(nodes[None], pods[None], feasible[None])
        order = orders[0]
        grown = table.condensing.greedy(AIMS[table.aim], pods[:1], nodes[None])[0][order]
        greedy = int(np.where(feasible[order], grown, -np.inf).argmax())
        row = self._rows.get(keys[0].tobytes()) if len(nodes) == table.nodes else None
        if row is None:
            return grown, order, greedy
        allowed = np.append(feasible[order], True)[None]
        worths = table.worths.at([row])
        place = int(decided(worths, allowed, np.array([greedy]), table.care)[0])
        return worths.values[0, :-1], order, place

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
        origin="trained", may_hold=True, text=table.sheet(),
    )  # fmt: skip


def facts_of(table: Table) -> dict[str, Any]:
    """Describes a table as its card does."""
    of, care = table.condensing, table.care
    return {
        "table_version": VERSION, "aim": table.aim, "resources": list(of.resources),
        "node_bins": of.node_bins, "pod_bins": of.pod_bins, "look_ahead": of.look_ahead,
        "nodes": table.nodes, "states": len(table.keys), "least_visits": care.least_visits,
        "errors": care.errors,
    }  # fmt: skip


def read_table(weights: Weights) -> Table:
    """Reads a table from arrays and card, and checks that they fit together."""
    where = f"card of {weights.name}"
    try:
        of, aim, errors = _read_card(weights.card)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError, UsageError) as error:
        raise InputError(f"not a Q-table: {error}", where=where, hint=TRAIN_AGAIN) from error
    if aim not in AIMS:
        raise UnknownName.among("aim", aim, AIMS, where=where)
    care = Care(weights.whole_number("least_visits", 0, MOST_VISITS), errors)
    return Table(of, aim, *_read_arrays(weights, of), care)


def _read_card(card: Mapping[str, Any]) -> tuple[Condensing, str, float]:
    if card["table_version"] != VERSION:
        raise ValueError(f"this Podium reads tables of version {VERSION}")
    of = Condensing(
        tuple(card["resources"]), card["node_bins"], card["pod_bins"], card["look_ahead"]
    )
    errors = float(card["errors"])
    if not 0 <= errors <= MOST_ERRORS:
        raise ValueError(f"errors is {errors}, not a number from 0 to {MOST_ERRORS:,}")
    return of, str(card["aim"]), errors


def _read_arrays(
    weights: Weights, of: Condensing
) -> tuple[npt.NDArray[np.int16], Worths]:  # fmt: skip
    """Returns the keys and what is known, once the card has said how large they may be."""
    nodes = weights.whole_number("nodes", 1, MOST_NODES)
    states = weights.whole_number("states", 0, MOST_STATES)

    def array(name: str, width: int, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        return finite_array(weights.arrays, name, (states, width), dtype, weights.name)

    keys, places = array("keys", of.width(nodes), np.int16), nodes + 1
    found = Worths(
        array("values", places, np.float64), array("visits", places, np.int64),
        array("spreads", places, np.float64),
    )  # fmt: skip
    is_worth = np.abs(found.values) <= LARGEST_WORTH
    is_spread = (found.spreads >= 0) & (found.spreads <= LARGEST_WORTH)
    if not (is_worth & is_spread & (found.visits >= 0)).all():
        raise InputError(
            "a worth, a spread or a count of visits is out of range", where=weights.name,
            hint=TRAIN_AGAIN,
        )  # fmt: skip
    return keys, found
