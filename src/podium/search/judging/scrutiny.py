"""Checks what a candidate did in a run: nothing impossible, and no holding where it is not allowed.

The text only shows what a candidate might do; what counts is what it did.
"""

from __future__ import annotations

from collections.abc import Sequence

from podium.evaluation.measures import Held, Values, contradictions
from podium.search.candidate.verdict import Rejected
from podium.sim import Result
from podium.sim.plan import Plan
from podium.sim.recount import IMPOSSIBLE, Recount, recount, seal


def check_held(result: Result, *, may_hold: bool) -> None:
    """Refuses a run that held a pod where none may be held."""
    if not may_hold and result.held_decisions:
        plan = result.plan
        name = f"{plan.trace.name} {plan.protocol.name} seed {plan.seed}"
        raise Rejected(hold_refusal([(result.held_decisions, result.decisions)], [name]))


def check_run(result: Result, values: Values, sealed: str) -> None:
    """Refuses a run that cannot be, and figures that do not follow from its placements.

    `sealed` is the seal of the plan from before any candidate ran on it. Whatever wrote where it
    must not may have written elsewhere too, so the process is not to be used again.
    """
    check_sealed(result.plan, sealed)
    found = recount(result)
    if found.is_possible:
        found = Recount(tuple(contradictions(result, values)))
    if not found.is_possible:
        raise Rejected(found.refusal, is_spoiling=True)


def check_sealed(plan: Plan, sealed: str) -> None:
    """Refuses a run after which the trace is another than before."""
    if seal(plan) != sealed:
        raise Rejected(f"{IMPOSSIBLE}: the trace was changed during the run", is_spoiling=True)


def hold_refusal(held: Sequence[Held], names: Sequence[str]) -> str:
    """Explains where pods were held and how often; empty if none was.

    >>> hold_refusal([(0, 80), (3, 90)], ["case a", "case b"])
    'it holds pods: at 3 of 90 decisions on case b a pod fitted and was not placed; place every \
pod on a node where it fits'
    """
    found = next((index for index, (count, _) in enumerate(held) if count), None)
    if found is None:
        return ""
    count, decisions = held[found]
    told = (
        f"at {count:,} of {decisions:,} decisions on {names[found]} a pod fitted and was not placed"
    )
    return f"it holds pods: {told}; place every pod on a node where it fits"
