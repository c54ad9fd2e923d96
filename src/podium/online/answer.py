"""The agent's answers, and the shape in which they are sent."""

from __future__ import annotations

from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from podium.online.cost import Candidate
from podium.online.exploration import EXPLOITATION, EXPLORATION
from podium.online.parameters import GPU_LABEL


@dataclass(frozen=True, slots=True)
class Answer:
    """Where a job should run, why, and which job types it should not run beside."""

    chosen: Candidate
    decision_type: str
    candidates: tuple[Candidate, ...]
    avoid_co_locate_with: tuple[str, ...]
    gpu_label: str = GPU_LABEL  # of nodes

    @property
    def chosen_gpu_type(self) -> str:
        """Names the GPU type that was chosen."""
        return self.chosen.gpu_type

    @property
    def exploration(self) -> bool:
        """Returns whether the choice is exploratory."""
        return self.decision_type == EXPLORATION

    @property
    def priority_score(self) -> float:
        """Ranks the choice from the worst candidate, 0, to the best, 100; 50 if all are equal.

        A choice by what is known is ranked by what is known: that much could be learned elsewhere
        does not make it a bad one.
        """
        is_known = self.decision_type == EXPLOITATION
        rank = attrgetter("greedy_cost" if is_known else "cost")
        costs: list[float] = [rank(candidate) for candidate in self.candidates]
        worst, best = max(costs), min(costs)
        if worst == best:
            return 50.0
        own: float = rank(self.chosen)
        return 100.0 * ((worst - own) / (worst - best))

    @property
    def slowdown(self) -> float:
        """Returns how much longer it should run beside its neighbours; 0.5: half as long again."""
        return self.chosen.penalty / self.chosen.mu

    @property
    def gpu_selector(self) -> dict[str, Any]:
        """Returns the fields of a pod that send it to the chosen GPU type."""
        tolerations = [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}]
        return {"nodeSelector": {self.gpu_label: self.chosen.gpu_type}, "tolerations": tolerations}

    def as_object(self) -> dict[str, Any]:
        """Returns the answer as JSON types."""
        return {
            "priority_score": self.priority_score,
            "gpu_selector": self.gpu_selector,
            "avoid_co_locate_with": list(self.avoid_co_locate_with),
            "terms": self.chosen.terms(),
            "chosen_gpu_type": self.chosen.gpu_type,
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
    regret: float  # seconds expected above the best known type, over the seconds expected there
    job_types: int  # that were seen alone
    pairs: int  # of job type and GPU type
