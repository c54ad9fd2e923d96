"""Splits seeds: what may be trained on, what validates, and what is only ever reported.

A policy that has seen a seed may have learned it by heart. Whatever trains or selects, a search
or reinforcement learning, asks here first.
"""

from __future__ import annotations

from typing import Literal

from podium.errors import UsageError

Purpose = Literal["training", "validation"]

FIRST_SEED = 1000
"""Training seeds start here."""

VALIDATION = range(2000, 2020)
"""What was trained is validated on these, and nothing is chosen by them twice."""

PUBLISHED = range(42, 52)
"""The seeds of published experiments: results on them are reported, and decide nothing."""

HELD_OUT = (PUBLISHED, VALIDATION)


def check_seed(seed: int, purpose: Purpose) -> None:
    """Refuses a seed that is not for the purpose."""
    if purpose == "validation" and seed not in VALIDATION:
        raise UsageError(
            f"seed {seed} is not for validation",
            hint=f"validate on seeds {VALIDATION.start} to {VALIDATION.stop - 1}",
        )
    if purpose == "training" and any(seed in seeds for seeds in HELD_OUT):
        raise UsageError(
            f"seed {seed} is held out for validation and tests",
            hint=f"train on seeds from {FIRST_SEED}",
        )


def validation_seed(training_seed: int) -> int:
    """Finds the validation seed that stands for a training seed.

    >>> validation_seed(1003)
    2003
    """
    return VALIDATION[(training_seed - FIRST_SEED) % len(VALIDATION)]
