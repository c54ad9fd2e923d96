"""Tries candidates in confined processes, and collects their reports."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from podium.evaluation.cases import TrainingSet
from podium.evaluation.measures import Values
from podium.evaluation.waste import Losses
from podium.search.judging.fitness import ObjectiveFitness, fitness_named
from podium.search.judging.report import Racing, Score, TrialReport, Wants, anything, unopposed
from podium.search.sandbox.limits import Limits
from podium.search.sandbox.pool import Pool
from podium.search.sandbox.worker import Worker

MOST_COMPILED = 300
"""A worker is replaced after this many compilations: machine code is never given back."""

MOST_IN_STAGES = 300
"""Where only those are compiled that reach the last stage, a worker tries this many candidates."""

MOST_PLAIN = 20_000
"""A worker that compiles nothing is replaced after this many candidates."""


class TrialPool(Pool):
    """Workers that all hold the same training set."""

    def __init__(self, training: TrainingSet, fitness: str, size: int, limits: Limits) -> None:
        setup = {
            "handler": "trial", "training": training.as_object(), "fitness": fitness,
            "needs_baseline": False,
        }  # fmt: skip
        most = MOST_IN_STAGES if training.is_judged_last else MOST_PLAIN
        most = MOST_COMPILED if training.is_compiled else most
        self._kinds = tuple(case.protocol for case in training.cases)
        chosen = fitness_named(fitness)
        self._score = chosen.score if isinstance(chosen, ObjectiveFitness) else None
        super().__init__(setup, size, limits, most_requests=most, first={"needs_baseline": True})

    @property
    def baseline(self) -> list[dict[str, float]]:
        """What fgd reaches on each case; known once the pool is ready."""
        return list(self.facts.get("baseline", ()))

    @property
    def losses(self) -> list[Losses]:
        """What fgd loses on each case; known once the pool is ready."""
        return list(self.facts.get("losses", ()))

    def run(
        self, text: str, wants: Wants = anything, racing: Racing = unopposed, *,
        may_hold: bool = True,
    ) -> TrialReport:  # fmt: skip
        """Tries a candidate in the next free worker."""
        self.get_ready()
        terms = RaceTerms(racing, self.baseline, self._score)
        return self.lend(
            lambda worker: ask_trial(worker, self._kinds, text, wants, terms, may_hold=may_hold)
        )


@dataclass(frozen=True, slots=True)
class RaceTerms:
    """What candidates race against, and what fgd reaches on each case."""

    racing: Racing = unopposed
    baseline: Sequence[Values] = ()
    score: Score | None = None  # what runs are worth, where a worker cannot know it


NO_TERMS = RaceTerms()


def ask_trial(
    worker: Worker, kinds: tuple[str, ...], text: str, wants: Wants = anything,
    terms: RaceTerms = NO_TERMS, *, may_hold: bool = True,
) -> TrialReport:  # fmt: skip
    """Tries a candidate; whatever happens to the process, a report comes back."""
    baseline = list(zip(kinds, terms.baseline, strict=False))
    request = {"text": text, "baseline": baseline, "may_hold": may_hold}
    bounds = tuple(worker.facts.get("bounds", ()))
    report = TrialReport(kinds, wants, bounds, terms.score, racing=terms.racing)
    limits = worker.limits
    return worker.ask(request, report, limits.time_s, limits.trial_s)
