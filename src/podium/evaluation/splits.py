"""Splits seeds and times: what may be trained on, what selects, validates, or is only reported.

A policy that has seen a seed may have learned it by heart. Whatever trains or selects, a search
or reinforcement learning, asks here first.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from podium.errors import UsageError

Purpose = Literal["training", "selection", "validation"]

FIRST_SEED = 1000
"""Training seeds start here."""

SELECTION = range(1900, 2000)
"""The winner of a search is chosen on these, among the best by training."""

VALIDATION = range(2000, 2020)
"""What was trained is validated on these, and nothing is chosen by them twice."""

PUBLISHED = range(42, 52)
"""The seeds of published experiments: results on them are reported, and decide nothing."""

EPISODES = range(10_000, 12_048)
"""Episodes of PPO are drawn with these, a power of two of them: environments whose number divides
it keep their plans laid out."""

SEEN = (range(FIRST_SEED, VALIDATION.stop), EPISODES)
"""What policies are trained, chosen or validated on; nothing knows other seeds by heart."""

HELD_OUT = (PUBLISHED, SELECTION, VALIDATION)
"""What nothing is trained on."""


def check_seed(seed: int, purpose: Purpose) -> None:
    """Refuses a seed that is not for the purpose."""
    if purpose == "validation" and seed not in VALIDATION:
        raise UsageError(
            f"seed {seed} is not for validation",
            hint=f"validate on seeds {VALIDATION.start} to {VALIDATION.stop - 1}",
        )
    if purpose == "selection" and seed not in SELECTION:
        raise UsageError(
            f"seed {seed} is not for selection",
            hint=f"select on seeds {SELECTION.start} to {SELECTION.stop - 1}",
        )
    if purpose == "training" and any(seed in seeds for seeds in HELD_OUT):
        raise UsageError(
            f"seed {seed} is held out for selection, validation or tests",
            hint=f"train on seeds from {FIRST_SEED} to {SELECTION.start - 1}",
        )


def seen(seeds: Iterable[int]) -> list[int]:
    """Lists those of the seeds that policies are trained or chosen on.

    >>> seen([42, 1003, 2000, 3000, 10_000])
    [1003, 2000, 10000]
    """
    return [seed for seed in seeds if any(seed in each for each in SEEN)]


def check_unseen(seeds: Sequence[int]) -> None:
    """Refuses to compare trainings on seeds that they have seen, or on published ones."""
    hint = f"measure on seeds from 3000 to {EPISODES.start - 1}"
    for seed in seen(seeds):
        raise UsageError(f"seed {seed} is one that policies are trained or chosen on", hint=hint)
    for seed in (each for each in seeds if each in PUBLISHED):
        raise UsageError(f"seed {seed} is held out for results that decide nothing", hint=hint)


def validation_seed(training_seed: int) -> int:
    """Finds the validation seed that stands for a training seed.

    >>> validation_seed(1003)
    2003
    """
    return VALIDATION[(training_seed - FIRST_SEED) % len(VALIDATION)]


def selection_seed(training_seed: int) -> int:
    """Finds the selection seed that stands for a training seed.

    >>> selection_seed(1003)
    1903
    """
    return SELECTION[(training_seed - FIRST_SEED) % len(SELECTION)]


@dataclass(frozen=True, slots=True)
class Split:
    """What of a trace is held out: orders drawn with other seeds, or its last arrivals too."""

    time_share: float = 0.0  # of the arrivals, the last ones; 0: by seed alone

    def __str__(self) -> str:
        return f"time:{self.time_share:g}" if self.time_share else "seed"


BY_SEED = Split()
BY_TIME = Split(0.3)

RECORDED = "recorded"
"""Holds the trace as it was recorded out; what is trained on are versions of it."""

SHIFT_S = 1200.0
"""By so much the arrivals of a version differ from those recorded."""


def read_split(text: str) -> Split:
    """Reads how a trace is split.

    >>> read_split("time:0.25").time_share
    0.25
    """
    kind, _, written = text.partition(":")
    if text == "seed":
        return BY_SEED
    if text == "time":
        return BY_TIME
    try:
        share = float(written) if kind == "time" else 0.0
    except ValueError:
        share = 0.0
    if not 0 < share < 1:
        raise UsageError(
            f'"{text}" does not say what is held out',
            hint="write seed, recorded, or time:0.3 for the last 30 % of the arrivals",
        )
    return Split(share)
