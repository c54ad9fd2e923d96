"""Runs the controls of a search: each once, kept in the store, and resumed where it stopped."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from podium.errors import InputError, UsageError
from podium.experiments.listener import SILENT, Listener
from podium.experiments.runs import SEARCH, best_candidates, standing
from podium.experiments.search import Entry, begin, work_on
from podium.files.excerpt import excerpt

if TYPE_CHECKING:
    from podium.search.promotion.control import Arm, Control
    from podium.search.run.plan import RunPlan
    from podium.search.run.progress import Progress
    from podium.search.run.setup import Means
    from podium.settings import Settings
    from podium.store import CandidateRecord, RunRecord, Store


@dataclass(frozen=True, slots=True)
class Searched:
    """A search that controls are run for, and the means to run them."""

    store: Store
    settings: Settings
    record: RunRecord
    plan: RunPlan
    means: Means
    evaluations: int  # of the search, and of earlier ones that it began with

    def marks(self, arm: str, turn: int) -> dict[str, Any]:
        """Describes one run of an arm, so that it is found again."""
        return {
            "of": self.record.id, "arm": arm, "round": turn, "evaluations": self.evaluations,
        }  # fmt: skip

    def kept(self, arm: str, turn: int) -> RunRecord | None:
        """Finds the run of an arm in the store."""
        marks = self.marks(arm, turn)
        records = (each for each in self.store.runs.all() if each.kind == SEARCH)
        return next((each for each in records if each.settings.get("control") == marks), None)


def controls_of(
    searched: Searched, arms: Sequence[Arm], listener: Listener = SILENT
) -> tuple[Control, ...]:
    """Returns the best of each arm; arms that were never run, or not to their end, are run."""
    _announce(searched, arms, listener)
    works = {"tuned": _tuned, "random": _drawn}
    return tuple(works[arm](searched, listener) for arm in arms)


def best_of_run(store: Store, record: RunRecord, count: int = 1) -> list[CandidateRecord]:
    """Lists the best candidates of a run, the winner that was chosen first.

    Raises:
        UsageError: none was accepted.
    """
    found = best_candidates(store, record, count)
    if not found:
        raise UsageError(
            f"run {record.id} has no accepted candidate",
            hint=f"podium search resume {record.id} continues the search",
        )
    return found


def spent(store: Store, record: RunRecord, seen: frozenset[str] = frozenset()) -> int:
    """Counts the evaluations of a run and of the earlier runs whose best it began with."""
    own = record.summary.get("evaluations", 0)
    if type(own) is not int or own < 0:
        raise corrupt(record, f"evaluations is {excerpt(own)}")
    seen |= {record.id}
    known = {each.id: each for each in store.runs.all()}
    begun = {each.source.rpartition("-")[0] for each in store.candidates.of(record.id)
             if each.kind == "seed"}  # fmt: skip
    earlier = sorted((begun & known.keys()) - seen)
    return own + sum(spent(store, known[each], seen) for each in earlier)


def corrupt(record: RunRecord, problem: str) -> InputError:
    """Builds the error about a record that others may have written."""
    return InputError(
        f"the record of run {record.id} is corrupt: {problem}", where="the store",
        hint="podium runs show shows its contents; promote from an intact run",
    )  # fmt: skip


def _announce(searched: Searched, arms: Sequence[Arm], listener: Listener) -> None:
    """Says before it begins what will be run, and about how long that takes."""
    missing = [arm for arm in arms if not _is_done(searched, arm)]
    if not missing:
        return
    count, summary = searched.evaluations, searched.record.summary
    own, seconds = summary.get("evaluations"), summary.get("seconds")
    told = ""
    if isinstance(seconds, int | float) and own:
        told = f", about {_words(len(missing) * count * seconds / own)} in all"
    listener.status(f"controls with {count:,} evaluations each: {' and '.join(missing)}{told}")


def _is_done(searched: Searched, arm: Arm) -> bool:
    last = searched.kept(arm, 2 if arm == "tuned" else 1) or searched.kept(arm, 1)
    return last is not None and _is_finished(last)


def _is_finished(record: RunRecord) -> bool:
    from podium.store import FINISHED

    return standing(record).status == FINISHED


def _words(seconds: float) -> str:
    if seconds < 90:
        return f"{max(1, seconds):.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def _tuned(searched: Searched, listener: Listener) -> Control:
    """Tunes every formula of people once, and the best of them again from other numbers."""
    from podium.search.promotion.control import (
        Control,
        first_round,
        restart_plan,
        root_of,
        tuning_plan,
    )

    most, known = searched.evaluations, searched.store.candidates.of(searched.record.id)
    judged = {each.source: each.fitness for each in known if each.kind == "seed"}
    fitness = {title: value for title, value in judged.items() if value is not None}
    begun = tuning_plan(searched.plan, most, fitness)
    first = _run(searched, ("tuned", 1), begun, first_round(begun, most), listener)
    rows = searched.store.candidates.of(first.id)
    used = int(first.summary["evaluations"])
    again = restart_plan(searched.plan, rows, most - used)
    runs = [first]
    if again is not None:
        runs.append(_run(searched, ("tuned", 2), again, most - used, listener))
    found = [best_of_run(searched.store, run)[0] for run in runs]
    best = max(found, key=lambda each: each.fitness or 0.0)
    by_number = {each.number: each for each in searched.store.candidates.of(best.run_id)}
    source = root_of(best, by_number).source.partition("~")[0]
    total = sum(int(run.summary["evaluations"]) for run in runs)
    return Control("tuned", best.text, source, tuple(each.id for each in runs), total,
                   best.fitness or 0.0)  # fmt: skip


def _drawn(searched: Searched, listener: Listener) -> Control:
    """Draws programs of the run's grammar at random."""
    from podium.search.promotion.control import Control, random_plan

    most = searched.evaluations
    run = _run(searched, ("random", 1), random_plan(searched.plan, most), most, listener)
    (best,) = best_of_run(searched.store, run)
    return Control("random", best.text, f"candidate {best.number}", (run.id,),
                   int(run.summary["evaluations"]), best.fitness or 0.0)  # fmt: skip


def _run(
    searched: Searched, arm: tuple[str, int], plan: RunPlan, evaluations: int, listener: Listener
) -> RunRecord:
    """Runs one round of an arm to its end, or what is left of it."""
    from podium.search.run.plan import Budget

    store, settings = searched.store, searched.settings
    title = f"control of {searched.record.id}: {arm[0]}" + (f" {arm[1]}" if arm[1] > 1 else "")
    told, budget = _Told(listener, title, evaluations), Budget(evaluations)
    record = searched.kept(*arm)
    means = replace(searched.means, is_validating=False)
    if record is None:
        entry = Entry(settings, title, control=searched.marks(*arm))
        return store.runs.get(begin(store, entry, plan, means, budget, told).run_id)
    if not _is_finished(record):
        work_on(store, record, replace(means, root=Path(settings.search.folder)), budget, told)
    return store.runs.get(record.id)


class _Told(Listener):
    """Shows the evaluations of a control as the progress of a stage."""

    def __init__(self, listener: Listener, stage: str, total: int) -> None:
        self._listener, self._stage, self._total = listener, stage, total

    def warn(self, text: str) -> None:
        """Passes a warning on."""
        self._listener.warn(text)

    def status(self, text: str) -> None:
        """Passes a line on."""
        self._listener.status(text)

    def search_progress(self, progress: Progress) -> None:
        """Shows how far the control is."""
        self._listener.progress(self._stage, progress.tally.evaluations, self._total)
