"""Judges candidates: gates that read, a worker that runs, and the fitness of what it measured."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from types import TracebackType
from typing import Any, TypeVar

from podium.evaluation.cases import TrainingSet
from podium.evaluation.measures import Values
from podium.search.candidate.gates import read_candidate
from podium.search.candidate.verdict import RACE, STAGES, Decisions, Judgement, Verdict
from podium.search.judging.diagnostics import CaseFigures, diagnose
from podium.search.judging.fitness import BASELINE, Fitness, Outcome, fitness_named, mean_values
from podium.search.judging.race import Race, Rivals
from podium.search.judging.report import TrialReport, Wants, anything
from podium.search.judging.scrutiny import hold_refusal
from podium.search.judging.trial_pool import TrialPool
from podium.search.sandbox.limits import Limits

T = TypeVar("T")


class Judge:
    """Sends candidates through every gate; threads may share one."""

    def __init__(
        self, training: TrainingSet, fitness: str, workers: int = 1, limits: Limits | None = None
    ) -> None:
        self.fitness: Fitness = fitness_named(fitness)
        self.training = training
        self.pool = TrialPool(training, fitness, workers, limits or Limits())

    def __enter__(self) -> Judge:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        self.pool.close()

    def judge(
        self, text: str, known: Collection[str] = (), incumbent: Sequence[Values] = (),
        wants: Wants = anything, *, may_hold: bool = True, rivals: Rivals | None = None,
    ) -> Judgement:  # fmt: skip
        """Judges one text; an incumbent's measurements let a clearly worse one stop early.

        Among rivals, the incumbent is chosen by what the candidate decides, and stages end early
        for those that do not take their bars: such a candidate is accepted with partial figures.
        Where pods may not be held, who holds one is refused; elsewhere it is marked.
        """
        began = time.perf_counter()
        read = read_candidate(text, known)
        reading_s = time.perf_counter() - began
        if isinstance(read, Verdict):
            return Judgement(read, seconds=reading_s)
        self.pool.get_ready()
        met = rivals or Rivals(tuple(incumbent))

        def racing(decisions: Decisions) -> Race:
            axes = (float(read.complexity), *decisions.behaviour) if met.edges else ()
            rival, bars = met.against(axes)
            return Race(tuple(self.outcomes(rival)), bars)

        report = self.pool.run(read.text, wants, racing, may_hold=may_hold)
        verdict = self._verdict(report, may_hold)
        scores = self._scores(report) if verdict.accepted else {}
        if report.gate == RACE and not scores:
            scores = self._partial(report)
        elif scores:  # policies that may hold pods are compared among themselves
            held, decisions = (sum(column) for column in zip(*report.held, strict=True))
            may_hold = read.may_hold or held > 0
            scores |= {"may_hold": may_hold, "held": held, "decisions": decisions}
        return Judgement(
            verdict, scores, reading_s + report.seconds, tuple(report.cases), report.decisions,
            self._diagnostics(report) if "fitness" in scores else "", report.processor_s,
            report.simulated_s,
        )  # fmt: skip

    def _verdict(self, report: TrialReport, may_hold: bool) -> Verdict:
        """Returns the worker's verdict, unless the rest of its report contradicts it."""
        names = [case.name for case in self.training.cases]
        refusal = "" if may_hold else hold_refusal(report.held, names)
        if report.verdict.accepted and refusal:
            return Verdict(False, report.gate, refusal)
        if self._is_stopped(report) and not refusal:
            return Verdict(True, report.gate, report.reason)
        return report.verdict

    def _is_stopped(self, report: TrialReport) -> bool:
        """Returns whether all that a candidate lacks is a bar between two stages."""
        is_at_race = report.is_done and report.gate == RACE and not report.is_spoiled
        return is_at_race and report.race.is_stopped(self.outcomes(report.cases), self.fitness)

    def _scores(self, report: TrialReport) -> dict[str, Any]:
        """Returns the scores of an accepted candidate; partial ones if it was stopped."""
        if len(report.cases) == len(self.training.cases):
            return {**self.scores(report.cases), **self._by_stage(report.cases)}
        return {**self._partial(report), **self._by_stage(report.cases)}

    def _partial(self, report: TrialReport) -> dict[str, Any]:
        """Returns the fitness on each case alone, as far as a candidate was run."""
        rows = zip(self.training.cases, self.outcomes(report.cases), strict=False)
        cases = [{"case": case.name, "score": self.fitness.score([own])} for case, own in rows]
        return {"cases": cases}

    def _by_stage(self, cases: Sequence[Values]) -> dict[str, Any]:
        """Returns the fitness at the end of every stage that was run, where there are several."""
        stages = self.training.stages
        if len(stages) == 1:
            return {}
        outcomes = self.outcomes(cases)
        ends = [stage.stop for stage in stages if stage.stop <= len(cases)]
        return {STAGES: [self.fitness.score(outcomes[:end]) for end in ends]}

    def _diagnostics(self, report: TrialReport) -> str:
        names = [case.name for case in self.training.cases]
        own = zip(report.cases, report.losses, strict=True)
        baseline = zip(self.pool.baseline, self.pool.losses, strict=True)
        return diagnose(
            names, [CaseFigures(*each) for each in own], [CaseFigures(*each) for each in baseline]
        )

    def outcomes(self, cases: Sequence[Values]) -> list[Outcome]:
        """Pairs measurements with those of fgd on the same cases."""
        rows = zip(self.training.cases, cases, self.pool.baseline, strict=False)
        return [Outcome(case.protocol, own, fgd, case.family) for case, own, fgd in rows]

    def baseline_fitness(self) -> float:
        """Returns the fitness of fgd; known once a candidate was judged."""
        return self.fitness.score(self._counted(self.outcomes(self.pool.baseline)))

    def _counted(self, values: Sequence[T]) -> Sequence[T]:
        return values[self.training.first_counted :]

    def scores(self, cases: Sequence[Values]) -> dict[str, Any]:
        """Returns the fitness, its terms, the figures they are made of, and each case."""
        outcomes = self.outcomes(cases)
        counted = self._counted(outcomes)
        return {
            "fitness": self.fitness.score(counted),
            **self.fitness.terms(counted),
            "mean": mean_values(self._counted(cases)),
            BASELINE: {
                "fitness": self.baseline_fitness(),
                **mean_values(self._counted(self.pool.baseline)),
            },
            "cases": [
                {"case": case.name, "score": self.fitness.score([outcome]), **outcome.values}
                for case, outcome in zip(self.training.cases, outcomes, strict=True)
            ],
        }
