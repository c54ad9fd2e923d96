"""Tells whether a policy was shown to be better than others on cases that it never saw."""

from __future__ import annotations

import math
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

_OF_SEARCHES = ("tuned", "found")
"""Origins of what a search made, for which nobody answers but a promotion."""

_NO_DECISION = Validation(
    False, "its card holds no decision to promote it", "podium search promote validates it"
)
_MEASURED = ("mlp",)
"""Networks whose training measures the gain over fgd."""


def card_validation(card: Mapping[str, Any]) -> Validation:
    """Reads the decision of a promotion in the card of a text; what says nothing proves nothing."""
    if "decision" not in card:
        return _NO_DECISION if card.get("origin") in _OF_SEARCHES else UNKNOWN
    decision = card["decision"] if isinstance(card["decision"], Mapping) else {}
    reasons = decision.get("reasons")
    told = "; ".join(map(str, reasons)) if isinstance(reasons, list) else ""
    if decision.get("promoted") is True:
        return Validation(True, told)
    hint = decision.get("hint") or _NO_DECISION.hint
    return Validation(False, told or "its card holds no decision to promote it", str(hint))


def training_validation(card: Mapping[str, Any]) -> Validation:
    """Reads the gain over fgd that a training reached; it may show that a net is worth nothing."""
    training = card.get("training")
    figures = training.get("validation") if isinstance(training, Mapping) else None
    told = figures if isinstance(figures, Mapping) else {}
    if "gain" not in told and card.get("network") not in _MEASURED:
        return UNKNOWN
    gain = told.get("gain")
    if isinstance(gain, bool) or not isinstance(gain, int | float) or not math.isfinite(gain):
        return Validation(False, "its card states no gain over fgd", "train it again")
    if gain > 0:
        return UNKNOWN
    reason = f"on the validation seeds of its training its gain over fgd is {gain:+.3f}"
    return Validation(False, reason, "train it for longer")
