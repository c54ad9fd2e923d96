"""Judges candidates for an executor, on this machine or on one of a Ray cluster."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from podium.errors import MissingError, PodiumError
from podium.evaluation.cases import TrainingSet
from podium.search.candidate.constants import with_constants
from podium.search.candidate.verdict import TRAINING, Decisions, Judgement, Verdict
from podium.search.judging.judge import Judge
from podium.search.run.executor import (
    BASELINE,
    JUDGEMENT,
    MISSING_WALLS,
    Context,
    Task,
    judgement_as_object,
)
from podium.search.sandbox.limits import Limits


class JudgeWorker:
    """Keeps a judge with a confined process for every thread that may use it."""

    def __init__(self, judge: Judge) -> None:
        self.judge = judge

    def get_ready(self) -> dict[str, Any]:
        """Starts the confined processes, and reports what fgd reaches on this machine."""
        pool = self.judge.pool
        pool.get_ready()
        return {BASELINE: pool.baseline, MISSING_WALLS: list(pool.missing_walls)}

    def perform(self, task: Mapping[str, Any], shared: Mapping[str, Any]) -> dict[str, Any]:
        """Judges one candidate."""
        judgement = perform(self.judge, Task(**task), Context.from_object(shared))
        return {
            JUDGEMENT: judgement_as_object(judgement),
            MISSING_WALLS: list(self.judge.pool.missing_walls),
        }

    def close(self) -> None:
        """Ends the confined processes, whatever they are doing."""
        self.judge.pool.close()


def open_judge(setup: Mapping[str, Any], threads: int) -> JudgeWorker:
    """Starts a judge, if this machine has the traces that it needs."""
    training = TrainingSet.from_object(setup["training"])
    for case in training.cases:
        if case.folder and not Path(case.folder).is_dir():
            raise MissingError(
                f"the trace folder {case.folder} does not exist on this machine",
                where=socket.gethostname(),
                hint="copy or mount it at the same path on every machine that judges",
            )
    return JudgeWorker(Judge(training, setup["fitness"], threads, Limits(**setup["limits"])))


def perform(judge: Judge, task: Task, context: Context) -> Judgement:
    """Performs one task: tunes if asked to, and judges."""
    text, evaluations = task.text, 1
    if task.tuning:
        tuned = judge.pool.tune(text, task.tuning, task.seed, may_hold=context.may_hold)
        evaluations += tuned.evaluations
        try:
            text = with_constants(text, tuned.tuned)
        except PodiumError as error:
            return _refused(task.number, text, str(error), evaluations)
        if tuned.reason:
            return _refused(task.number, text, tuned.reason, evaluations)

    def wants(decisions: Decisions) -> bool:
        # Tuned twins of a known candidate may decide alike and still be worth a place.
        return bool(task.tuning) or context.wants(task.complexity, decisions)

    judgement = judge.judge(text, (), context.incumbent, wants, may_hold=context.may_hold)
    return replace(judgement, number=task.number, text=text, evaluations=evaluations)


def _refused(number: int, text: str, reason: str, evaluations: int) -> Judgement:
    verdict = Verdict(False, TRAINING, reason)
    return Judgement(verdict, number=number, text=text, evaluations=evaluations)
