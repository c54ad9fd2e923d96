"""Tries one candidate inside a worker: tiny trace, contract, compilation, training cases."""

from __future__ import annotations

import ast
import functools
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from podium.errors import PodiumError, PolicyError
from podium.evaluation.measures import Values, measure_case
from podium.evaluation.waste import measure_losses
from podium.policies import PairPolicy
from podium.policies.source import Source
from podium.search.candidate.verdict import (
    COMPILE,
    CONTRACT,
    NOVELTY,
    RACE,
    TINY,
    TRAINING,
    Decisions,
    Rejected,
)
from podium.search.judging.contract import check_compiled, check_contract, decisions_of, is_proven
from podium.search.judging.fitness import Fitness, Outcome
from podium.search.judging.fixtures import Fixtures
from podium.search.judging.form import Form, form_as_written, form_for
from podium.search.judging.race import NO_RACE, Race
from podium.search.judging.scrutiny import check_held, check_run
from podium.sim import Result
from podium.sim.execution import execute
from podium.sim.plan import Plan
from podium.sim.recount import seal
from podium.sim.tiers import Tier

CANDIDATE = "candidate"
Tell = Callable[[dict[str, Any]], None]


@dataclass(frozen=True, slots=True)
class Parent:
    """The connection to the parent process."""

    tell: Tell
    wants: Callable[[Decisions], bool]  # whether a candidate with such decisions is still wanted
    may_hold: bool = True  # whether a candidate that holds pods is
    race: Callable[[], Race] = lambda: NO_RACE  # of a candidate that is wanted


def try_candidate(
    fixtures: Fixtures, text: str, baseline: Sequence[Values], fitness: Fitness, parent: Parent
) -> None:
    """Runs a candidate through the gates of the worker; raises Rejected where one refuses it.

    `baseline` is what fgd reaches on each case; a candidate that races against nobody needs none.
    """
    sealed = _seals(fixtures)
    form = _admitted(fixtures, text, parent)
    tell, race = parent.tell, parent.race()
    last = race.cases
    tell({"gate": RACE if last else TRAINING})
    found: list[Outcome] = []
    results: list[tuple[Result, Values]] = []
    for index, values in enumerate(_measured(fixtures, form, parent, results)):
        if index < last:
            kind, family = fixtures.plans[index].protocol.name, fixtures.families[index]
            found.append(Outcome(kind, values, baseline[index], family))
            race.check(found, fitness)
        if index + 1 == last:
            tell({"gate": TRAINING})
    rows = zip(results, sealed, fixtures.median_pods, strict=True)
    for index, ((result, values), seal_before, median_pod) in enumerate(rows):
        check_run(result, values, seal_before)
        tell({"losses": index, "values": measure_losses(result, median_pod)})


@functools.lru_cache(maxsize=4)
def _seals(fixtures: Fixtures) -> tuple[str, ...]:
    """Seals the cases before the first candidate meets them."""
    return tuple(seal(plan) for plan in fixtures.plans)


def _admitted(fixtures: Fixtures, text: str, parent: Parent) -> Form:
    """Returns the form in which a candidate runs, if it is worth running the training cases."""
    tell = parent.tell
    tell({"gate": TINY})
    policy = read_policy(text)
    _run(fixtures.tiny, policy, "python", may_hold=parent.may_hold)
    tell({"gate": CONTRACT})
    scores = check_contract(policy, fixtures)
    tell({"gate": NOVELTY})
    form = form_for(text, policy, fixtures.plans, fixtures.is_compiled)
    if not is_proven(form, fixtures, scores):
        form = form_as_written(policy, fixtures.plans, fixtures.is_compiled)
    if not parent.wants(decisions_of(policy, fixtures, form)):
        raise Rejected("it decides like a candidate that was judged before, on every probed state")
    if form.is_compiled:
        tell({"gate": COMPILE})
        check_compiled(policy, fixtures)
    return form


def _measured(
    fixtures: Fixtures, form: Form, parent: Parent, results: list[tuple[Result, Values]]
) -> Iterator[Values]:
    """Runs case after case, and keeps what is checked again once all of them are done."""
    for index, plan in enumerate(fixtures.plans):
        began_s = time.thread_time()
        result = _run(plan, form.policy, form.tier(plan), may_hold=parent.may_hold)
        values = measure_case(result)
        simulated_s = time.thread_time() - began_s
        held = [result.held_decisions, result.decisions]
        parent.tell({"case": index, "values": values, "held": held, "simulated_s": simulated_s})
        results.append((replace(result, derived={}), values))
        yield values


def read_policy(text: str) -> PairPolicy:
    """Builds a policy from a candidate's text."""
    # The allow-list, which the text has passed, is stricter than the check of any policy file.
    tree = ast.parse(text)
    source = Source(CANDIDATE, text, tree, compile(tree, CANDIDATE, "exec", dont_inherit=True))
    try:
        policy = PairPolicy.of(source, CANDIDATE)
    except PodiumError as error:
        if isinstance(error.__cause__, MemoryError):
            raise error.__cause__ from error
        raise Rejected.by(error) from error
    if policy.not_compiled:
        raise Rejected(f"it cannot be compiled: {policy.not_compiled}")
    return policy


def _run(plan: Plan, policy: PairPolicy, tier: Tier, *, may_hold: bool) -> Result:
    try:
        result = execute(replace(plan, policy=policy, tier=tier))
    except PolicyError as error:
        if isinstance(error.__cause__, MemoryError):
            raise error.__cause__ from error
        raise Rejected.by(error) from error
    check_held(result, may_hold=may_hold)
    return result
