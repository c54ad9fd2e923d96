"""Everything that determines a run; the same plan finds the same candidates."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from podium.errors import InputError, UsageError, advice_on
from podium.evaluation.cases import TrainingSet
from podium.files.excerpt import escaped, excerpt
from podium.search.judging.fitness import fitness_named
from podium.search.population.archive import IslandSettings

SEEDS, RANDOM = "seeds", "random"
STARTS = (SEEDS, RANDOM)
ALL, NONE = "all", "none"
INGREDIENTS = (ALL, NONE)
"""What breeding may draw: quantities that people thought of, or fields of the records alone."""

GENERATORS = ("genetic", "random", "llm", "command")
ROOM = 16
"""Numbers of a batch beside those that are bred, for variants of what is being tuned."""

MOST_AHEAD = 1_000
"""The most batches that a plan may be ahead of its archive."""

MOST = 1_000_000
"""The largest batch, island or program that a plan may name."""

PLAN_VERSION = 1
"""Of what a plan says and how it is carried out; the run of another version is not resumed."""

PROMPTED = ("llm", "command")
"""Generators that are asked in words, and that may take long to answer."""


@dataclass(frozen=True, slots=True)
class Tuning:
    """How often constants are tuned, and with how many evaluations."""

    every: int = 1  # batches from one generation of variants to the next; 0: never
    evaluations: int = 60  # for one candidate
    share: float = 0.3  # of all evaluations, at most
    # Of every other tuning, which is that of the best so far; 0: all are alike, and only declared
    # constants are tuned.
    deep: int = 0
    # Of one of the best seeds, which is tuned before anything else, in small batches; 0: three of
    # them have their turns.
    first: int = 0
    # Batches before anything is tuned, and then the best is, whether it is a seed or was bred;
    # 0: seeds are tuned at once.
    after: int = 0


@dataclass(frozen=True, slots=True)
class Pipeline:
    """How far ahead batches are planned, so that no worker waits for the last of a batch.

    A batch is planned once all but the last `lag` batches before it are in the archive; what a
    model is to write for it is asked for `ahead` batches earlier still.
    """

    lag: int = 2
    ahead: int = 8


@dataclass(frozen=True, slots=True)
class RunPlan:
    """What a run searches for and how; a time limit is not part of it."""

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
    largest: int = 160  # parts of a bred program
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # of generators
    ingredients: str = ALL
    pipeline: Pipeline = field(default_factory=Pipeline)
    finalists: int = 8  # of the best by training, one is chosen on other seeds; 0: the very best

    def __post_init__(self) -> None:
        fitness_named(self.fitness)
        if self.start not in STARTS:
            raise UsageError(f'unknown start: "{self.start}"', hint=advice_on(self.start, STARTS))
        if self.ingredients not in INGREDIENTS:
            hint = advice_on(self.ingredients, INGREDIENTS)
            raise UsageError(f'unknown ingredients: "{self.ingredients}"', hint=hint)
        if self.batch < self.customs.islands:
            raise UsageError(
                f"a batch of {self.batch} does not reach all {self.customs.islands} islands",
                hint="give larger batches or fewer islands",
            )

    @property
    def ahead(self) -> int:
        """Returns how many batches ahead models are asked; others must fill the time until then."""
        return self.pipeline.ahead if self.fillers else 0

    @property
    def fillers(self) -> tuple[tuple[str, float], ...]:
        """Lists the generators that answer at once, with their weights."""
        return tuple(each for each in self.generators if each[0] not in PROMPTED)

    @property
    def block(self) -> int:
        """Returns the candidate numbers of a batch: one for each sample and one for its repair."""
        return 2 * max(self.batch + ROOM, 64 + len(self.starters))

    def as_object(self) -> dict[str, Any]:
        """Describes the plan as JSON types."""
        simple = (
            "fitness", "seed", "start", "batch", "may_hold", "largest", "ingredients", "finalists",
        )  # fmt: skip
        return {
            "version": PLAN_VERSION,
            "training": self.training.as_object(),
            **{name: getattr(self, name) for name in simple},
            "generators": [list(each) for each in self.generators],
            "starters": [list(each) for each in self.starters],
            "customs": asdict(self.customs),
            "tuning": asdict(self.tuning),
            "pipeline": asdict(self.pipeline),
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
            told = escaped(str(error))[:200] if type(error) is ValueError else excerpt(error, 200)
            message = f"the plan of the run is corrupt: {told}"
            raise InputError(message, hint="begin a new run") from error

    @classmethod
    def _read(cls, given: Mapping[str, Any]) -> RunPlan:
        _check(given)
        parts = {name: value for name, value in given.items() if name != "version"}
        parts["training"] = TrainingSet.from_object(given["training"])
        parts["generators"] = tuple((name, weight) for name, weight in given["generators"])
        parts["starters"] = tuple((name, text) for name, text in given["starters"])
        parts["customs"] = IslandSettings(**given["customs"])
        parts["tuning"] = Tuning(**given["tuning"])
        parts["pipeline"] = Pipeline(**given["pipeline"])
        parts["options"] = {name: dict(each) for name, each in given["options"].items()}
        return cls(**parts)


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_texts(value: object) -> bool:
    return isinstance(value, list) and all(map(_is_text, value))


def _is_count(value: object) -> bool:
    return type(value) is int and value >= 0


def _is_small(value: object) -> bool:
    """Tells numbers that a run can live with from those that would use up all memory."""
    return type(value) is int and 1 <= value <= MOST


def _is_lead(value: object) -> bool:
    return type(value) is int and 0 <= value <= MOST_AHEAD


def _is_positive(value: object) -> bool:
    return type(value) in (int, float) and 0 < value < math.inf  # type: ignore[operator]


def _is_numbers(value: object) -> bool:
    return isinstance(value, list) and all(each == 0 or _is_positive(each) for each in value)


def _is_cap(value: object) -> bool:
    return value is None or _is_positive(value)


def _is_generators(value: object) -> bool:
    return isinstance(value, list) and all(
        isinstance(each, list)
        and len(each) == 2
        and _is_text(each[0])
        and each[0] in GENERATORS
        and _is_positive(each[1])
        for each in value
    )


def _is_starters(value: object) -> bool:
    return isinstance(value, list) and all(_is_texts(each) and len(each) == 2 for each in value)


def _is_prices(value: object) -> bool:
    return isinstance(value, dict) and all(
        isinstance(each, list)
        and 2 <= len(each) <= 3
        and all(usd == 0 or _is_positive(usd) for usd in each)
        for each in value.values()
    )


_Checks = Mapping[str, Callable[[object], bool]]

_PLAN: _Checks = {
    "fitness": _is_text, "start": _is_text, "ingredients": _is_text, "seed": _is_count,
    "batch": _is_small, "largest": _is_small, "finalists": _is_count,
    "may_hold": lambda value: isinstance(value, bool),
    "generators": _is_generators, "starters": _is_starters,
}  # fmt: skip
_CUSTOMS: _Checks = dict.fromkeys(
    ("islands", "capacity", "migrate_every", "respawn_after"), _is_small
)
_TUNING: _Checks = {
    "every": _is_count, "evaluations": _is_count, "share": _is_positive, "deep": _is_count,
    "first": _is_count, "after": _is_count,
}  # fmt: skip
_PIPELINE: _Checks = dict.fromkeys(("lag", "ahead"), _is_lead)
_OPTIONS: Mapping[str, _Checks] = {
    "command": {
        "command": _is_text, "keep": _is_texts, "folder": _is_text, "timeout_s": _is_positive,
        "prompts": _is_text, "prompts_digest": _is_text,
    },
    "llm": {
        "models": _is_texts, "base_url": _is_text, "usd": _is_cap, "tokens": _is_cap,
        "mode": _is_text, "cassette": _is_text, "prices": _is_prices,
        "temperature": _is_numbers, "max_tokens": _is_small, "reasoning_effort": _is_text,
        "timeout_s": _is_positive, "concurrency": _is_small, "prompts": _is_text,
        "parameters": lambda value: isinstance(value, dict), "prompts_digest": _is_text,
    },
}  # fmt: skip


def _check(given: Mapping[str, Any]) -> None:
    """Refuses values that no plan has, since others may have written the file.

    Raises:
        ValueError: it has one.
    """
    _check_values(given, _PLAN, "")
    _check_values(given["customs"], _CUSTOMS, "customs.")
    _check_values(given["tuning"], _TUNING, "tuning.")
    _check_values(given["pipeline"], _PIPELINE, "pipeline.")
    for name, checks in _OPTIONS.items():
        if name in given["options"]:
            _check_values(given["options"][name], checks, f"options.{name}.")


def _check_values(given: Mapping[str, Any], checks: _Checks, prefix: str) -> None:
    for name, is_right in checks.items():
        if name in given and not is_right(given[name]):
            raise ValueError(f"{prefix}{name} is {excerpt(given[name])}")


@dataclass(frozen=True, slots=True)
class Budget:
    """When a run ends; whichever limit is reached first counts."""

    evaluations: int | None = None  # most of all sessions together; of calls to models as well
    seconds: float | None = None
    target: float | None = None  # fitness on the training set
