"""Sets what a search found beside its controls, which get as many evaluations as it had."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from podium.errors import InputError
from podium.experiments.arms import Contest, best_of_arm, judged_seeds
from podium.experiments.listener import SILENT, Listener
from podium.files.excerpt import excerpt

if TYPE_CHECKING:
    from podium.search.promotion.control import Arm, Control
    from podium.search.run.plan import RunPlan
    from podium.search.run.setup import Means
    from podium.settings import Settings
    from podium.store import RunRecord, Store


@dataclass(frozen=True, slots=True)
class Searched:
    """A search that controls are run for, and the means to run them."""

    store: Store
    settings: Settings
    record: RunRecord
    plan: RunPlan
    means: Means
    evaluations: int  # of the search, and of earlier ones that it began with

    def contest(self) -> Contest:
        """Returns what the controls share with the search."""
        return Contest(
            self.store, self.settings, f"control of {self.record.id}", self.record.id, self.plan,
            self.means, self.evaluations, judged_seeds(self.store, self.record.id),
        )  # fmt: skip


def controls_of(
    searched: Searched, arms: Sequence[Arm], listener: Listener = SILENT
) -> tuple[Control, ...]:
    """Returns the best of each arm; arms that were never run, or not to their end, are run."""
    contest = searched.contest()
    _announce(searched, [arm for arm in arms if not contest.is_done(arm)], listener)
    return tuple(best_of_arm(contest, arm, listener) for arm in arms)


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


def _announce(searched: Searched, missing: Sequence[Arm], listener: Listener) -> None:
    """Says before it begins what will be run, and about how long that takes."""
    if not missing:
        return
    count, summary = searched.evaluations, searched.record.summary
    own, seconds = summary.get("evaluations"), summary.get("seconds")
    told = ""
    if isinstance(seconds, int | float) and own:
        told = f", about {_words(len(missing) * count * seconds / own)} in all"
    listener.status(f"controls with {count:,} evaluations each: {' and '.join(missing)}{told}")


def _words(seconds: float) -> str:
    if seconds < 90:
        return f"{max(1, seconds):.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
