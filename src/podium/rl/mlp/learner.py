"""Learns in three steps: by imitation, by policy gradient, and by evolution of whole runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from podium.evaluation.splits import FIRST_SEED
from podium.policies import load
from podium.policies.networks.demand import TYPICAL
from podium.policies.networks.mlp import FEATURES
from podium.rl.configuration import Device
from podium.rl.learner import Arrays, Trained, count_of, like, random_state, restored_generator
from podium.rl.mlp.algorithm import Configuration
from podium.rl.mlp.evolution import Distribution
from podium.rl.mlp.imitation import Decisions, record
from podium.rl.mlp.parameters import Array, arrays_of, first_arrays, flat, scales, typical_demand
from podium.rl.mlp.trials import AT_100, AT_130
from podium.rl.mlp.worth import (
    open_trials,
    training_cases,
    training_seeds,
    worth_of,
)

_RECORDING = 1  # a stream of the seed: what is recorded of a teacher


class MlpLearner:
    """A net in training; every step continues with the weights of the one before."""

    def __init__(self, configuration: Configuration, seed: int, device: Device = "cpu") -> None:
        self._configuration, self._seed, self._device = configuration, seed, device
        self._rng = np.random.default_rng(seed)
        self._arrays = first_arrays(configuration.network.hidden_units, self._rng)
        self._iteration = 0
        self._optimiser: list[Any] = []
        self._distribution: Distribution | None = None
        self._average = flat(self._arrays)
        self._decisions: Decisions | None = None
        self._trials = open_trials(configuration)

    def iterate(self) -> Mapping[str, float]:
        """Does one iteration of the step that the training is in."""
        number, own = self._iteration, self._configuration
        self._iteration += 1
        if number < own.imitation.iterations:
            return self._imitate(is_first=number == 0)
        number -= own.imitation.iterations
        if number < own.gradient.iterations:
            return self._descend(number)
        return self._evolve()

    def trained(self) -> Trained:
        """Returns the net as it is now; of a distribution, the average of its last middles."""
        own = self._configuration
        facts = {
            "features": list(FEATURES),
            "hidden_units": own.network.hidden_units,
            "weights": len(self._average),
            "teacher": own.imitation.teacher if own.imitation.iterations else "",
        }
        return Trained("mlp", {**self._net(), TYPICAL: typical_demand()}, facts)

    def close(self) -> None:
        """Ends the processes that run nets."""
        self._trials.close()

    def _net(self) -> dict[str, Any]:
        if self._distribution is None:
            return dict(self._arrays)
        return arrays_of(self._average, self._configuration.network.hidden_units)

    def _imitate(self, *, is_first: bool) -> dict[str, float]:
        from podium.rl.mlp.descent import descent, ranking_loss

        rule = self._configuration.imitation
        decisions, adam = self._recorded(), descent(rule.learning_rate, self._device)
        if is_first:
            self._optimiser = adam.begun(self._arrays)
        if len(decisions.seen) == 0:
            return {"decisions": 0.0, "steps": 0.0}
        rows = self._rng.integers(0, len(decisions.seen), (rule.steps, rule.batch))
        moved, self._optimiser, loss = adam.step(
            ranking_loss, self._arrays, self._optimiser, decisions.seen[rows], decisions.mask[rows]
        )
        self._arrays.update(moved)
        # No reward: nothing was run, and curves of rewards would show a loss in their midst.
        return {"loss": loss, "steps": float(rows.size)}

    def _recorded(self) -> Decisions:
        """Records the teacher, once in each session; the same in all of them."""
        if self._decisions is None:
            rule = self._configuration.imitation
            rng = np.random.default_rng([self._seed, _RECORDING])
            first = first_arrays(self._configuration.network.hidden_units, rng)
            seeds = range(FIRST_SEED, FIRST_SEED + rule.seeds)
            cases = training_cases(self._configuration.workload, rule.nodes, seeds)
            self._decisions = record(load(rule.teacher), cases, first, rule.every, rng)
        return self._decisions

    def _descend(self, number: int) -> dict[str, float]:
        from podium.rl.mlp.descent import descent, policy_loss
        from podium.rl.mlp.gradient import draw

        rule = self._configuration.gradient
        adam = descent(rule.learning_rate, self._device)
        if number == 0:
            self._optimiser = adam.begun(self._arrays)
        seeds = [FIRST_SEED + number % self._configuration.evolution.seeds]
        cases = training_cases(self._configuration.workload, rule.nodes, seeds)
        drawn = draw(self._arrays, cases, rule.environments, self._rng)
        reached = {"reward": drawn.allocation, "gpu_allocation": drawn.allocation / 100}
        if len(drawn) == 0:
            return {**reached, "steps": 0.0}
        steps = max(1, min(rule.steps, len(drawn) // rule.batch))
        order = np.resize(self._rng.permutation(len(drawn)), (steps, rule.batch))
        moved, self._optimiser, loss = adam.step(
            policy_loss, self._arrays, self._optimiser, drawn.seen[order], drawn.mask[order],
            drawn.taken[order], drawn.advantage[order],
        )  # fmt: skip
        self._arrays.update(moved)
        return {"loss": loss, **reached, "steps": float(len(drawn))}

    def _evolve(self) -> dict[str, float]:
        rule, before = self._configuration.evolution, self._distribution
        if before is None:
            self._average = flat(self._arrays)
            before = Distribution.around(self._average, scales(self._arrays), rule.sigma)
        generation = before.generation
        stage = rule.stage(generation)
        if generation and stage != rule.stage(generation - 1):
            before = before.widened(max(before.sigma, rule.sigma / 2))
        seeds = training_seeds(rule, generation)
        cases = training_cases(self._configuration.workload, rule.nodes[stage], seeds)
        drawn = before.drawn(self._rng, rule.population)
        found = self._trials.run([*drawn, rule.floor], cases)
        worth = worth_of(found[:-1], found[-1], rule)
        self._distribution = before.moved(drawn, worth)
        kept = min(rule.average, generation / (generation + 1))
        self._average = kept * self._average + (1 - kept) * self._distribution.mean
        return {
            "reward": float(worth.mean()),
            **_gains(found[:-1], found[-1]),
            "sigma": self._distribution.sigma,
            "nodes": float(rule.nodes[stage]),
            "steps": float(len(drawn) * sum(case.pods or 0 for case in cases)),
        }

    def state(self) -> Arrays:
        """Returns all that an exact continuation needs."""
        state: dict[str, Any] = {
            "iteration": np.array([self._iteration]),
            "random": random_state(self._rng),
            "average": self._average,
        }
        state |= {f"net/{name}": each for name, each in self._arrays.items()}
        state |= {f"optimiser/{i:02}": each for i, each in enumerate(self._optimiser)}
        if self._distribution is not None:
            state |= self._distribution.as_arrays()
        return state

    def restore(self, state: Arrays) -> None:
        """Takes up a state that another learner of the same configuration returned."""
        self._iteration = count_of(state, "iteration")
        self._rng = restored_generator(state["random"])
        self._average = like(self._average, state, "average")
        self._arrays = {name: like(each, state, f"net/{name}")
                        for name, each in self._arrays.items()}  # fmt: skip
        self._optimiser = self._restored_optimiser(state)
        self._distribution = Distribution.from_arrays(state)
        if self._distribution is not None:
            like(self._average, state, "distribution/mean")

    def _restored_optimiser(self, state: Arrays) -> list[Any]:
        own = self._configuration
        if not 0 < self._iteration < own.imitation.iterations + own.gradient.iterations:
            return [state[name] for name in sorted(state) if name.startswith("optimiser/")]
        from podium.rl.mlp.descent import descent

        begun = descent(own.imitation.learning_rate, self._device).begun(self._arrays)
        return [like(each, state, f"optimiser/{i:02}") for i, each in enumerate(begun)]


def _gains(found: Array, floor: Array) -> dict[str, float]:
    """Tells what the nets of a generation reach on average, and how far it is above the floor."""
    gain = (found - floor).mean(axis=(0, 1))
    return {
        "gpu_allocation": float(found[:, :, AT_130].mean()) / 100,
        "gain": float(gain[AT_130]),
        "gain_100": float(gain[AT_100]),
        "gain_below": float(gain[:AT_100].mean()),
    }
