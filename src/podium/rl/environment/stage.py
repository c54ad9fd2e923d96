"""Lays a run out so that it can be begun again and again by copying two blocks of memory."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from podium.policies.fragmentation import typical_pods
from podium.rl.environment.rewards import Account
from podium.rl.environment.tally import TALLY
from podium.rl.environment.world import World
from podium.sim.execution import collect
from podium.sim.kernel.layout import RUN
from podium.sim.plan import Plan
from podium.sim.protocols import Replay, Rounds
from podium.sim.result import Result
from podium.sim.state import (
    CHANGED,
    Arrays,
    State,
    build_state,
    connect,
    connect_memo,
    connect_policy,
    connect_ranking,
)
from podium.sim.stepping import read_only

KEPT_BYTES = 512 << 20
"""Runs that are laid out are kept up to so many bytes; others are laid out again."""

_LINE = 64  # bytes of a cache line, where every array begins


class Stage:
    """Owns the memory of one run, with a copy of how it begins."""

    def __init__(self, plan: Plan, number: int, account: Account) -> None:
        self.plan, self.number = plan, number
        self.environment: int | None = None  # that it tells what happens
        self._state = _packed(plan)
        self._block = _block_of(self._state)
        self._fresh = self._block.copy()
        self.record = self._state.record
        self._typical = np.ascontiguousarray(
            typical_pods(plan.trace.shapes()) if account.has_fragmentation else np.zeros((0, 6))
        )
        self._model_shares = _model_shares(plan)
        self._gpu_weights = np.ascontiguousarray(plan.gpu_weight_milli)
        self.tally = self._tally(account)
        self.run_bytes, self.tally_bytes = self.record.view(np.uint8), self.tally.view(np.uint8)
        self._began = 0.0

    @property
    def size(self) -> int:
        """Counts the bytes that it holds, about."""
        return 3 * self._block.nbytes

    @property
    def nodes(self) -> npt.NDArray[Any]:
        """Shows the nodes in rank order as they are now."""
        return read_only(self._state.arrays["nodes"])

    def pod(self, number: int) -> Any:
        """Gives the record of a pod by its number in order of arrival."""
        arrays = self._state.arrays
        return arrays["shapes"][arrays["shape_of"][number]]

    def restore(self) -> None:
        """Puts everything back as it was before the first pod came."""
        self._block[:] = self._fresh
        self._began = time.perf_counter()

    def ended(self, run: npt.NDArray[np.uint8]) -> Ended:
        """Keeps what a run has come to, so that the stage can be used again."""
        return Ended(self.plan, self._state.arrays, self._block.copy(), run.copy(), self._began)

    def _tally(self, account: Account) -> npt.NDArray[Any]:
        plan, arrays = self.plan, self._state.arrays
        cluster = plan.cluster
        tally = np.zeros(1, TALLY)
        tally["typical"], tally["num_typical"] = self._typical.ctypes.data, len(self._typical)
        tally["model_shares"] = self._model_shares.ctypes.data
        tally["gpu_weights"] = self._gpu_weights.ctypes.data
        tally["has_fragmentation"], tally["has_use"] = account.has_fragmentation, account.has_use
        tally["gpu_total"] = max(1, cluster.gpu_milli_total)
        tally["cpu_total"] = max(1, cluster.cpu_milli_total)
        tally["memory_total"] = max(1, cluster.memory_mib_total)
        tally["level"] = int(self._gpu_weights[: len(plan.bound)].sum())
        tally["wait_scale"] = _wait_scale(plan)
        tally["changes"] = self._state.number("changes")
        tally["clock"] = tally["began"] = float(arrays["arrival"][0])
        return tally


class StagePool:
    """Lays out the runs of a world, and keeps those that nobody plays for the next who does."""

    def __init__(self, world: World, account: Account) -> None:
        self._world, self._account = world, account
        self._idle: dict[int, list[Stage]] = {}
        self._kept_bytes = 0

    def take(self, number: int) -> Stage:
        """Takes the run of a seed, by its place among those of the world."""
        idle = self._idle.get(number)
        if idle:
            self._kept_bytes -= idle[-1].size
            return idle.pop()
        plan = self._world.plan(self._world.seeds[number])
        return Stage(plan, number, self._account)

    def give(self, stage: Stage) -> None:
        """Takes a run back that is played no longer."""
        if self._kept_bytes + stage.size <= KEPT_BYTES:
            self._idle.setdefault(stage.number, []).append(stage)
            self._kept_bytes += stage.size


@dataclass(frozen=True, slots=True, eq=False)
class Ended:
    """What a run has come to."""

    plan: Plan
    arrays: Arrays
    block: npt.NDArray[np.uint8]
    run: npt.NDArray[np.uint8]
    began: float

    def result(self) -> Result:
        """Collects the result."""
        changed = {
            name: part.view(self.arrays[name].dtype).reshape(self.arrays[name].shape)
            for name, part in _parts(self.arrays, self.block).items()
        }
        state = State({**self.arrays, **changed}, self.run.view(RUN))
        return collect(self.plan, state, self.began)


def _packed(plan: Plan) -> State:
    """Builds a run whose changing arrays lie in one block."""
    built = build_state(plan)
    connect_policy(built, plan.policy, 0, np.zeros(1), plan.seed)
    connect_memo(built, has_memo=False)
    connect_ranking(built, is_cached=False)
    sizes = [-(-built.arrays[name].nbytes // _LINE) * _LINE for name in CHANGED]
    raw = np.zeros(sum(sizes) + _LINE, np.uint8)
    start = -raw.ctypes.data % _LINE
    moved: Arrays = {}
    for name, part in _parts(built.arrays, raw[start:]).items():
        old = built.arrays[name]
        moved[name] = part.view(old.dtype).reshape(old.shape)
        moved[name][...] = old
    connect(built, moved, {})
    return built


def _parts(arrays: Arrays, block: npt.NDArray[np.uint8]) -> dict[str, npt.NDArray[np.uint8]]:
    """Cuts a block into what the changing arrays take of it."""
    found, start = {}, 0
    for name in CHANGED:
        size = arrays[name].nbytes
        found[name] = block[start : start + size]
        start += -(-size // _LINE) * _LINE
    return found


def _block_of(state: State) -> npt.NDArray[np.uint8]:
    """Gives the bytes that all changing arrays lie in."""
    first = state.arrays[CHANGED[0]]
    raw = first
    while raw.base is not None:
        raw = raw.base
    start = first.ctypes.data - raw.ctypes.data
    block: npt.NDArray[np.uint8] = raw[start:]
    return block


def _wait_scale(plan: Plan) -> float:
    """Gives what waits are measured in: the mean run time, all rounds, or all arrivals."""
    if isinstance(plan.protocol, Replay) and plan.arrivals.duration_s is not None:
        return float(plan.arrivals.duration_s.mean()) or 1.0
    if isinstance(plan.protocol, Rounds):
        return float(plan.protocol.max_rounds)
    return float(len(plan.arrivals))


def _model_shares(plan: Plan) -> npt.NDArray[np.float64]:
    nodes = plan.cluster.nodes
    is_known = nodes["gpu_model"] >= 0
    count = int(nodes["gpu_model"].max(initial=0)) + 1
    gpus = np.bincount(nodes["gpu_model"][is_known], nodes["gpu_count"][is_known], count)
    return gpus / max(1, int(nodes["gpu_count"].sum()))
