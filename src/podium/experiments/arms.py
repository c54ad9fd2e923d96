"""Runs the arms of a comparison: each once, kept in the store, and resumed where it stopped.

An arm is a way to spend a number of evaluations: breeding, drawing at random, or tuning formulas
that people wrote.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from podium.experiments.listener import Listener
from podium.experiments.runs import SEARCH, best_of_run, standing
from podium.experiments.search import Entry, SearchOutcome, begin, work_on

if TYPE_CHECKING:
    from podium.search.promotion.control import Control
    from podium.search.run.plan import RunPlan
    from podium.search.run.progress import Progress
    from podium.search.run.setup import Means
    from podium.settings import Settings
    from podium.store import RunRecord, Store


@dataclass(frozen=True, slots=True)
class Contest:
    """What the arms of one comparison share: cases, evaluations, and the means to run them."""

    store: Store
    settings: Settings
    title: str  # of its runs
    of: str  # what is compared: the run that controls belong to, or a comparison
    plan: RunPlan
    means: Means
    evaluations: int  # of each arm
    fitness: Mapping[str, float] = field(default_factory=dict)  # of formulas, where it is known
    formulas: Mapping[str, str] | None = None  # that are tuned; None: all that people wrote

    def marks(self, arm: str, turn: int) -> dict[str, Any]:
        """Describes one run of an arm, so that it is found again."""
        marks = {"of": self.of, "arm": arm, "round": turn, "evaluations": self.evaluations}
        options = self.plan.options.get(arm)  # of a model or a command: another one is another arm
        return marks if options is None else marks | {"options": self._digest(options)}

    def _digest(self, options: Mapping[str, Any]) -> str:
        from podium.settings import secrets_of

        shown = secrets_of(self.settings, os.environ, []).hide_all(dict(options))
        return text_digest(json.dumps(shown, sort_keys=True, default=str))

    def kept(self, arm: str, turn: int = 1) -> RunRecord | None:
        """Finds the run of an arm in the store."""
        marks = self.marks(arm, turn)
        records = (each for each in self.store.runs.all() if each.kind == SEARCH)
        return next((each for each in records if each.settings.get("control") == marks), None)

    def is_done(self, arm: str) -> bool:
        """Returns whether an arm was run to its end."""
        last = (self.kept(arm, 2) if arm == "tuned" else None) or self.kept(arm)
        return last is not None and _is_finished(last)


def text_digest(text: str) -> str:
    """Digests a text, to find again what belongs to it."""
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def best_of_arm(contest: Contest, arm: str, listener: Listener) -> Control:
    """Returns the best of an arm; one that was never run, or not to its end, is run."""
    works = {"tuned": _tuned, "random": _drawn}
    return works[arm](contest, listener) if arm in works else _written(contest, arm, listener)


def judged_seeds(store: Store, run_id: str) -> dict[str, float]:
    """Lists the fitness of the formulas that a run began with, by name."""
    known = (each for each in store.candidates.of(run_id) if each.kind == "seed")
    return {each.source: each.fitness for each in known if each.fitness is not None}


def _is_finished(record: RunRecord) -> bool:
    from podium.store import FINISHED

    return standing(record).status == FINISHED


def _tuned(contest: Contest, listener: Listener) -> Control:
    """Tunes every formula of people once, and the best of them again from other numbers."""
    from podium.search.promotion.control import (
        Control,
        first_round,
        restart_plan,
        root_of,
        tuning_plan,
    )

    store, most = contest.store, contest.evaluations
    begun = tuning_plan(contest.plan, most, contest.fitness, contest.formulas)
    first = _run(contest, ("tuned", 1), begun, first_round(begun, most), listener)
    rows = store.candidates.of(first.id)
    used = int(first.summary["evaluations"])
    again = restart_plan(contest.plan, rows, most - used)
    runs = [first]
    if again is not None:
        runs.append(_run(contest, ("tuned", 2), again, most - used, listener))
    elif used < most:
        told = f"used {used:,} of {most:,} evaluations: no formula can be tuned with the rest"
        listener.warn(f"{contest.title}: tuned {told}")
    found = [best_of_run(store, run)[0] for run in runs]
    best = max(found, key=lambda each: each.fitness or 0.0)
    by_number = {each.number: each for each in store.candidates.of(best.run_id)}
    source = root_of(best, by_number).source.partition("~")[0]
    total = sum(int(run.summary["evaluations"]) for run in runs)
    return Control("tuned", best.text, source, tuple(each.id for each in runs), total,
                   best.fitness or 0.0)  # fmt: skip


def _drawn(contest: Contest, listener: Listener) -> Control:
    """Draws programs of the grammar at random."""
    from podium.search.promotion.control import random_plan

    return _one_run(contest, "random", random_plan(contest.plan), listener)


def _written(contest: Contest, arm: str, listener: Listener) -> Control:
    """Has candidates bred, or written by a model or a command."""
    from podium.search.run.strategies import plan_of

    return _one_run(contest, arm, plan_of(arm, contest.plan), listener)


def _one_run(contest: Contest, arm: str, plan: RunPlan, listener: Listener) -> Control:
    from podium.search.promotion.control import Control

    run = _run(contest, (arm, 1), plan, contest.evaluations, listener)
    (best,) = best_of_run(contest.store, run)
    return Control(arm, best.text, f"candidate {best.number}", (run.id,),
                   int(run.summary["evaluations"]), best.fitness or 0.0)  # fmt: skip


def _run(
    contest: Contest, arm: tuple[str, int], plan: RunPlan, evaluations: int, listener: Listener
) -> RunRecord:
    """Runs one round of an arm to its end, or what is left of it."""
    from podium.search.run.plan import Budget

    store, settings = contest.store, contest.settings
    title = f"{contest.title}: {arm[0]}" + (f" {arm[1]}" if arm[1] > 1 else "")
    told, budget = _Told(listener, title, evaluations), Budget(evaluations)
    record = contest.kept(*arm)
    means = replace(contest.means, is_validating=False)
    if record is not None and _is_finished(record):
        return record
    if record is None:
        entry = Entry(settings, title, control=contest.marks(*arm))
        outcome = begin(store, entry, plan, means, budget, told)
    else:
        means = replace(means, root=Path(settings.search.folder))
        outcome = work_on(store, record, means, budget, told)
    _warn_of_rest(outcome, evaluations, told)
    return store.runs.get(outcome.run_id)


def _warn_of_rest(outcome: SearchOutcome, evaluations: int, listener: Listener) -> None:
    """Explains why a run did not use all of its evaluations: arms are compared at equal ones."""
    used = int(outcome.summary["evaluations"])
    if used < evaluations:
        told = f"run {outcome.run_id} used {used:,} of {evaluations:,} evaluations"
        listener.warn(f"{told}: {outcome.ending}")


class _Told(Listener):
    """Shows the evaluations of an arm as the progress of a stage."""

    def __init__(self, listener: Listener, stage: str, total: int) -> None:
        self._listener, self._stage, self._total = listener, stage, total

    def warn(self, text: str) -> None:
        """Passes a warning on."""
        self._listener.warn(text)

    def status(self, text: str) -> None:
        """Passes a line on."""
        self._listener.status(text)

    def search_progress(self, progress: Progress) -> None:
        """Shows how far the arm is."""
        self._listener.progress(self._stage, progress.tally.evaluations, self._total)
