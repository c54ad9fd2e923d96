"""Verdicts of gates on candidates, and the exception that a worker raises for a refusal."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from podium.errors import PodiumError

SYNTAX, ALLOWLIST, SIGNATURE, NOVELTY = "syntax", "allow-list", "signature", "novelty"
TINY, CONTRACT, COMPILE, RACE, TRAINING = "tiny-trace", "contract", "compile", "race", "training"

STAGES = "stages"
"""Among the scores of a candidate: its fitness at the end of each stage that it was run on."""

AXES = ("gpu_free", "cpu_free", "cpu_per_gpu", "held")
"""What a behaviour is made of, each from 0 to 1."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a candidate is accepted, or which gate refused it and why."""

    accepted: bool
    gate: str  # the last gate that was entered
    reason: str = ""  # a sentence fit for whoever wrote the candidate


@dataclass(frozen=True, slots=True)
class Decisions:
    """What a candidate decides on fixed states: a digest of all of it, and its tendencies."""

    signature: str
    behaviour: tuple[float, ...]  # by axis


@dataclass(frozen=True, slots=True)
class Judgement:
    """The verdict on a candidate, and the scores it reached up to there."""

    verdict: Verdict
    scores: dict[str, Any] = field(default_factory=dict)
    seconds: float = 0.0
    cases: tuple[dict[str, float], ...] = ()  # what was measured, case by case
    decisions: Decisions | None = None  # on the states of the probe
    diagnostics: str = ""  # of an accepted candidate, in words
    processor_s: float = 0.0  # of the worker
    simulated_s: float = 0.0  # of which in the simulator, on the training cases
    number: int = 0  # of the candidate, in a search
    text: str = ""  # with the constants that were judged, in a search
    evaluations: int = 1  # spent on it: one, and those of its tuning

    def as_object(self) -> dict[str, Any]:
        """Returns the judgement as JSON types."""
        return {
            "accepted": self.verdict.accepted,
            "gate": self.verdict.gate,
            "reason": self.verdict.reason,
            "scores": self.scores,
            "seconds": self.seconds,
        }


class Rejected(Exception):  # noqa: N818 - reads as the sentence it makes
    """A gate refuses the candidate; after some refusals the process cannot be trusted any more."""

    def __init__(self, reason: str, *, is_spoiling: bool = False) -> None:
        super().__init__(reason)
        self.is_spoiling = is_spoiling

    @classmethod
    def by(cls, error: PodiumError) -> Rejected:
        """Builds a refusal from the reason and the advice of an error."""
        return cls(f"{error}; {error.hint}" if error.hint else str(error))
