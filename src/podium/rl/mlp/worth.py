"""What a net is worth: GPU allocation at 130 %, and no less than that of a policy up to 100 %."""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np

from podium.evaluation.cases import Case
from podium.evaluation.splits import FIRST_SEED, VALIDATION, check_seed
from podium.rl.learner import Arrays
from podium.rl.mlp.algorithm import Configuration, EvolutionSection, WorkloadSection
from podium.rl.mlp.parameters import Array, flat
from podium.rl.mlp.trials import AT_100, AT_130, Trials, inflation_case

UP_TO_100 = slice(0, AT_100 + 1)


def worth_of(found: Array, floor: Array, rule: EvolutionSection) -> Array:
    """Weighs (nets, cases, loads) of percent into what each net is worth, in points."""
    wanted = floor[:, UP_TO_100].copy()
    # Below 100 % all that is asked for may be there already: nobody can be above that.
    wanted[:, AT_100] += rule.floor_margin
    lacking = np.maximum(0.0, wanted - found[:, :, UP_TO_100]).sum(axis=2)
    worth: Array = (
        found[:, :, AT_130].mean(axis=1)
        + rule.weight_below * found[:, :, UP_TO_100].mean(axis=(1, 2))
        - rule.floor_weight * lacking.mean(axis=1)
    )
    return worth


def training_cases(workload: WorkloadSection, nodes: int, seeds: Sequence[int]) -> list[Case]:
    """Lists the traces with training seeds."""
    for seed in seeds:
        check_seed(seed, "training")
    return _cases(workload, nodes, seeds)


def _cases(workload: WorkloadSection, nodes: int, seeds: Sequence[int]) -> list[Case]:
    return [
        inflation_case(
            trace,
            nodes,
            seed,
            is_perturbed=workload.perturbs(seed),
            cluster=workload.cluster,
            demand=workload.demand,
            waiting=",".join(workload.waiting),
        )
        for seed in seeds
        for trace in workload.traces
    ]


def training_seeds(rule: EvolutionSection, generation: int) -> list[int]:
    """Lists the seeds of a generation: the same for all its nets."""
    first = generation * rule.seeds_at_once
    return [FIRST_SEED + (first + i) % rule.seeds for i in range(rule.seeds_at_once)]


def open_trials(configuration: Configuration) -> Trials:
    """Opens what runs nets, with a process for each core unless somebody says otherwise."""
    workers = configuration.evolution.workers or os.cpu_count() or 1
    return Trials(configuration.network.hidden_units, workers)


class Validation:
    """Measures nets on the traces that they are trained on, with validation seeds."""

    def __init__(self, configuration: Configuration) -> None:
        self._rule = configuration.evolution
        self._trials = open_trials(configuration)
        self._workload = configuration.workload
        seeds = VALIDATION[: configuration.validation.seeds]
        self._cases = _cases(self._workload, configuration.validation.nodes, seeds)

    def figures(self, arrays: Arrays) -> dict[str, float]:
        """Returns GPU allocation from 0 to 1, its gain over the floor in points, and the score."""
        found = self._trials.run([flat(arrays), self._rule.floor], self._cases)
        gain = (found[0] - found[1]).mean(axis=0)
        least = self._by_trace(found[0] - found[1]).min(axis=0)
        return {
            "score": float(worth_of(found[:1], found[1], self._rule)[0]),
            "gpu_allocation": float(found[0, :, AT_130].mean()) / 100,
            "gpu_allocation_100": float(found[0, :, AT_100].mean()) / 100,
            "gain": float(gain[AT_130]),
            "gain_100": float(gain[AT_100]),
            "gain_below": float(gain[:AT_100].mean()),
            "least_gain_100": float(least[AT_100]),
            "least_gain_below": float(least[:AT_100].min()),
        }

    def _by_trace(self, found: Array) -> Array:
        traces = len(self._workload.traces)
        mean: Array = found.reshape(-1, traces, found.shape[-1]).mean(axis=0)
        return mean
