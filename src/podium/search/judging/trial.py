"""Tries one candidate inside a worker: tiny trace, contract, compilation, training cases."""

from __future__ import annotations

import ast
import contextlib
import functools
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from podium.errors import PodiumError, PolicyError
from podium.evaluation.measures import Values
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
from podium.search.judging.case_run import CaseRun, losses_of, run_case
from podium.search.judging.contract import check_compiled, check_contract, decisions_of, is_proven
from podium.search.judging.fitness import Fitness, Outcome
from podium.search.judging.fixtures import Fixtures
from podium.search.judging.form import Form, form_as_written, form_for
from podium.search.judging.machine_code import LIBRARY, Parted
from podium.search.judging.race import NO_RACE, Race
from podium.search.judging.scrutiny import check_held, check_run, check_sealed
from podium.sim.execution import execute
from podium.sim.recount import seal

CANDIDATE = "candidate"
Tell = Callable[[dict[str, Any]], None]
Baseline = tuple[str, Values]
"""The protocol of a case, and what fgd reaches on it."""


@dataclass(frozen=True, slots=True)
class Parent:
    """The connection to the parent process."""

    tell: Tell
    wants: Callable[[Decisions], bool]  # whether a candidate with such decisions is still wanted
    may_hold: bool = True  # whether a candidate that holds pods is
    race: Callable[[], Race] = lambda: NO_RACE  # of a candidate that is wanted


def try_candidate(
    fixtures: Fixtures, text: str, baseline: Sequence[Baseline], fitness: Fitness, parent: Parent
) -> None:
    """Runs a candidate through the gates of the worker; raises Rejected where one refuses it.

    `baseline` is what fgd reaches on each case; a candidate that races against nobody needs none.
    """
    sealed = _seals(fixtures)
    forms = _admitted(fixtures, text, parent)
    tell, race = parent.tell, parent.race()
    last = race.cases
    tell({"gate": RACE if last else TRAINING})
    found: list[Outcome] = []
    runs: list[CaseRun] = []
    for index, values in enumerate(_measured(forms, parent, runs)):
        if index < last:
            kind, fgd = baseline[index]
            found.append(Outcome(kind, values, fgd, fixtures.families[index]))
            race.check(found, fitness)
        if index + 1 == last:
            tell({"gate": TRAINING})
    for index, (run, seal_before) in enumerate(zip(runs, sealed, strict=True)):
        if run.result is None:
            check_sealed(fixtures.plans[index], seal_before)
        else:
            check_run(run.result, run.values, seal_before)
        tell({"losses": index, "values": losses_of(fixtures, index, run.result)})


@functools.lru_cache(maxsize=4)
def _seals(fixtures: Fixtures) -> tuple[str, ...]:
    """Seals the cases before the first candidate meets them."""
    return tuple(seal(plan) for plan in fixtures.plans)


@dataclass(slots=True)
class Forms:
    """The forms of one candidate; machine code is made when the first large case comes."""

    fixtures: Fixtures
    policy: PairPolicy
    usual: Form
    parted: Parted
    large: Form | None = None

    @classmethod
    def of(cls, fixtures: Fixtures, text: str, policy: PairPolicy, usual: Form) -> Forms:
        """Finds what is compiled already: then it is the cheapest for all cases."""
        found = cls(fixtures, policy, usual, Parted.of(text))
        code = LIBRARY.known(found.parted)
        if fixtures.large and usual.is_interpreted and code is not None:
            found.usual = found.large = found._checked(code)
        return found

    def on(self, index: int) -> Form:
        """Returns the form for a case."""
        if index not in self.fixtures.large or not self.usual.is_interpreted:
            return self.usual
        if self.large is None:
            self.large = self._checked(LIBRARY.of(self.parted, self.policy))
        return self.large

    def _checked(self, code: PairPolicy) -> Form:
        check_compiled(self.policy, self.fixtures, code)
        return Form(code, is_compiled=True)


def _admitted(fixtures: Fixtures, text: str, parent: Parent) -> Forms:
    """Returns the forms in which a candidate runs, if it is worth running the training cases."""
    tell = parent.tell
    tell({"gate": TINY})
    policy = read_policy(text)
    with _refusing():
        result = execute(replace(fixtures.tiny, policy=policy, tier="python"))
    check_held(result, may_hold=parent.may_hold)
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
    return Forms.of(fixtures, text, policy, form)


def _measured(forms: Forms, parent: Parent, runs: list[CaseRun]) -> Iterator[Values]:
    """Runs case after case, and keeps what is checked again once all of them are done."""
    for index in range(len(forms.fixtures.plans)):
        form = forms.on(index)
        began_s = time.thread_time()
        with _refusing():
            run = run_case(forms.fixtures, index, form, may_hold=parent.may_hold)
        simulated_s = time.thread_time() - began_s
        values = dict(run.values)
        parent.tell(
            {"case": index, "values": values, "held": [*run.held], "simulated_s": simulated_s}
        )
        runs.append(run.condensed())
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


@contextlib.contextmanager
def _refusing() -> Iterator[None]:
    """Refuses a candidate that fails; one that used up its memory ends the process."""
    try:
        yield
    except PolicyError as error:
        if isinstance(error.__cause__, MemoryError):
            raise error.__cause__ from error
        raise Rejected.by(error) from error
