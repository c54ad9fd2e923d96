"""Judges candidates for an executor, on this machine or on one of a Ray cluster."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from podium.errors import MissingError
from podium.evaluation.cases import TrainingSet
from podium.search.candidate.verdict import Decisions, Judgement
from podium.search.judging.judge import Judge
from podium.search.judging.race import Rivals
from podium.search.run.executor import (
    BASELINE,
    JUDGEMENT,
    MISSING_WALLS,
    NO_CONTEXT,
    Context,
    Task,
    judgement_as_object,
)
from podium.search.sandbox.limits import Limits


class JudgeWorker:
    """Keeps a judge with a confined process for every thread that may use it."""

    def __init__(self, judge: Judge) -> None:
        self.judge = judge
        self._read: tuple[Mapping[str, Any], Context] = ({}, NO_CONTEXT)

    def get_ready(self) -> dict[str, Any]:
        """Starts the confined processes, and reports what fgd reaches on this machine."""
        pool = self.judge.pool
        pool.get_ready()
        return {BASELINE: pool.baseline, MISSING_WALLS: list(pool.missing_walls)}

    def perform(self, task: Mapping[str, Any], shared: Mapping[str, Any]) -> dict[str, Any]:
        """Judges one candidate."""
        read = self._read
        if read[0] is not shared:  # many tasks in a row come with the same
            self._read = read = shared, Context.from_object(shared)
        judgement = perform(self.judge, Task(**task), read[1])
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
    """Judges the candidate of one task."""
    rival = tuple(task.rival)

    def wants(decisions: Decisions) -> bool:
        # A variant that decides like its parent where it was probed may still be better.
        return bool(rival) or context.wants(task.complexity, decisions)

    known = context.rivals[task.island] if context.rivals else Rivals()
    # The constants of what was run on all cases are tuned on all: what is small stops no variant.
    bars = () if judge.training.is_judged_last else known.bars
    rivals = Rivals(rival, bars=bars) if rival else known
    judgement = judge.judge(task.text, (), (), wants, may_hold=context.may_hold, rivals=rivals)
    return replace(judgement, number=task.number, text=task.text)
