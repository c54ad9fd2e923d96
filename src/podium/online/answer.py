"""The agent's answers, and the shape in which they are sent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from podium.online.cost import Candidate
from podium.online.exploration import EXPLORATION


@dataclass(frozen=True, slots=True)
class Answer:
    """Where a job should run, why, and which job types it should not run beside."""

    chosen: Candidate
    decision_type: str
    candidates: tuple[Candidate, ...]
    avoid_co_locate_with: tuple[str, ...]

    @property
    def chosen_gpu_type(self) -> str:
        """Names the GPU type that was chosen."""
        return self.chosen.gpu_type

    @property
    def exploration(self) -> bool:
        """Returns whether the choice is exploratory."""
        return self.decision_type == EXPLORATION

    @property
    def slowdown(self) -> float:
        """Returns how much longer it should run beside its neighbours; 0.5: half as long again."""
        return self.chosen.penalty / self.chosen.mu

    def as_object(self) -> dict[str, Any]:
        """Returns the answer as JSON types."""
        return {
            "avoid_co_locate_with": list(self.avoid_co_locate_with),
            "terms": self.chosen.terms(),
            "chosen_gpu_type": self.chosen.gpu_type,
            "chosen_node": self.chosen.node,
            "expected_s": self.chosen.expected_s,
            "exploration": self.exploration,
            "decision_type": self.decision_type,
            "slowdown": self.slowdown,
            "candidates": [candidate.as_object() for candidate in self.candidates],
        }


@dataclass(frozen=True, slots=True)
class Figures:
    """What the agent counted, for monitoring."""

    decisions: dict[str, int]  # by decision type
    observations: int
    exploration_ratio: float  # in the window
    average_uncertainty_s: float  # sigma, over the pairs that were observed
    exploration_price: float  # expected seconds above the best known type, over those there
    job_types: int  # that ran at least once
    pairs: int  # of job type and GPU type
    failures: int = 0  # runs that failed
    in_flight: int = 0  # jobs that were decided under an id and not observed yet
    changes: int = 0  # of pairs and GPU types that were noticed
