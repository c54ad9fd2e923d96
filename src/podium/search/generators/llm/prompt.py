"""Writes what a language model, or a command, is asked.

What candidates say of themselves was written by whoever wrote them: it is quoted within fences, and
ends none.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from podium.search.generators.generator import Exemplar, Failure, Request
from podium.search.generators.llm.task import task_values
from podium.search.generators.llm.templates import (
    IMPROVE,
    REPAIR_TEMPLATE,
    START_TEMPLATE,
    SYSTEM,
    Templates,
)
from podium.search.judging.diagnostics import LEGEND

MOST_DIAGNOSTICS = 3000
"""Characters of diagnostics that are quoted of one program."""

_FENCE = re.compile(r"`{3,}")

START, REPAIR = "start", "repair"
DIFFERENT, SHARED, MODIFY, SIMPLIFY, CROSS = "different", "shared", "modify", "simplify", "cross"

OPERATORS = Templates.read().operators
"""What a program is asked for, by the name of the operator."""

_ALONE = {DIFFERENT: 2.0, MODIFY: 4.0, SIMPLIFY: 1.0}
_TOGETHER = {DIFFERENT: 2.0, SHARED: 2.0, MODIFY: 3.0, SIMPLIFY: 1.0, CROSS: 2.0}
_BOLDER = 4.0  # how much likelier a different idea becomes when a search stagnates

_STAGNANT = "The search has found nothing better for long: leave the beaten path."


@dataclass(frozen=True, slots=True)
class Prompt:
    """What is asked: the general task, and what is wanted this time."""

    system: str
    user: str
    operator: str

    @property
    def text(self) -> str:
        """Returns both parts as one text."""
        return f"{self.system}\n\n{self.user}"


@dataclass(frozen=True, slots=True)
class PromptWriter:
    """Writes questions from templates, for one run."""

    templates: Templates = field(default_factory=Templates.read)
    workload: str = ""  # the pods and nodes that candidates are judged on, in words
    losses: str = ""  # where fgd loses GPUs there

    def write(self, request: Request) -> Prompt:
        """Writes the question of a request; equal requests get equal questions."""
        parents = sorted(request.parents, key=lambda each: (each.fitness, -each.number))
        texts = [parent.text for parent in parents]
        texts += [request.failure.text] if request.failure else []
        values = {
            **task_values(may_hold=any("HOLD" in text for text in texts)),
            "workload": self.workload, "fitness": request.fitness, "losses": self._losses(request),
        }  # fmt: skip
        if request.failure:
            return self._prompt(REPAIR_TEMPLATE, values | _repair(request.failure), REPAIR)
        operator = draw_operator(request)
        values |= {
            "legend": LEGEND if any(parent.diagnostics for parent in parents) else "",
            "programs": "\n\n".join(map(_program, parents)),
            "notes": _fenced(request.notes),
            "stagnant": _STAGNANT if request.is_stagnant and parents else "",
            "operator": self.templates.operators[operator],
        }
        return self._prompt(IMPROVE if parents else START_TEMPLATE, values, operator)

    def _prompt(self, name: str, values: Mapping[str, str], operator: str) -> Prompt:
        fill = self.templates.fill
        return Prompt(fill(SYSTEM, values), fill(name, values), operator)

    def _losses(self, request: Request) -> str:
        return "\n".join(filter(None, [self.losses, request.best]))


def draw_operator(request: Request) -> str:
    """Draws what is asked for by the request's seed."""
    if not request.parents:
        return START
    weights = dict(_TOGETHER if len(request.parents) > 1 else _ALONE)
    if request.is_stagnant:
        weights[DIFFERENT] *= _BOLDER
    left = np.random.default_rng(request.seed).random() * sum(weights.values())
    for operator, weight in weights.items():
        left -= weight
        if left < 0:
            return operator
    return MODIFY


def _program(parent: Exemplar) -> str:
    told = [f"## Program {parent.number}, fitness {parent.fitness:.4f}"]
    thought = " ".join(parent.thought.split())
    said = f"# Thought: {thought}\n" if thought else ""
    told.append(_fenced(said + parent.text, "python"))
    if parent.diagnostics:
        told.append(f"What happened:\n{_cut(parent.diagnostics)}")
    return "\n".join(told)


def _repair(failure: Failure) -> dict[str, str]:
    return {
        "text": _quoted(failure.text).rstrip(), "gate": failure.gate,
        "reason": _fenced(_cut(failure.reason)),
    }  # fmt: skip


def _cut(text: str) -> str:
    if len(text) <= MOST_DIAGNOSTICS:
        return text.rstrip()
    left = text[:MOST_DIAGNOSTICS].rsplit("\n", 1)[0]
    return f"{left}\n(and {len(text) - len(left):,} characters more)"


def _fenced(text: str, language: str = "text") -> str:
    return f"```{language}\n{_quoted(text).rstrip()}\n```" if text.strip() else ""


def _quoted(text: str) -> str:
    """Takes out what could end a fence; programs have it in comments and docstrings alone."""
    return _FENCE.sub("", text)
