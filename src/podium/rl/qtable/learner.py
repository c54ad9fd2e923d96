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
    MOST_BINS,
    MOST_ERRORS,
    RESOURCES,
    Aim,
    Care,
    Condensing,
    Table,
    Worths,
    absent_pods,
    decided,
    facts_of,
    is_worse,
)
from podium.rl.configuration import TrainingSection, Unfit, option
from podium.rl.learner import Arrays, Trained, count_of, like, random_state, restored_generator
from podium.rl.qtable.world import World
from podium.sim import Replay, Setup
from podium.sim.stepping import HOLD_ACTION, VectorEnvironment, stepped_plan

FACTOR = 100.0
"""Rewards are percents, as in the original."""

FIRST_TRAINING_SEED = 1_000_000
"""Seeds of episodes are drawn from here on: far from all that is held out."""

STEP_POWER = 0.8
"""Steps shrink more slowly than 1 / visits, so that what the table knew at first is forgotten."""

ROOM = 1024
"""States for which a new table has room; it doubles when they are used up."""


@dataclass(frozen=True, slots=True)
class StateSection:
    """How a cluster becomes a state of the table."""

    resources: tuple[str, ...] = option(
        ("memory",), "What counts: cpu, memory, gpu.", among=RESOURCES
    )
    node_bins: int = option(10, "Bins of the free share of a node.", least=1, most=MOST_BINS)
    pod_bins: int = option(10, "Bins of what a pod asks for.", least=1, most=MOST_BINS)
    look_ahead: int = option(
        1, "Pods in the state: the offered one, and those that come next.", least=1, most=64
    )

    def __post_init__(self) -> None:
        if len(set(self.resources)) < len(self.resources):
            raise Unfit("resources", list(self.resources), "each resource once")

    def condensing(self) -> Condensing:
        """Returns how states are condensed."""
        return Condensing(self.resources, self.node_bins, self.pod_bins, self.look_ahead)


@dataclass(frozen=True, slots=True)
class LearningSection:
    """How the table learns."""

    aim: str = option("compact", "What is wanted: balance, compact, empty-nodes.", among=AIMS)
    gamma: float = option(
        0.9,
        "Weight of what comes later, by the mean time between arrivals.",
        least=0,
        most=0.999999,
    )
    alpha: float = option(0.3, "Step of the first update of a value ...", least=1e-9, most=1)
    alpha_least: float = option(
        0.0002, "... and the smallest step, many updates later.", least=0, most=1
    )
    epsilon: float = option(0.25, "Share of random decisions at first ...", least=0, most=1)
    epsilon_least: float = option(0.15, "... and in the end.", least=0, most=1)
    epsilon_half_life: float = option(
        1000.0, "Episodes after which half of the way is gone.", least=1e-3, most=10**9
    )
    hold_penalty: float = option(
        1.0, "Costs of holding a pod that would fit, times 100.", least=0, most=10**6
    )
    least_visits: int = option(
        50, "Visits of a node before it is preferred to the aim's own ...", least=1, most=10**9
    )
    errors: float = option(
        4.0, "... and by how many standard errors it must be better.", least=0, most=MOST_ERRORS
    )
    environments: int = option(
        100, "Clusters at once: an iteration is one episode in each.", least=1, most=10_000
    )


@dataclass(frozen=True, slots=True)
class Configuration:
    """Everything about the training of a Q-table."""

    world: World = field(default_factory=World)
    state: StateSection = field(default_factory=StateSection)
    learning: LearningSection = field(default_factory=LearningSection)
    training: TrainingSection = field(
        default_factory=lambda: TrainingSection(episodes=6000, save_interval=1000)
    )


@dataclass(slots=True)
class GrowingTable:
    """A table that grows with the states that are visited."""

    actions: int
    width: int
    rows: dict[bytes, int] = field(default_factory=dict)
    worths: Worths = field(init=False)

    def __post_init__(self) -> None:
        self.worths = _nothing(ROOM, self.actions)

    def row(self, key: bytes) -> int:
        """Finds the row of a state; a new state gets a new one."""
        found = self.rows.setdefault(key, len(self.rows))
        size = len(self.worths.values)
        if found == size:
            self._make_room(2 * size, self.worths)
        return found

    def _make_room(self, size: int, known: Worths) -> None:
        self.worths, count = _nothing(size, self.actions), len(known.values)
        self.worths.values[:count] = known.values
        self.worths.visits[:count] = known.visits
        self.worths.spreads[:count] = known.spreads

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Returns keys, values and visits of the states in order of their first visit."""
        count = len(self.rows)
        keys = np.frombuffer(b"".join(self.rows), np.int16).reshape(count, self.width)
        known = self.worths.at(slice(count))
        return {
            "keys": keys, "values": known.values, "visits": known.visits, "spreads": known.spreads
        }  # fmt: skip

    def restore(self, arrays: Arrays) -> None:
        """Takes up what `arrays` returned."""
        count = len(arrays["keys"])
        keys = np.ascontiguousarray(like(np.empty((count, self.width), np.int16), arrays, "keys"))
        known = _nothing(count, self.actions)
        known = Worths(
            like(known.values, arrays, "values"), like(known.visits, arrays, "visits"),
            like(known.spreads, arrays, "spreads"),
        )  # fmt: skip
        self.rows = {key.tobytes(): i for i, key in enumerate(keys)}
        if len(self.rows) < count:
            raise ValueError("a state is there twice")
        room = max(ROOM, 1 << (count - 1).bit_length()) if count else ROOM
        self._make_room(room, known)


def _nothing(states: int, actions: int) -> Worths:
    size = (states, actions)
    return Worths(np.zeros(size), np.zeros(size, np.int64), np.zeros(size))


@dataclass(frozen=True, slots=True, eq=False)
class _Left:
    """What the last decisions left behind, by environment."""

    worth: npt.NDArray[np.float64]
    is_held: npt.NDArray[np.bool_]
    clock_s: npt.NDArray[np.float64]

    @classmethod
    def nothing(cls, size: int) -> _Left:
        return cls(np.zeros(size), np.zeros(size, np.bool_), np.zeros(size))


@dataclass(frozen=True, slots=True, eq=False)
class _Earned:
    """What came of the last decisions, and how much less counts what comes afterwards."""

    rewards: npt.NDArray[np.float64]
    discounts: npt.NDArray[np.float64]


class QTableLearner:
    """Learns from one episode of each environment in every iteration."""

    def __init__(self, configuration: Configuration, seed: int) -> None:
        self._configuration = configuration
        self._condensing = configuration.state.condensing()
        self._aim = aim_named(configuration.learning.aim)
        self._care = Care(configuration.learning.least_visits, configuration.learning.errors)
        size = configuration.world.nodes
        self._table = GrowingTable(size + 1, self._condensing.width(size))
        self._random = np.random.default_rng(seed)
        self._episodes = 0
        self._mean, self._measured = 0.0, np.zeros(2)

    def iterate(self) -> Mapping[str, float]:
        """Plays one episode in each environment and learns from every decision."""
        environment = self._begun()
        shown, size, epsilon = environment.observation, len(environment), self._epsilon()
        tried, left = np.full((size, 2), -1), _Left.nothing(size)
        steps, total = 0, 0.0
        while not shown.is_done.all():
            active = ~shown.is_done
            earned = self._earned(left, environment, tried[:, 0] >= 0)
            pods = self._pods(environment)
            keys, orders = self._condensing.states(shown.nodes, pods, shown.feasible)
            rows = self._rows(keys, active)
            allowed = np.column_stack([np.take_along_axis(shown.feasible, orders, 1),
                                       shown.may_hold])  # fmt: skip
            best = self._best(environment, rows, orders, allowed)
            if self._is_measured:
                self._learn(tried, earned, np.column_stack([rows, best]), active)
            places = self._explored(rows, best, allowed, epsilon)
            left = self._left(environment, orders, places)
            tried = np.where(active[:, None], np.column_stack([rows, places]), -1)
            environment.step(_actions(orders, places))
            steps, total = steps + int(active.sum()), total + float(left.worth[active].sum())
        self._end_measuring()
        self._episodes += size
        return {
            "steps": steps, "episodes": size, "reward": total / max(1, steps),
            "worth": self._mean, "states": len(self._table.rows), "epsilon": epsilon,
        }  # fmt: skip

    @property
    def _is_measured(self) -> bool:
        """Tells whether the mean worth is known: the first iteration measures it.

        It must not move while values are learned: what is tried more in the beginning would look
        better or worse than what is tried later.
        """
        return self._episodes > 0

    def _end_measuring(self) -> None:
        if not self._is_measured:
            self._mean = float(self._measured[0] / self._measured[1])

    def trained(self) -> Trained:
        """Returns the table as it is now."""
        found, learning = self._table.arrays(), self._configuration.learning
        arrays = {name: array.copy() for name, array in found.items()}
        worths = Worths(arrays["values"], arrays["visits"], arrays["spreads"])
        table = Table(self._condensing, learning.aim, arrays["keys"], worths, self._care)
        return Trained("q-table", arrays, facts_of(table))

    def state(self) -> Arrays:
        """Returns the table, the generator and the number of episodes."""
        means = np.array([self._mean])
        return {
            **self._table.arrays(), "random": random_state(self._random), "means": means,
            "counts": np.array([self._episodes], np.int64),
        }  # fmt: skip

    def restore(self, state: Arrays) -> None:
        """Takes up what `state` returned."""
        self._table.restore(state)
        self._random = restored_generator(state["random"])
        self._episodes = count_of(state, "counts")
        self._mean = float(like(np.zeros(1), state, "means")[0])

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
        if self._condensing.look_ahead > 1:
            for i in np.flatnonzero(~environment.observation.is_done).tolist():
                ahead = environment.situation(i, self._condensing.look_ahead - 1).ahead
                pods[i, 1 : 1 + len(ahead)] = ahead
        return pods

    def _rows(
        self, keys: npt.NDArray[np.int16], active: npt.NDArray[np.bool_]
    ) -> npt.NDArray[np.int64]:
        found = [self._table.row(key.tobytes()) if on else -1
                 for key, on in zip(keys, active, strict=True)]  # fmt: skip
        return np.array(found, np.int64)

    def _best(
        self, environment: VectorEnvironment, rows: npt.NDArray[np.int64],
        orders: npt.NDArray[np.int64], allowed: npt.NDArray[np.bool_],
    ) -> npt.NDArray[np.int64]:  # fmt: skip
        """Returns the place that the table takes as it is now."""
        shown = environment.observation
        grown = self._condensing.greedy(self._aim, shown.pods, shown.nodes)
        grown = np.take_along_axis(grown, orders, 1)
        greedy = np.where(allowed[:, :-1], grown, -np.inf).argmax(axis=1)
        return decided(self._table.worths.at(rows), allowed, greedy, self._care)

    def _explored(
        self, rows: npt.NDArray[np.int64], best: npt.NDArray[np.int64],
        allowed: npt.NDArray[np.bool_], epsilon: float,
    ) -> npt.NDArray[np.int64]:  # fmt: skip
        """Takes the best place, and now and then any that may still turn out to be better."""
        draws = self._random.random((len(best), allowed.shape[1] + 1))
        is_open = allowed & ~is_worse(self._table.worths.at(rows), best, self._care)
        anything = np.where(is_open, draws[:, 1:], -1.0).argmax(axis=1)
        chosen: npt.NDArray[np.int64] = np.where(draws[:, 0] < epsilon, anything, best)
        return chosen

    def _left(
        self, environment: VectorEnvironment, orders: npt.NDArray[np.int64],
        places: npt.NDArray[np.int64],
    ) -> _Left:  # fmt: skip
        """Returns what the decisions leave behind: the worth of all nodes with the pods placed."""
        shown, each = environment.observation, np.arange(len(environment))
        is_held = places == orders.shape[1]
        nodes = orders[each, np.where(is_held, 0, places)]
        used = 1 - self._condensing.free(shown.nodes)
        wanted = self._condensing.wanted(shown.pods, shown.nodes)[each, nodes]
        used[each, nodes] += np.where(is_held[:, None], 0.0, wanted)
        return _Left(self._worth(used), is_held, shown.clock_s.copy())

    def _worth(self, used: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
        worth = self._aim.worth(np.clip(used, 0.0, 1.0)).mean(axis=(1, 2))
        return np.asarray(FACTOR * worth, np.float64)

    def _earned(
        self, left: _Left, environment: VectorEnvironment, is_tried: npt.NDArray[np.bool_]
    ) -> _Earned:
        """Returns by how much the worth was above its mean since the last decisions, over time.

        Both reward and discount go by time, in mean spans between arrivals, and not by decisions:
        a policy cannot earn more by being asked more or less often.
        """
        shown = environment.observation
        spans_s = np.where(is_tried, shown.clock_s - left.clock_s, 0.0)
        now = self._worth(1 - self._condensing.free(shown.nodes))
        worths = (left.worth + now) / 2
        of = self._configuration.learning
        discounts = of.gamma ** (spans_s / self._configuration.world.span_s)
        rewards = (worths - self._mean) * (1 - discounts) / (1 - of.gamma)
        rewards -= np.where(left.is_held, FACTOR * of.hold_penalty, 0.0)
        if not self._is_measured:
            self._measured += float((worths * spans_s).sum()), float(spans_s.sum())
        return _Earned(rewards, discounts)

    def _learn(
        self, tried: npt.NDArray[np.int64], earned: _Earned,
        then: npt.NDArray[np.int64], active: npt.NDArray[np.bool_],
    ) -> None:  # fmt: skip
        """Moves the values of what was tried towards what came of it, and what it led to."""
        of, known = self._configuration.learning, self._table.worths
        # A place that nobody has tried is taken to be as good as the mean: 0.
        targets = earned.rewards + earned.discounts * known.values[then[:, 0], then[:, 1]]
        for (row, place), target, on in zip(
            tried.tolist(), targets.tolist(), active.tolist(), strict=True
        ):
            if row < 0 or not on:  # an episode begins, or was cut off
                continue
            known.visits[row, place] += 1
            count = int(known.visits[row, place])
            step = max(of.alpha_least, of.alpha / (1 + of.alpha * (count - 1)) ** STEP_POWER)
            away = target - known.values[row, place] if count > 1 else 0.0
            known.values[row, place] = target + (step - 1) * away
            known.spreads[row, place] += step * (away * away - known.spreads[row, place])


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
