"""Chooses how a candidate is run: interpreted, compiled, or in plain Python.

Compiling costs more than a small case; the interpreter of bred programs is compiled already. It
takes fifteen times as long as machine code, so several large cases are worth a compilation.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from dataclasses import dataclass

from podium.errors import PolicyError
from podium.policies import PairPolicy
from podium.search.program.bounds import is_sound, is_within
from podium.search.program.interpreter import interpreted
from podium.search.program.reader import parse_exactly
from podium.sim.plan import Plan
from podium.sim.state import gpu_slots
from podium.sim.tiers import SCAN_NODES, Tier

PLAIN_WORK = 200_000
"""From this many pairs of pods and nodes on, plain Python takes longer than compiling."""

LARGE_WORK, WORTH_COMPILING = 4_000_000, 20_000_000
"""Pairs of pods and nodes from which a case is large, and large cases are worth compiling."""

_EIGHT = re.compile(r"range\s*\(\s*8\s*\)")


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
    engine = None if is_compiled else _interpreted(text, policy.name, plans)
    if engine is not None:
        return Form(engine)
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


def _interpreted(text: str, name: str, plans: Sequence[Plan]) -> PairPolicy | None:
    # A program that may fail, or leave the whole numbers, fails in its own way only as written.
    if not all(map(_is_usual, plans)):
        return None
    # To the interpreter, range(8) is all slots of a record.
    if _EIGHT.search(text) and any(gpu_slots(plan.cluster) != 8 for plan in plans):
        return None
    try:
        program = parse_exactly(text)
        return interpreted(program, name) if is_sound(program) else None
    except PolicyError:
        return None


@functools.lru_cache(maxsize=64)
def _is_usual(plan: Plan) -> bool:
    """Returns whether nodes and pods are within what programs are proven to be sound for."""
    return is_within(plan.cluster.nodes, "node") and is_within(plan.arrivals.pods, "pod")
