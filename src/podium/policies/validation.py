"""Tells whether a policy was shown to be better than others on cases that it never saw."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

Word = Literal["yes", "no", "unknown"]


@dataclass(frozen=True, slots=True)
class Validation:
    """Says whether a policy is validated, and why."""

    is_passed: bool | None = None  # None: nothing says
    reason: str = ""  # what it won, or why it is not validated
    hint: str = ""  # what to do where it is not

    @property
    def word(self) -> Word:
        """Says it in a word, for metrics, logs and answers."""
        if self.is_passed is None:
            return "unknown"
        return "yes" if self.is_passed else "no"

    def as_decision(self) -> dict[str, Any]:
        """Describes it as the decision of a card."""
        return {"promoted": self.is_passed, "reasons": [self.reason], "hint": self.hint}


UNKNOWN = Validation()
"""Of what people wrote: they answer for it themselves."""


def card_validation(card: Mapping[str, Any]) -> Validation:
    """Reads what a card says: the decision of a promotion, or the gain of a training over fgd."""
    decision, training = card.get("decision"), card.get("training")
    if isinstance(decision, Mapping):
        reasons = decision.get("reasons")
        told = "; ".join(map(str, reasons)) if isinstance(reasons, list) else ""
        is_passed = decision.get("promoted", True) is True
        return Validation(is_passed, told, str(decision.get("hint", "")))
    figures = training.get("validation") if isinstance(training, Mapping) else None
    gain = figures.get("gain") if isinstance(figures, Mapping) else None
    if isinstance(gain, int | float) and not gain > 0:
        reason = f"on the validation seeds of its training its gain over fgd is {gain:+.3f}"
        return Validation(False, reason, "train it for longer")
    return UNKNOWN
