"""The configuration of a training of the MLP scorer, and what it makes."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import TYPE_CHECKING

from podium.errors import MissingExtra
from podium.evaluation.default_cases import ORDER
from podium.evaluation.splits import FIRST_SEED, SELECTION, VALIDATION
from podium.rl.configuration import Device, TrainingSection, Unfit, option
from podium.rl.learner import Learner
from podium.rl.training import Judge
from podium.traces.notes import WAITING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from podium.rl.learner import Trained

DEVICES: tuple[Device, ...] = ("cpu", "gpu")

MOST_NODES = 100_000
MOST_SEEDS = SELECTION.start - FIRST_SEED
MOST_WORKERS = min(64, 2 * (os.cpu_count() or 1))
"""Processes beyond twice the cores only take memory from each other."""


@dataclass(frozen=True, slots=True)
class NetworkSection:
    """The net."""

    hidden_units: int = option(
        16, "Units of the hidden layer, a multiple of 8.", least=8, most=1024
    )

    def __post_init__(self) -> None:
        if self.hidden_units < 8 or self.hidden_units % 8:
            raise Unfit("hidden_units", self.hidden_units, "a multiple of 8")


@dataclass(frozen=True, slots=True)
class WorkloadSection:
    """What nets are trained and validated on."""

    traces: tuple[str, ...] = option(
        (*ORDER, "openb-multi-heavy"), "Workload families, or other traces; each counts alike."
    )
    cluster: str = option("", "Another trace, whose nodes are taken; empty: those of each trace.")
    waiting: tuple[str, ...] = option(
        (), "Work of a dump that is tried though it waits: gated, suspended.", among=WAITING,
        fewest=0,
    )  # fmt: skip
    demand: str = option(
        "trace",
        "Pods that tables are prepared from in evolution and validation: trace, seen or warm.",
        among=("trace", "seen", "warm"),
    )
    perturbed_every: int = option(
        3, "On one seed of so many, nodes are left out and resized; 0: on none.", least=0, most=1000
    )

    def __post_init__(self) -> None:
        from podium.traces.catalogue import is_known

        wanted = "that `podium traces list` shows, or"
        for trace in self.traces:
            if not is_known(trace):
                raise Unfit("traces", trace, f"traces {wanted} files")
        if self.cluster and not is_known(self.cluster):
            raise Unfit("cluster", self.cluster, f"a trace {wanted} a file")

    def perturbs(self, seed: int) -> bool:
        """Tells whether clusters of a seed are perturbed."""
        every = self.perturbed_every
        return every > 0 and (seed - FIRST_SEED) % every == every - 1


@dataclass(frozen=True, slots=True)
class ImitationSection:
    """The first step: the net learns to decide as a teacher does."""

    teacher: str = option("fed-gpu", "Any policy: a name or a file.", is_policy=True)
    iterations: int = option(8, "Iterations; 0 leaves imitation out.", least=0, most=10**6)
    steps: int = option(500, "Steps of Adam in each iteration.", least=1, most=10**6)
    batch: int = option(64, "Decisions in each step.", least=1, most=10**6)
    learning_rate: float = option(0.003, "Of Adam.", least=1e-9, most=10)
    nodes: int = option(
        100, "Nodes of the clusters on which the teacher decides.", least=1, most=MOST_NODES
    )
    seeds: int = option(2, "Seeds of each trace on which it does.", least=1, most=MOST_SEEDS)
    every: int = option(3, "One of so many decisions is recorded.", least=1, most=10**6)


@dataclass(frozen=True, slots=True)
class GradientSection:
    """The second step: policy gradient on small clusters, stepped pod by pod."""

    iterations: int = option(
        12, "Iterations; 0 leaves the policy gradient out.", least=0, most=10**6
    )
    nodes: int = option(16, "Nodes of each environment.", least=1, most=MOST_NODES)
    environments: int = option(
        16, "Environments that are compared with each other.", least=2, most=10_000
    )
    batch: int = option(1024, "Decisions in each step.", least=1, most=10**6)
    steps: int = option(4, "Steps of Adam in each iteration, at most.", least=1, most=10**6)
    learning_rate: float = option(0.001, "Of Adam.", least=1e-9, most=10)


@dataclass(frozen=True, slots=True)
class EvolutionSection:
    """The third step: evolution strategies on runs of whole clusters, until the training ends."""

    population: int = option(64, "Nets in a generation, an even number.", least=4, most=10_000)
    sigma: float = option(
        0.5, "The first step, relative to the usual size of weights.", least=1e-6, most=100
    )
    nodes: tuple[int, ...] = option(
        (200, 600, 1213), "Nodes of the clusters, stage by stage.", least=1, most=MOST_NODES
    )
    generations: tuple[int, ...] = option(
        (380, 200),
        "Generations in each stage; the last one goes on until the end.",
        least=1,
        most=10**6,
        fewest=0,
    )
    seeds: int = option(
        48, "Training seeds that generations take in turn.", least=1, most=MOST_SEEDS
    )
    seeds_at_once: int = option(
        1, "Seeds that each net of a generation is run on.", least=1, most=MOST_SEEDS
    )
    average: float = option(
        0.9, "How much of the averaged net stays in each generation.", least=0, most=1
    )
    floor: str = option(
        "fgd", "A policy below which no trace may fall at loads of 80 to 100 %.", is_policy=True
    )
    floor_margin: float = option(
        0.1, "Points above the floor at 100 % at which it begins to count.", least=0, most=100
    )
    floor_weight: float = option(
        2.0, "What each point below the floor costs, at each load.", least=0, most=1000
    )
    weight_below: float = option(
        0.1, "What GPU allocation at 80 to 100 % counts beside that at 130 %.", least=0, most=1000
    )
    workers: int = option(
        0,
        "Processes, at most two for each core; 0: one for each. The result is the same.",
        least=0,
        most=MOST_WORKERS,
    )

    def __post_init__(self) -> None:
        if self.population < 4 or self.population % 2:
            raise Unfit("population", self.population, "an even number from 4")
        if len(self.generations) != len(self.nodes) - 1:
            raise Unfit("generations", self.generations, "a list with one number less than nodes")
        if self.workers > self.population:
            raise Unfit("workers", self.workers, f"at most the population, {self.population}")

    def stage(self, generation: int) -> int:
        """Finds the stage of a generation."""
        for stage, length in enumerate(self.generations):
            if generation < length:
                return stage
            generation -= length
        return len(self.generations)


@dataclass(frozen=True, slots=True)
class ValidationSection:
    """How the net is validated, on seeds that nothing trains on."""

    nodes: int = option(600, "Nodes of the clusters.", least=1, most=MOST_NODES)
    seeds: int = option(3, "Seeds of each trace, from 2000 on.", least=1, most=len(VALIDATION))


@dataclass(frozen=True, slots=True)
class Configuration:
    """A training of the MLP scorer; an episode is an iteration of the step it is in."""

    training: TrainingSection = field(
        default_factory=lambda: TrainingSection(episodes=500, save_interval=40)
    )
    network: NetworkSection = field(default_factory=NetworkSection)
    workload: WorkloadSection = field(default_factory=WorkloadSection)
    imitation: ImitationSection = field(default_factory=ImitationSection)
    gradient: GradientSection = field(default_factory=GradientSection)
    evolution: EvolutionSection = field(default_factory=EvolutionSection)
    validation: ValidationSection = field(default_factory=ValidationSection)


def make_learner(configuration: Configuration, seed: int, device: Device) -> Learner:
    """Makes the learner of a configuration; evolution alone needs no JAX."""
    from podium.rl.mlp.learner import MlpLearner

    has_gradients = configuration.imitation.iterations or configuration.gradient.iterations
    if has_gradients and not (find_spec("jax") and find_spec("optax")):
        raise MissingExtra.named("rl", "training by gradients")

    return MlpLearner(configuration, seed, device)


def make_judge(configuration: Configuration) -> Judge:
    """Makes the judge that validates on the same traces with validation seeds."""
    from podium.rl.mlp.worth import Validation

    validation = Validation(configuration)

    def judge(trained: Trained) -> Mapping[str, float]:
        return validation.figures(trained.arrays)

    return judge
