"""What a net is worth: GPU allocation of whole clusters, and never below a policy at 100 %."""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np

from podium.evaluation.cases import Case
from podium.evaluation.default_cases import ORDER
from podium.evaluation.splits import FIRST_SEED, VALIDATION, check_seed
from podium.rl.learner import Arrays
from podium.rl.mlp.algorithm import Configuration, EvolutionSection
from podium.rl.mlp.parameters import Array, flat
from podium.rl.mlp.trials import Trials, family_case

AT_100, AT_130 = 0, 1


def worth_of(found: Array, floor: Array, rule: EvolutionSection) -> Array:
    """Weighs (nets, cases, ratios) of percent into what each net is worth, in points."""
    below = np.maximum(0.0, floor[:, AT_100] + rule.floor_margin - found[:, :, AT_100])
    worth: Array = (
        found[:, :, AT_130].mean(axis=1)
        + rule.weight_100 * found[:, :, AT_100].mean(axis=1)
        - rule.floor_weight * below.mean(axis=1)
    )
    return worth


def training_cases(nodes: int, seeds: Sequence[int]) -> list[Case]:
    """Lists the workload families with training seeds."""
    for seed in seeds:
        check_seed(seed, "training")
    return [family_case(family, nodes, seed) for seed in seeds for family in ORDER]


def training_seeds(rule: EvolutionSection, generation: int) -> list[int]:
    """Lists the seeds of a generation: the same for all its nets."""
    first = generation * rule.seeds_at_once
    return [FIRST_SEED + (first + i) % rule.seeds for i in range(rule.seeds_at_once)]


def open_trials(configuration: Configuration) -> Trials:
    """Opens what runs nets, with a process for each core unless somebody says otherwise."""
    workers = configuration.evolution.workers or os.cpu_count() or 1
    return Trials(configuration.network.hidden_units, workers)


class Validation:
    """Measures nets on workload families with validation seeds."""

    def __init__(self, configuration: Configuration) -> None:
        self._rule = configuration.evolution
        self._trials = open_trials(configuration)
        seeds = VALIDATION[: configuration.validation.seeds]
        nodes = configuration.validation.nodes
        self._cases = [family_case(each, nodes, seed) for seed in seeds for each in ORDER]

    def figures(self, arrays: Arrays) -> dict[str, float]:
        """Returns GPU allocation from 0 to 1, its gain over the floor in points, and the score."""
        found = self._trials.run([flat(arrays), self._rule.floor], self._cases)
        gain = (found[0] - found[1]).mean(axis=0)
        return {
            "score": float(worth_of(found[:1], found[1], self._rule)[0]),
            "gpu_allocation": float(found[0, :, AT_130].mean()) / 100,
            "gpu_allocation_100": float(found[0, :, AT_100].mean()) / 100,
            "gain": float(gain[AT_130]),
            "gain_100": float(gain[AT_100]),
            "least_gain_100": float(self._by_family(found[0] - found[1])[:, AT_100].min()),
        }

    def _by_family(self, found: Array) -> Array:
        mean: Array = found.reshape(-1, len(ORDER), found.shape[-1]).mean(axis=0)
        return mean
