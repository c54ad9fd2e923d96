"""Keeps in the folder of a run what promotions decided about its candidates."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from podium.errors import PodiumError
from podium.policies.validation import Validation
from podium.search.run.folder import STATE, RunFolder

PROMOTION = "promotion.json"


@dataclass(frozen=True, slots=True)
class Decision:
    """What a promotion decided about one candidate."""

    candidate: str  # digest of its text
    promoted: bool
    reasons: tuple[str, ...]  # why not; or what it won
    policy: str = ""  # the text that was promoted, which is a shorter one

    @classmethod
    def on(cls, text: str, reasons: Sequence[str], policy: str | None) -> Decision:
        """Describes a decision about the text of a candidate; without a policy it was refused."""
        return cls(_digest(text), policy is not None, tuple(reasons), policy or "")


def keep_decisions(folder: RunFolder, decisions: Sequence[Decision]) -> None:
    """Adds decisions to those of a run; the latest about a candidate counts."""
    anew = {each.candidate for each in decisions}
    kept = [each for each in _decisions(folder) if each.candidate not in anew]
    folder.write(PROMOTION, {"decisions": [asdict(each) for each in (*kept, *decisions)]})


def decision_on(folder: RunFolder, text: str) -> Decision | None:
    """Finds what was decided about the text of a candidate, if anything."""
    wanted = _digest(text)
    return next((each for each in _decisions(folder) if each.candidate == wanted), None)


def validation_of(folder: RunFolder, decision: Decision | None) -> Validation:
    """Says whether the best of a run is validated: by its promotion, and by nothing else."""
    hint = f"podium search promote {folder.path.name} validates it"
    if decision is None:
        return Validation(False, f"it was not promoted{_own_figures(folder)}", hint)
    told = "; ".join(decision.reasons)
    if decision.promoted:
        return Validation(True, told)
    return Validation(False, f"its promotion was refused: {told}", "search on")


def _decisions(folder: RunFolder) -> list[Decision]:
    if not folder.has(PROMOTION):
        return []
    with folder.reading(PROMOTION):
        return [_decision(each) for each in folder.read(PROMOTION)["decisions"]]


def _decision(found: dict[str, Any]) -> Decision:
    reasons = tuple(map(str, found["reasons"]))
    return Decision(
        str(found["candidate"]), found["promoted"] is True, reasons, str(found["policy"])
    )


def _own_figures(folder: RunFolder) -> str:
    """Says what a search reached on its validation seeds, where that is no gain."""
    try:
        with folder.reading(STATE):
            checked = folder.read(STATE)["validated"]
            own, baseline = float(checked["fitness"]), float(checked["baseline"])
    except PodiumError:  # a run without one, such as one that has just begun
        return ""
    if own > baseline:
        return ""
    return f", and on its validation seeds it reaches {own:.3f} where fgd reaches {baseline:.3f}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
