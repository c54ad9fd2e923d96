"""The vector environment: many runs at once, each begun again by itself when it is over.

The rules are those of `simulate`, played by the same kernel. What is shown is written in place:
copy what must outlive the next step. Importing this imports Numba.
"""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np
import numpy.typing as npt

from podium.errors import UsageError
from podium.model.records import pod_view
from podium.policies.networks.features import CONTEXT_FEATURES, NODE_FEATURES, POD_FEATURES
from podium.rl.environment.advance import advancer
from podium.rl.environment.observation import MOST_AHEAD
from podium.rl.environment.rewards import (
    PARTS,
    Account,
    Outcome,
    Reward,
    RewardFunction,
    weights_of,
)
from podium.rl.environment.stage import Ended, Stage, StagePool
from podium.rl.environment.tally import SEEN, TALLY
from podium.rl.environment.world import World
from podium.sim.interrupt import insistent
from podium.sim.kernel import Variant
from podium.sim.kernel.layout import RECORDS, RUN
from podium.sim.plan import Plan
from podium.sim.result import Result
from podium.sim.stepping import Offer, read_only, whole_numbers

ANY_SLOT = -1
"""Leaves the GPU of a share pod to the run's rule."""

ENDLESS = 2**62
KEPT_RESULTS = 256

Actions = npt.NDArray[np.int64]


class Placement:
    """Steps environments by one compiled call; nodes are numbered by rank, as policies see them.

    An action is the number of a node that fits, or `num_nodes` to hold the pod back. Environment i
    of E begins with the world's seed number i after the first, and goes on with every E-th.
    """

    def __init__(
        self, world: World, environments: int = 1, *, look_ahead: int = 4,
        reward: Reward = "gpu-allocation", max_steps: int | None = None, seed: int = 1000,
    ) -> None:  # fmt: skip
        _check(environments, look_ahead, max_steps)
        self.world, self.look_ahead, self.max_steps = world, look_ahead, max_steps
        weights = weights_of(reward)
        self._function: RewardFunction | None = reward if callable(reward) else None
        self._weights = np.zeros(len(PARTS)) if weights is None else weights
        self._pool = StagePool(world, Account.of(weights))
        self._numbers = np.arange(environments)
        self._first = self._number_of(seed)
        self._stages = [self._pool.take(self._plan_number(i, 0)) for i in range(environments)]
        self.num_nodes = max(len(stage.plan.cluster) for stage in self._stages)
        self._make_room(environments)
        for i, stage in enumerate(self._stages):
            self._connect(i, stage)
        self._choose_core()
        self._begin(self._numbers)

    def __len__(self) -> int:
        return len(self._stages)

    def reset(self, seed: int | None = None) -> None:
        """Begins all environments again, with the world's first seeds or from another one on."""
        if seed is not None:
            self._first = self._number_of(seed)
        self._episodes[:] = -1
        for i in range(len(self)):
            self._move_on(i)
        self._ended.clear()
        self._clear()
        self._begin(self._numbers)

    def skip(self) -> None:
        """Leaves all episodes as they are and begins the next of each environment."""
        for i in range(len(self)):
            self._move_on(i)
        self._clear()
        self._begin(self._numbers)

    def step(self, actions: Actions, slots: Actions | None = None) -> None:
        """Decides the offered pod of every environment, and shows the next one.

        A slot is the GPU of a pod that asks for a part of one; the run's rule picks it if no slots
        are given. If one action is refused, nothing moves.

        Raises:
            UsageError: an action is no node that fits.
        """
        acted = whole_numbers(actions, len(self), "actions")
        chosen = self._any_slots if slots is None else whole_numbers(slots, len(self), "slots")
        if self._function is not None:
            self._is_held[:] = (acted == self.num_nodes) & self.mask[:, -1]
        over = self._advance(self._runs_seen, self._tallies, self._numbers, acted, chosen)
        if over < 0:
            raise self._refusal(-1 - over, int(acted[-1 - over]), int(chosen[-1 - over]))
        self._settle(over)

    def finished(self) -> list[Result]:
        """Gives the results of episodes that ended since the last call, the latest 256 at most."""
        results = [each.result() for each in self._ended]
        self._ended.clear()
        return results

    def plan(self, environment: int) -> Plan:
        """Gives the plan that an environment runs now."""
        return self._stages[environment].plan

    def offer(self, environment: int) -> Offer:
        """Shows the offered pod and the nodes as policies see them, to ask one what it would do."""
        stage, run = self._stages[environment], self._runs[environment]
        number, size = int(run["offered"]), len(stage.plan.cluster)
        return Offer(
            name=stage.plan.arrivals.names[number],
            pod=pod_view(stage.pod(number)),
            nodes=stage.nodes,
            feasible=read_only(self.mask)[environment, :size],
            may_hold=bool(self.mask[environment, -1]),
            clock_s=float(run["clock"]),
        )

    def _make_room(self, size: int) -> None:
        width = self.num_nodes
        self.nodes = np.zeros((size, width, NODE_FEATURES), np.float32)
        self.pods = np.zeros((size, 1 + self.look_ahead, POD_FEATURES), np.float32)
        self.context = np.zeros((size, CONTEXT_FEATURES), np.float32)
        self.mask = np.zeros((size, width + 1), np.bool_)
        self.reward = np.zeros(size, np.float32)
        self.is_done, self.is_truncated = np.zeros(size, np.bool_), np.zeros(size, np.bool_)
        # Of the episode that ended last in each environment.
        self.final_allocation, self.final_return = np.full(size, np.nan), np.full(size, np.nan)
        self.final_steps = np.zeros(size, np.int64)
        self.final: dict[int, dict[str, npt.NDArray[Any]]] = {}
        self._was_over, self._nobody = False, np.zeros(0, np.int64)
        self._is_held = np.zeros(size, np.bool_)
        self._allocation = np.full(size, np.nan)
        self._parts = np.zeros((size, len(PARTS)))
        self._seen = np.zeros((size, width, SEEN))
        self._ahead = np.zeros((size, 2, MOST_AHEAD), np.int64)
        self._any_slots = np.full(size, ANY_SLOT, np.int64)
        self._episodes = np.zeros(size, np.int64)
        self._runs, self._tallies = np.zeros(size, RUN), np.zeros(size, TALLY)
        # NumPy copies records field by field, which takes longer than all the rest.
        self._run_bytes = self._runs.view(np.uint8).reshape(size, -1)
        self._tally_bytes = self._tallies.view(np.uint8).reshape(size, -1)
        self._ended: deque[Ended] = deque(maxlen=max(KEPT_RESULTS, size))
        self._places = self._addresses()
        self.outcome = Outcome.of(self._parts, self._is_held, self.is_done, self._allocation)

    def _addresses(self) -> dict[str, list[int]]:
        """Says where each environment shows what, and keeps its account."""
        own: dict[str, npt.NDArray[Any]] = {
            "nodes": self.nodes, "pods": self.pods, "context": self.context, "seen": self._seen,
            "ahead": self._ahead, "parts": self._parts, "mask": self.mask, "reward": self.reward,
        }  # fmt: skip
        places = {
            name: [array.ctypes.data + i * array.strides[0] for i in range(len(array))]
            for name, array in own.items()
        }
        places["may_hold"] = [address + self.num_nodes for address in places["mask"]]
        return places

    def _clear(self) -> None:
        for array in (self.reward, self.is_done, self.is_truncated, self._parts):
            array[...] = 0
        self._allocation[:] = np.nan
        self.final = {}

    def _begin(self, which: Actions) -> None:
        """Begins environments on their stages; those with nothing to decide take the next plan."""
        tries = 0
        while len(which):
            for i in which.tolist():
                stage = self._stages[i]
                stage.restore()
                self._run_bytes[i], self._tally_bytes[i] = stage.run_bytes, stage.tally_bytes
            self._advance(self._runs_seen, self._tallies, which, self._any_slots, self._any_slots)
            which = which[self._tallies["is_done"][which] != 0]
            tries += 1
            if len(which) and tries > len(self.world.seeds):
                raise UsageError(
                    "no pod of this world fits any node", where="argument world",
                    hint="give pods that the nodes of the cluster can run",
                )  # fmt: skip
            for i in which.tolist():
                self._move_on(i)

    def _connect(self, i: int, stage: Stage) -> None:
        """Tells a run where its environment shows what."""
        stage.environment = i
        for name in ("nodes", "pods", "context", "may_hold", "seen", "ahead", "parts", "reward"):
            stage.tally[name] = self._places[name][i]
        stage.tally["look_ahead"], stage.tally["hold_action"] = self.look_ahead, self.num_nodes
        stage.tally["most_steps"] = self.max_steps or ENDLESS
        stage.tally["weights"] = self._weights.ctypes.data
        stage.record["feasible"] = self._places["mask"][i]

    def _settle(self, over: int) -> None:
        """Rewards the step, and begins what is over anew."""
        if self._was_over:
            self.is_done[:] = self.is_truncated[:] = False
        self._was_over = bool(over)
        which = self._end(np.flatnonzero(self._tallies["is_done"])) if over else self._nobody
        if self._function is not None:
            self._pay(self._function)
        for i in which.tolist():
            self.final_return[i] = self._tallies["returned"][i]
            self._move_on(i)
        if over:
            self._begin(which)

    def _end(self, which: Actions) -> Actions:
        """Notes how the episodes of some environments ended."""
        self.is_done[which] = True
        self.is_truncated[which] = self._tallies["is_truncated"][which] != 0
        self._allocation[which] = self.final_allocation[which] = self._tallies["allocation"][which]
        self.final_steps[which] = self._tallies["steps"][which]
        for i in which.tolist():
            self._ended.append(self._stages[i].ended(self._run_bytes[i]))
            if self.is_truncated[i]:
                shown = {"nodes": self.nodes, "pods": self.pods, "context": self.context}
                self.final[i] = {name: array[i].copy() for name, array in shown.items()}
        return which

    def _pay(self, function: RewardFunction) -> None:
        paid = np.asarray(function(self.outcome))
        if paid.dtype.kind not in "biuf" or paid.shape not in ((), self.reward.shape):
            raise UsageError(
                f"the reward function returned {paid.dtype} of shape {paid.shape}",
                where="argument reward",
                hint=f"one number for each of the {len(self)} environments is expected",
            )
        if not np.isfinite(paid).all():
            raise UsageError(
                f"the reward function returned {paid[~np.isfinite(paid)].flat[0]}",
                where="argument reward", hint="return finite numbers: final_allocation is NaN "
                "until an episode ends",
            )  # fmt: skip
        self.reward[:] = paid
        self._tallies["returned"] += self.reward
        self._allocation[:] = np.nan

    def _move_on(self, i: int) -> None:
        """Gives an environment the next plan that is its own."""
        self._episodes[i] += 1
        number = self._plan_number(i, int(self._episodes[i]))
        self._pool.give(self._stages[i])
        self._stages[i] = stage = self._pool.take(number)
        if stage.environment != i:
            self._connect(i, stage)
        size = len(stage.plan.cluster)
        if size > self.num_nodes:
            raise UsageError(
                f"the cluster of seed {stage.plan.seed} has {size:,} nodes, there is room for "
                f"{self.num_nodes:,}",
                where="argument world", hint="draw clusters of one size",
            )  # fmt: skip
        if size < self.num_nodes:
            self.nodes[i, size:], self.mask[i, size:] = 0, False
        if not stage.plan.is_plain and self._variant == "plain":
            self._choose_core()

    def _number_of(self, seed: int) -> int:
        """Finds a seed among those of the world; any other number stands for one of them."""
        seeds = self.world.seeds
        return seeds.index(seed) if seed in seeds else seed % len(seeds)

    def _plan_number(self, i: int, episode: int) -> int:
        """Names the seed of an episode by its place; each belongs to one environment alone."""
        count = len(self.world.seeds)
        own = max(1, -(-(count - i) // len(self._numbers)))
        return (self._first + i + len(self._numbers) * (episode % own)) % count

    def _choose_core(self) -> None:
        """Takes the plain core, unless some run needs the other."""
        are_plain = all(stage.plan.is_plain for stage in self._stages)
        self._variant: Variant = "plain" if are_plain else "full"
        with insistent():
            self._advance = advancer(self._variant)
        self._runs_seen = self._runs.view(RECORDS[self._variant])

    def _refusal(self, i: int, action: int, slot: int) -> UsageError:
        plan = self._stages[i].plan
        pod = f'environment {i}, pod "{plan.arrivals.names[self._runs["offered"][i]]}"'
        if not 0 <= action < len(plan.cluster):
            said = f"{action} is neither a node nor {self.num_nodes}, which holds the pod"
        elif not self.mask[i, action]:
            name = plan.cluster.names[plan.rank_order[action]]
            said = f'the pod does not fit node {action} ("{name}")'
        else:
            said = f"the pod does not fit GPU {slot} of node {action}"
        return UsageError(said, where=pod, hint="choose among the actions that the mask allows")


def _check(environments: int, look_ahead: int, max_steps: int | None) -> None:
    if environments < 1:
        raise UsageError(f"environments is {environments}", hint="at least 1 is expected")
    if not 0 <= look_ahead <= MOST_AHEAD:
        raise UsageError(
            f"look_ahead is {look_ahead}", hint=f"a number from 0 to {MOST_AHEAD} is expected"
        )
    if max_steps is not None and max_steps < 1:
        raise UsageError(f"max_steps is {max_steps}", hint="at least 1 is expected")
