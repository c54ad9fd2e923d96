"""Learns a Q-table: many small clusters at once on the simulator's own core."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from podium.errors import UnknownName
from podium.policies.networks.qtable import (
    AIMS,
    Aim,
    Condensing,
    Table,
    absent_pods,
    facts_of,
)
from podium.rl.configuration import TrainingSection, option
from podium.rl.learner import Arrays, Trained, random_state, restored_generator
from podium.rl.qtable.world import World
from podium.sim import Replay, Setup
from podium.sim.stepping import HOLD_ACTION, VectorEnvironment, stepped_plan

FACTOR = 100.0
"""Rewards are percents, as in the original."""

FIRST_TRAINING_SEED = 1_000_000
"""Seeds of episodes are drawn from here on: far from all that is held out."""

ROOM = 1024
"""States for which a new table has room; it doubles when they are used up."""


@dataclass(frozen=True, slots=True)
class StateSection:
    """How a cluster becomes a state of the table."""

    resources: tuple[str, ...] = option(("memory",), "What counts: cpu, memory, gpu.")
    node_bins: int = option(10, "Bins of the free share of a node.")
    pod_bins: int = option(10, "Bins of what a pod asks for.")
    look_ahead: int = option(1, "Pods in the state: the offered one, and those that come next.")

    def condensing(self) -> Condensing:
        """Returns how states are condensed."""
        return Condensing(self.resources, self.node_bins, self.pod_bins, self.look_ahead)


@dataclass(frozen=True, slots=True)
class LearningSection:
    """How the table learns."""

    aim: str = option("compact", "What is wanted: balance, compact, empty-nodes.")
    gamma: float = option(0.3, "Weight of what comes after the next decision.")
    alpha: float = option(0.3, "Step of the first update of a value ...")
    alpha_least: float = option(0.01, "... and the smallest step, many updates later.")
    epsilon: float = option(0.15, "Share of random decisions at first ...")
    epsilon_least: float = option(0.02, "... and in the end.")
    epsilon_half_life: float = option(300.0, "Episodes after which half of the way is gone.")
    hold_penalty: float = option(1.0, "Costs of holding a pod that would fit, times 100.")
    least_visits: int = option(20, "Visits after which the table is preferred to the aim itself.")
    environments: int = option(20, "Clusters that are simulated at once.")


@dataclass(frozen=True, slots=True)
class Configuration:
    """Everything about the training of a Q-table."""

    world: World = field(default_factory=World)
    state: StateSection = field(default_factory=StateSection)
    learning: LearningSection = field(default_factory=LearningSection)
    training: TrainingSection = field(
        default_factory=lambda: TrainingSection(episodes=2000, save_interval=200)
    )


@dataclass(slots=True)
class GrowingTable:
    """A table that grows with the states that are visited."""

    actions: int
    width: int
    rows: dict[bytes, int] = field(default_factory=dict)
    values: npt.NDArray[np.float64] = field(init=False)
    visits: npt.NDArray[np.int64] = field(init=False)

    def __post_init__(self) -> None:
        self.values = np.zeros((ROOM, self.actions))
        self.visits = np.zeros((ROOM, self.actions), np.int64)

    def row(self, key: bytes) -> int:
        """Finds the row of a state; a new state gets a new one."""
        found = self.rows.setdefault(key, len(self.rows))
        if found == len(self.values):
            self.values = np.concatenate([self.values, np.zeros_like(self.values)])
            self.visits = np.concatenate([self.visits, np.zeros_like(self.visits)])
        return found

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Returns keys, values and visits of the states in order of their first visit."""
        count = len(self.rows)
        keys = np.frombuffer(b"".join(self.rows), np.int16).reshape(count, self.width)
        return {"keys": keys, "values": self.values[:count], "visits": self.visits[:count]}

    def restore(self, arrays: Arrays) -> None:
        """Takes up what `arrays` returned."""
        keys = np.ascontiguousarray(arrays["keys"], np.int16)
        self.rows = {key.tobytes(): i for i, key in enumerate(keys)}
        room = max(ROOM, 1 << (len(keys) - 1).bit_length()) if len(keys) else ROOM
        self.values = np.zeros((room, self.actions))
        self.visits = np.zeros((room, self.actions), np.int64)
        self.values[: len(keys)], self.visits[: len(keys)] = arrays["values"], arrays["visits"]


class QTableLearner:
    """Learns from one episode of each environment in every iteration."""

    def __init__(self, configuration: Configuration, seed: int) -> None:
        self._configuration = configuration
        self._condensing = configuration.state.condensing()
        self._aim = aim_named(configuration.learning.aim)
        size = configuration.world.nodes
        width = (size + self._condensing.look_ahead) * len(self._condensing.resources)
        self._table = GrowingTable(size + 1, width)
        self._random = np.random.default_rng(seed)
        self._episodes = 0
        self._environment: VectorEnvironment | None = None

    def iterate(self) -> Mapping[str, float]:
        """Plays one episode in each environment and learns from every decision."""
        environment = self._begun()
        shown, size, epsilon = environment.observation, len(environment), self._epsilon()
        tried, rewards = np.full((size, 2), -1), np.zeros(size)
        steps, total = 0, 0.0
        while not shown.is_done.all():
            active = ~shown.is_done
            pods = self._pods(environment)
            keys, orders = self._condensing.states(shown.nodes, pods)
            rows = self._rows(keys, active)
            allowed = np.column_stack([np.take_along_axis(shown.feasible, orders, 1),
                                       shown.may_hold])  # fmt: skip
            self._learn(tried, rewards, rows, allowed, active)
            places = self._decided(rows, allowed, self._greedy(environment, orders), epsilon)
            rewards = self._rewards(environment, orders, places)
            tried = np.where(active[:, None], np.column_stack([rows, places]), -1)
            environment.step(_actions(orders, places))
            steps, total = steps + int(active.sum()), total + float(rewards[active].sum())
        self._episodes += size
        return {
            "steps": steps, "episodes": size, "reward": total / max(1, steps),
            "states": len(self._table.rows), "epsilon": epsilon,
        }  # fmt: skip

    def trained(self) -> Trained:
        """Returns the table as it is now."""
        found, learning = self._table.arrays(), self._configuration.learning
        arrays = {name: array.copy() for name, array in found.items()}
        table = Table(
            self._condensing, learning.aim, arrays["keys"], arrays["values"], arrays["visits"],
            learning.least_visits,
        )  # fmt: skip
        return Trained("q-table", arrays, facts_of(table))

    def state(self) -> Arrays:
        """Returns the table, the generator and the number of episodes."""
        counts = np.array([self._episodes], np.int64)
        return {**self._table.arrays(), "random": random_state(self._random), "counts": counts}

    def restore(self, state: Arrays) -> None:
        """Takes up what `state` returned."""
        self._table.restore(state)
        self._random = restored_generator(state["random"])
        self._episodes = int(state["counts"][0])

    def _begun(self) -> VectorEnvironment:
        """Begins an episode in every environment, each with pods of its own seed."""
        world, resources = self._configuration.world, self._condensing.resources
        cluster, plans = world.cluster(resources), []
        for _ in range(self._configuration.learning.environments):
            # Far from the seeds that are held out.
            seed = FIRST_TRAINING_SEED + int(self._random.integers(2**31))
            plans.append(stepped_plan(
                cluster, world.workload(resources, seed), Replay(), Setup(seed)
            ))  # fmt: skip
        return VectorEnvironment(plans)

    def _epsilon(self) -> float:
        of = self._configuration.learning
        share = 0.5 ** (self._episodes / of.epsilon_half_life)
        return of.epsilon_least + (of.epsilon - of.epsilon_least) * float(share)

    def _pods(self, environment: VectorEnvironment) -> npt.NDArray[Any]:
        pods = absent_pods((len(environment), self._condensing.look_ahead))
        pods[:, 0] = environment.observation.pods
        return pods

    def _rows(
        self, keys: npt.NDArray[np.int16], active: npt.NDArray[np.bool_]
    ) -> npt.NDArray[np.int64]:
        found = [self._table.row(key.tobytes()) if on else -1
                 for key, on in zip(keys, active, strict=True)]  # fmt: skip
        return np.array(found, np.int64)

    def _greedy(
        self, environment: VectorEnvironment, orders: npt.NDArray[np.int64]
    ) -> npt.NDArray[Any]:
        """Returns how much the aim likes each place by itself."""
        shown = environment.observation
        grown = self._condensing.greedy(self._aim, shown.pods, shown.nodes)
        return np.take_along_axis(grown, orders, 1)

    def _decided(
        self, rows: npt.NDArray[np.int64], allowed: npt.NDArray[np.bool_],
        greedy: npt.NDArray[Any], epsilon: float,
    ) -> npt.NDArray[np.int64]:  # fmt: skip
        """Chooses a place in the order of each state: the best known one, now and then any."""
        draws = self._random.random((len(rows), allowed.shape[1] + 1))
        is_known = allowed & (self._table.visits[rows] > 0)
        known = np.where(is_known, self._table.values[rows], -np.inf)
        unknown = np.where(allowed[:, :-1], greedy, -np.inf).argmax(axis=1)
        best = np.where(is_known[:, :-1].any(axis=1), known.argmax(axis=1), unknown)
        anything = np.where(allowed, draws[:, 1:], -1.0).argmax(axis=1)
        chosen: npt.NDArray[np.int64] = np.where(draws[:, 0] < epsilon, anything, best)
        return chosen

    def _rewards(
        self, environment: VectorEnvironment, orders: npt.NDArray[np.int64],
        places: npt.NDArray[np.int64],
    ) -> npt.NDArray[np.float64]:  # fmt: skip
        """Returns the worth of all nodes once the pods are placed; a hold costs its penalty."""
        shown, size = environment.observation, len(environment)
        is_held = places == orders.shape[1]
        each = np.arange(size)
        nodes = orders[each, np.where(is_held, 0, places)]
        used = 1 - self._condensing.free(shown.nodes)
        used[each, nodes] += self._condensing.wanted(shown.pods, shown.nodes)[each, nodes]
        worth = self._aim.worth(np.clip(used, 0.0, 1.0)).mean(axis=2).sum(axis=1)
        penalty = self._configuration.learning.hold_penalty
        return np.asarray(FACTOR * np.where(is_held, -penalty, worth), np.float64)

    def _learn(
        self, tried: npt.NDArray[np.int64], rewards: npt.NDArray[np.float64],
        rows: npt.NDArray[np.int64], allowed: npt.NDArray[np.bool_],
        active: npt.NDArray[np.bool_],
    ) -> None:  # fmt: skip
        """Moves the values of what was tried towards what came of it."""
        table, of = self._table, self._configuration.learning
        known = np.where(allowed & (table.visits[rows] > 0), table.values[rows], -np.inf)
        # A state that nobody has seen is taken to go on as the last decision left it.
        ahead = np.where(np.isfinite(known).any(axis=1), known.max(axis=1),
                         rewards / (1 - of.gamma))  # fmt: skip
        targets = (rewards + of.gamma * ahead).tolist()
        for (row, place), target, on in zip(tried.tolist(), targets, active.tolist(), strict=True):
            if row < 0 or not on:  # an episode begins, or was cut off
                continue
            table.visits[row, place] += 1
            count = int(table.visits[row, place])
            step = max(of.alpha_least, of.alpha / (1 + of.alpha * (count - 1)))
            before = table.values[row, place] if count > 1 else target
            table.values[row, place] = before + step * (target - before)


def aim_named(name: str) -> Aim:
    """Finds an aim."""
    if name not in AIMS:
        raise UnknownName.among("aim", name, AIMS, where="learning.aim")
    return AIMS[name]


def _actions(
    orders: npt.NDArray[np.int64], places: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:  # fmt: skip
    """Translates places in the order of a state into nodes; the last place is to hold."""
    width = orders.shape[1]
    nodes = orders[np.arange(len(orders)), np.minimum(places, width - 1)]
    actions: npt.NDArray[np.int64] = np.where(places == width, HOLD_ACTION, nodes)
    return actions
