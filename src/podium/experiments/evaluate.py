"""Judges one candidate: every gate, in a sandbox, on a few training cases."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from podium.experiments.listener import SILENT, Listener, announce_compilation
from podium.experiments.search import warn_of_walls
from podium.experiments.training import CasesRequest, training_set

if TYPE_CHECKING:
    from podium.search.candidate.verdict import Judgement
    from podium.settings import Settings


@dataclass(frozen=True, slots=True)
class EvaluationRequest:
    """Describes how a candidate is judged."""

    text: str
    cases: CasesRequest
    time_limit_s: float = 30.0  # for all gates
    memory_mib: int = 512  # that the candidate may add


@dataclass(frozen=True, slots=True, eq=False)
class Evaluation:
    """A judgement with the formula of its fitness."""

    judgement: Judgement
    formula: str


def evaluate(
    settings: Settings, request: EvaluationRequest, listener: Listener = SILENT
) -> Evaluation:
    """Evaluates a text with every gate."""
    from podium.search.judging.judge import Judge
    from podium.search.sandbox.limits import Limits

    training = replace(training_set(settings, request.cases, listener), is_compiled=True)
    limits = Limits(
        request.time_limit_s,
        memory_mib=request.memory_mib,
        allows_unconfined=settings.search.allow_unconfined,
    )
    announce_compilation(listener)
    with Judge(training, request.cases.fitness, 1, limits) as judge:
        found = judge.judge(request.text)
        warn_of_walls(listener, judge.pool.missing_walls)
        return Evaluation(found, judge.fitness.text)
