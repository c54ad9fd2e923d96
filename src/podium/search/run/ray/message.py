"""Turns what goes to a Ray actor and comes from it into JSON types, and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import podium
from podium.errors import MissingError, PodiumError
from podium.evaluation.cases import TrainingSet
from podium.search.candidate.verdict import Judgement, Verdict
from podium.search.judging.probe import Decisions
from podium.search.run.executor import Context, Done, Task
from podium.search.sandbox.limits import Limits

PROBLEM = "problem"
"""Marks an answer that says why there is none."""


def setup_as_object(training: TrainingSet, fitness: str, limits: Limits) -> dict[str, Any]:
    """Says what an actor is to judge by."""
    return {
        "version": podium.__version__, "training": training.as_object(), "fitness": fitness,
        "limits": asdict(limits),
    }  # fmt: skip


def task_as_object(task: Task) -> dict[str, Any]:
    """Describes a task."""
    return asdict(task)


def task_from(given: Mapping[str, Any]) -> Task:
    """Reads a task."""
    return Task(**given)


def context_as_object(context: Context) -> dict[str, Any]:
    """Describes what a batch is judged against."""
    incumbent = [dict(each) for each in context.incumbent]
    signatures = dict(context.signatures)
    return {"incumbent": incumbent, "signatures": signatures, "may_hold": context.may_hold}


def context_from(given: Mapping[str, Any]) -> Context:
    """Reads what a batch is judged against."""
    return Context(tuple(given["incumbent"]), given["signatures"], given["may_hold"])


def done_as_object(done: Done) -> dict[str, Any]:
    """Describes a task that is done."""
    judgement = done.judgement
    return {
        "number": done.number,
        "text": done.text,
        "evaluations": done.evaluations,
        "verdict": asdict(judgement.verdict),
        "scores": judgement.scores,
        "seconds": judgement.seconds,
        "cases": list(judgement.cases),
        "decisions": asdict(judgement.decisions) if judgement.decisions else None,
        "diagnostics": judgement.diagnostics,
    }


def done_from(given: Mapping[str, Any]) -> Done:
    """Reads a task that is done."""
    told = given["decisions"]
    decisions = Decisions(told["signature"], tuple(told["behaviour"])) if told else None
    judgement = Judgement(
        Verdict(**given["verdict"]), given["scores"], given["seconds"], tuple(given["cases"]),
        decisions, given["diagnostics"],
    )  # fmt: skip
    return Done(given["number"], given["text"], judgement, given["evaluations"])


def problem_of(error: PodiumError, machine: str) -> dict[str, Any]:
    """Describes what keeps a machine from judging."""
    told = {"message": error.message, "where": error.where or machine, "hint": error.hint}
    return {PROBLEM: told, "is_missing": isinstance(error, MissingError)}


def error_of(given: Mapping[str, Any]) -> PodiumError:
    """Makes an error of what an actor told."""
    kind = MissingError if given["is_missing"] else PodiumError
    told = given[PROBLEM]
    return kind(told["message"], where=told["where"], hint=told["hint"])
