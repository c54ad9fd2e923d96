"""Holds everything that determines a run; the same plan finds the same candidates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from podium.errors import InputError, UsageError, advice_on
from podium.evaluation.cases import TrainingSet
from podium.files.excerpt import excerpt
from podium.search.judging.fitness import fitness_named
from podium.search.population.archive import IslandSettings

SEEDS, RANDOM = "seeds", "random"
STARTS = (SEEDS, RANDOM)


@dataclass(frozen=True, slots=True)
class Tuning:
    """Says how often constants are tuned, and how long."""

    every: int = 3  # batches; 0: never
    evaluations: int = 60  # for one candidate


@dataclass(frozen=True, slots=True)
class RunPlan:
    """Says what a run searches for and how; a time limit is no part of it."""

    training: TrainingSet
    fitness: str = "inflation"
    seed: int = 1000
    generators: tuple[tuple[str, float], ...] = (("genetic", 1.0),)  # by name, with weights
    start: str = SEEDS
    starters: tuple[tuple[str, str], ...] = ()  # further texts to begin with, by name
    batch: int = 24
    customs: IslandSettings = field(default_factory=IslandSettings)
    tuning: Tuning = field(default_factory=Tuning)
    may_hold: bool = False
    largest: int = 120  # parts of a bred program
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # of generators

    def __post_init__(self) -> None:
        fitness_named(self.fitness)
        if self.start not in STARTS:
            raise UsageError(f'unknown start: "{self.start}"', hint=advice_on(self.start, STARTS))
        if self.batch < self.customs.islands:
            raise UsageError(
                f"a batch of {self.batch} does not reach all {self.customs.islands} islands",
                hint="give larger batches or fewer islands",
            )

    @property
    def block(self) -> int:
        """Gives the numbers that a batch may use: one for each sample and one for its repair."""
        return 2 * max(self.batch, 64 + len(self.starters))

    def as_object(self) -> dict[str, Any]:
        """Describes the plan as JSON types."""
        simple = ("fitness", "seed", "start", "batch", "may_hold", "largest")
        return {
            "training": self.training.as_object(),
            **{name: getattr(self, name) for name in simple},
            "generators": [list(each) for each in self.generators],
            "starters": [list(each) for each in self.starters],
            "customs": asdict(self.customs),
            "tuning": asdict(self.tuning),
            "options": {name: dict(each) for name, each in self.options.items()},
        }

    @classmethod
    def from_object(cls, given: Mapping[str, Any]) -> RunPlan:
        """Reads what `as_object` wrote.

        Raises:
            InputError: nothing wrote it so.
        """
        try:
            return cls._read(given)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            message = f"the plan of the run is corrupt: {excerpt(error, 200)}"
            raise InputError(message, hint="begin a new run") from error

    @classmethod
    def _read(cls, given: Mapping[str, Any]) -> RunPlan:
        parts = dict(given)
        parts["training"] = TrainingSet.from_object(given["training"])
        parts["generators"] = tuple((name, weight) for name, weight in given["generators"])
        parts["starters"] = tuple((name, text) for name, text in given["starters"])
        parts["customs"] = IslandSettings(**given["customs"])
        parts["tuning"] = Tuning(**given["tuning"])
        parts["options"] = {name: dict(each) for name, each in given["options"].items()}
        return cls(**parts)


@dataclass(frozen=True, slots=True)
class Budget:
    """Says when a run has done enough; whatever is reached first ends it."""

    evaluations: int | None = None  # most of all sessions together; of calls to models as well
    seconds: float | None = None
    target: float | None = None  # fitness on the training set
