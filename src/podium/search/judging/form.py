"""Chooses how a candidate is run: interpreted, compiled, or in plain Python.

Compiling costs more than a small case; the interpreter of bred programs is compiled already. It
takes fifteen times as long as machine code, so several large cases are worth a compilation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from podium.errors import PolicyError
from podium.policies import PairPolicy
from podium.search.program.bounds import is_sound
from podium.search.program.interpreter import interpreted
from podium.search.program.program import Program
from podium.search.program.reader import parse
from podium.sim.plan import Plan
from podium.sim.tiers import SCAN_NODES, Tier

PLAIN_WORK = 200_000
"""From this many pairs of pods and nodes on, plain Python takes longer than compiling."""

LARGE_WORK, WORTH_COMPILING = 4_000_000, 20_000_000
"""Pairs of pods and nodes from which a case is large, and large cases are worth compiling."""


@dataclass(frozen=True, slots=True)
class Form:
    """The form of a candidate that is run; every form scores alike."""

    policy: PairPolicy
    is_plain: bool = False
    is_compiled: bool = False

    @property
    def is_interpreted(self) -> bool:
        """Returns whether the interpreter of bred programs runs it."""
        return not self.is_plain and not self.is_compiled

    def tier(self, plan: Plan) -> Tier:
        """Returns the tier that executes a case."""
        if self.is_plain:
            return "python"
        return "cached" if len(plan.cluster) > SCAN_NODES else "scan"


def form_for(text: str, policy: PairPolicy, plans: Sequence[Plan], is_compiled: bool) -> Form:
    """Chooses the cheapest form for the cases, or machine code where that is asked for."""
    program = None if is_compiled else _program(text)
    if program is not None:
        return Form(interpreted(program, policy.name))
    return form_as_written(policy, plans, is_compiled)


def form_as_written(policy: PairPolicy, plans: Sequence[Plan], is_compiled: bool) -> Form:
    """Chooses plain Python, or machine code where that is asked for or cheaper."""
    is_compiled = is_compiled or sum(map(work_of, plans)) > PLAIN_WORK
    return Form(policy, is_plain=not is_compiled, is_compiled=is_compiled)


def work_of(plan: Plan) -> int:
    """Counts the pairs of pods and nodes of a case."""
    return len(plan.cluster) * len(plan.arrivals)


def large_cases(plans: Sequence[Plan]) -> frozenset[int]:
    """Finds the cases that are run as machine code, by index; none if they are too few for it."""
    found = [index for index, plan in enumerate(plans) if work_of(plan) >= LARGE_WORK]
    is_worth = sum(work_of(plans[index]) for index in found) >= WORTH_COMPILING
    return frozenset(found if is_worth else ())


def _program(text: str) -> Program | None:
    # A program that may fail, or leave the whole numbers, fails in its own way only as written.
    try:
        program = parse(text)
    except PolicyError:
        return None
    return program if is_sound(program) else None
