"""Asks a candidate for decisions on fixed states: equal answers are taken for equal candidates.

A decision signature recognises a candidate that is only written differently before a single
simulation is spent on it; what it decides also says how it behaves: packs or spreads, by GPU or
by CPU.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from podium.evaluation.cases import Case
from podium.evaluation.splits import FIRST_SEED
from podium.model.fit import fitting_nodes, fitting_slots
from podium.model.records import GPU_MILLI
from podium.policies import load
from podium.policies.states import States
from podium.search.candidate.verdict import Decisions
from podium.sim.execution import execute
from podium.sim.state_at import state_at

POLICIES = ("first-fit", "worst-fit", "best-fit")
"""The policies that filled the clusters of the probe."""

FILLED = (0.3, 0.6, 0.8, 0.95)
PODS = 8
MOST_NODES = 10

_VERSION = 2
"""Changes whenever the states do: signatures of other states must never match."""

_CASE = Case(nodes=40, pods=500, seed=FIRST_SEED)


@dataclass(frozen=True, slots=True, eq=False)
class Probe:
    """The situations: rows of states, a run of them for each decision."""

    states: States
    first: npt.NDArray[np.int64]  # (num_situations,) where the rows of a situation begin
    traits: npt.NDArray[np.float64]  # (num_states, 3) how the node ranks among the others, 0 to 1

    @classmethod
    def build(cls) -> Probe:
        """Fills small clusters by three policies, and stops at four moments."""
        situations = [each for name in POLICIES for each in _situations(name)]
        pods = np.concatenate([pods for pods, _, _ in situations])
        nodes = np.concatenate([nodes for _, nodes, _ in situations])
        gpus = np.concatenate([gpus for _, _, gpus in situations])
        sizes = np.array([len(pods) for pods, _, _ in situations])
        traits = np.concatenate([_traits(nodes) for _, nodes, _ in situations])
        return cls(States(pods, nodes, gpus), np.cumsum(sizes) - sizes, traits)

    def decide(self, scores: npt.NDArray[np.float64], *, takes_gpu: bool = False) -> Decisions:
        """Turns the scores of all states into decisions: the best row of each situation, or none.

        A candidate that names no GPU gets the fullest that fits, others what they name: two such
        candidates differ even where all their scores are alike.
        """
        best = np.maximum.reduceat(scores, self.first)
        sizes = np.diff(self.first, append=len(scores))
        is_best = scores == np.repeat(best, sizes)
        rows = np.flatnonzero(is_best)
        situation = np.repeat(np.arange(len(self.first)), sizes)[rows]
        chosen = rows[np.unique(situation, return_index=True)[1]]
        is_held = ~np.isfinite(best)
        told = np.where(is_held, -1, chosen - self.first).astype(np.int16)
        behaviour = (
            [*self.traits[chosen][~is_held].mean(axis=0)] if not is_held.all() else [0.5] * 3
        )
        rounded = tuple(round(float(each), 4) for each in (*behaviour, is_held.mean()))
        digest = hashlib.sha256(told.tobytes() + bytes([takes_gpu, _VERSION])).hexdigest()
        return Decisions(digest[:16], rounded)


def _situations(name: str) -> Iterator[tuple[Any, Any, Any]]:
    result = execute(_CASE.plan(load(name)))
    pods = result.plan.arrivals.pods
    for part in FILLED:
        arrived = int(part * len(pods))
        nodes = state_at(result, int(result.changes_after[arrived - 1]))
        upcoming = pods[arrived : arrived + 20 * PODS]
        for pod in _different(upcoming)[:PODS]:
            found = _rows(pod, nodes)
            if found is not None:
                yield found


def _different(pods: npt.NDArray[Any]) -> npt.NDArray[Any]:
    _, first = np.unique(pods[["cpu_milli", "gpu_count", "gpu_milli"]], return_index=True)
    return pods[np.sort(first)]


def _rows(pod: Any, nodes: npt.NDArray[Any]) -> tuple[Any, Any, Any] | None:
    """Lists the nodes on which a pod fits, a share pod once for each GPU; two or more, or none."""
    fitting = nodes[fitting_nodes(pod, nodes)][:MOST_NODES]
    if len(fitting) < 2:
        return None
    is_share = 0 < pod["gpu_milli"] < GPU_MILLI
    slots = [fitting_slots(pod, node) if is_share else np.array([-1]) for node in fitting]
    counts = [len(each) for each in slots]
    rows = np.repeat(fitting, counts)
    return np.repeat(pod.reshape(1), len(rows)), rows, np.concatenate(slots)


def _traits(nodes: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    gpu = nodes["gpu_milli_left"].sum(axis=1).astype(float)
    cpu = nodes["cpu_milli_left"].astype(float)
    columns = (gpu, cpu, cpu / np.maximum(1.0, gpu))
    return np.stack([_ranked(column) for column in columns], axis=1)


def _ranked(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    levels, where = np.unique(values, return_inverse=True)
    return np.asarray(where / max(1, len(levels) - 1), np.float64)
