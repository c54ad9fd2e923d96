"""Judges on one machine of a Ray cluster: what a Ray actor is made of; it needs no Ray itself.

Texts and values that JSON knows come and go, never objects of Podium: another version of Podium
there is told, and does not fail somewhere in between.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import podium
from podium.errors import MissingError, PodiumError, UsageError
from podium.evaluation.cases import TrainingSet
from podium.search.judging.judge import Judge
from podium.search.run.executor import perform
from podium.search.run.ray.message import context_from, done_as_object, problem_of, task_from
from podium.search.sandbox.limits import Limits


class RayJudge:
    """Holds a judge with one confined process; lives in an actor."""

    def __init__(self, setup: Mapping[str, Any]) -> None:
        self._setup = setup
        self._judge: Judge | None = None

    def get_ready(self) -> dict[str, Any]:
        """Starts the confined process, and tells where it is and what fgd reaches there."""
        machine = socket.gethostname()
        try:
            self._judge = open_judge(self._setup, machine)
            self._judge.pool.get_ready()
        except PodiumError as error:
            return problem_of(error, machine)
        pool = self._judge.pool
        return {
            "machine": machine, "pid": os.getpid(), "baseline": pool.baseline,
            "missing_walls": pool.missing_walls,
        }  # fmt: skip

    def perform(self, task: Mapping[str, Any], context: Mapping[str, Any]) -> dict[str, Any]:
        """Does one task."""
        assert self._judge is not None
        try:
            return done_as_object(perform(self._judge, task_from(task), context_from(context)))
        except PodiumError as error:
            return problem_of(error, socket.gethostname())

    def close(self) -> None:
        """Ends the confined process, whatever it is doing."""
        if self._judge is not None:
            self._judge.pool.close()


def open_judge(setup: Mapping[str, Any], machine: str) -> Judge:
    """Starts a judge, if this machine has the same Podium and the traces that it needs."""
    if setup["version"] != podium.__version__:
        raise UsageError(
            f"Podium {podium.__version__} is installed there, and {setup['version']} here",
            where=machine,
            hint="install the same version of Podium on every machine of the cluster",
        )
    training = TrainingSet.from_object(setup["training"])
    for case in training.cases:
        if case.folder and not Path(case.folder).is_dir():
            raise MissingError(
                f"the folder of traces {case.folder} is not on this machine", where=machine,
                hint="copy or mount it at the same path on every machine of the cluster",
            )  # fmt: skip
    return Judge(training, setup["fitness"], 1, Limits(**setup["limits"]))
