"""Writes what a language model, or a command, is asked."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from podium.search.generators.generator import Exemplar, Failure, Request
from podium.search.generators.llm.task import describe_task
from podium.search.judging.diagnostics import LEGEND

MOST_DIAGNOSTICS = 3000
"""Characters of diagnostics that are quoted of one program."""

START, REPAIR = "start", "repair"
DIFFERENT, SHARED, MODIFY, SIMPLIFY, CROSS = "different", "shared", "modify", "simplify", "cross"

OPERATORS = {
    START: "Write a policy.",
    DIFFERENT: "Write a policy that follows a totally different idea from the programs above.",
    SHARED: "Find the idea that the programs above have in common, and write a policy that builds "
    "on that idea with other means.",
    MODIFY: "Change the best program above so that it scores higher: mend what its diagnostics "
    "show to go wrong.",
    SIMPLIFY: "Simplify the best program above: take out the parts that are likely to suit only "
    "the cases it was trained on, and keep what must matter on any cluster.",
    CROSS: "Write a policy that brings the best parts of the programs above together in one "
    "formula.",
}
"""What a program is asked for, by the name of the operator."""

_ALONE = {DIFFERENT: 2.0, MODIFY: 4.0, SIMPLIFY: 1.0}
_TOGETHER = {DIFFERENT: 2.0, SHARED: 2.0, MODIFY: 3.0, SIMPLIFY: 1.0, CROSS: 2.0}
_BOLDER = 4.0  # how much likelier a different idea becomes when a search stagnates

_STAGNANT = "The search has found nothing better for long: leave the beaten path."
_REPAIR = """\
This policy was refused. Write it again so that it is accepted, and keep its idea.

```python
{text}```

Gate: {gate}
Reason:
{reason}"""


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


def write_prompt(request: Request) -> Prompt:
    """Writes the question of a request; equal requests get equal questions."""
    parents = sorted(request.parents, key=lambda each: (each.fitness, -each.number))
    texts = [parent.text for parent in parents]
    texts += [request.failure.text] if request.failure else []
    system = describe_task(any("HOLD" in text for text in texts))
    goal = f"# Fitness, higher is better\n{request.fitness}" if request.fitness else ""
    if request.failure:
        return Prompt(system, _joined(goal, _repair(request.failure)), REPAIR)
    operator = draw_operator(request)
    shown = [_program(parent) for parent in parents]
    title = "# Earlier programs, the best last" if shown else ""
    legend = LEGEND if any(parent.diagnostics for parent in parents) else ""
    stagnant = _STAGNANT if request.is_stagnant and shown else ""
    notes = f"# What this search has seen so far\n{request.notes}" if request.notes else ""
    wanted = _joined("# Now", stagnant, OPERATORS[operator])
    return Prompt(system, _joined(goal, title, legend, *shown, notes, wanted), operator)


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
    if parent.thought:
        told.append(f"Thought: {parent.thought}")
    told.append(f"```python\n{_ended(parent.text)}```")
    if parent.diagnostics:
        told.append(f"What happened:\n{_cut(parent.diagnostics)}")
    return "\n".join(told)


def _repair(failure: Failure) -> str:
    text, reason = _ended(failure.text), _cut(failure.reason)
    return _REPAIR.format(text=text, gate=failure.gate, reason=reason)


def _cut(text: str) -> str:
    if len(text) <= MOST_DIAGNOSTICS:
        return text.rstrip()
    left = text[:MOST_DIAGNOSTICS].rsplit("\n", 1)[0]
    return f"{left}\n(and {len(text) - len(left):,} characters more)"


def _ended(text: str) -> str:
    return text.rstrip() + "\n"


def _joined(*parts: str) -> str:
    return "\n\n".join(filter(None, parts))
