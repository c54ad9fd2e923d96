"""Runs searches: begins or resumes one, and records how a session ended."""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import podium
from podium.errors import PodiumError, UsageError
from podium.experiments.listener import SILENT, Cancelled, Listener, announce_compilation
from podium.files.html import html_code

if TYPE_CHECKING:
    from podium.policies import Policy
    from podium.search.judging.panel import Ranking
    from podium.search.run.plan import Budget, RunPlan
    from podium.search.run.progress import Progress
    from podium.search.run.setup import Means
    from podium.settings import Settings
    from podium.store import RunRecord, Store


@dataclass(frozen=True, slots=True)
class Entry:
    """How a new run is entered in the store: settings, name and command."""

    settings: Settings
    name: str
    command: Sequence[str] = ()  # as it was typed; none where no command began the run
    is_resumable: bool = True
    control: Mapping[str, Any] = field(default_factory=dict)  # what it is a control of, if any


@dataclass(frozen=True, slots=True, eq=False)
class SearchOutcome:
    """The outcome of one session of a search."""

    run_id: str
    folder: str
    ending: str  # why the session is over
    summary: dict[str, Any]
    text: str | None  # of the best candidate; None where none was accepted

    @property
    def best(self) -> Policy:
        """Loads the best candidate, after it has passed the gates again.

        Raises:
            UsageError: no candidate was accepted.
        """
        from podium.search.candidate.gates import checked_policy

        if self.text is None:
            raise UsageError("the search accepted no candidate", hint="give it more evaluations")
        # Named by its text, so that what two searches found can be compared.
        digest = hashlib.sha256(self.text.encode()).hexdigest()
        return checked_policy(self.text, f"found-{digest[:6]}")

    @property
    def fitness(self) -> float | None:
        """Returns the training fitness of the best candidate."""
        fitness: float | None = self.summary["fitness"]
        return fitness

    def as_object(self) -> dict[str, Any]:
        """Describes the outcome as JSON types."""
        told = {"run": self.run_id, "ending": self.ending, "folder": self.folder}
        return {**told, **self.summary}

    def _repr_html_(self) -> str:
        """Shows the best candidate in a notebook."""
        return html_code(repr(self), self.text or "")

    def __repr__(self) -> str:
        found = "nothing accepted" if self.fitness is None else f"fitness {self.fitness:.3f}"
        done = f"{self.summary['evaluations']:,} evaluations"
        return f"<SearchOutcome of run {self.run_id}: {found} after {done}>"


def begin(
    store: Store, entry: Entry, plan: RunPlan, means: Means, budget: Budget,
    listener: Listener = SILENT,
) -> SearchOutcome:  # fmt: skip
    """Enters a new run and works on it until the budget is spent."""
    given = {**plan.options, "objective": {"fitness": plan.fitness}}
    own = replace(means, given=given, root=entry.settings.search.folder)
    with entered(store, entry, plan, budget) as record:
        return work_on(store, record, own, budget, listener)


def begin_in_store(
    entry: Entry, plan: RunPlan, means: Means, budget: Budget, listener: Listener = SILENT
) -> SearchOutcome:
    """Enters a new run in the store of its settings and works on it until the budget is spent."""
    from podium.experiments.runs import open_runs

    with open_runs(entry.settings, is_made=True) as store:
        return begin(store, entry, plan, means, budget, listener)


def begin_in_passing(
    settings: Settings, plan: RunPlan, means: Means, budget: Budget, listener: Listener = SILENT
) -> SearchOutcome:
    """Searches in a temporary store; only the outcome stays."""
    from podium.store import open_store

    with tempfile.TemporaryDirectory(prefix="podium-search-") as name:
        root = Path(name)
        own = replace(settings, search=replace(settings.search, folder=root / "runs"))
        with open_store(f"sqlite:///{root / 'search.db'}") as store:
            entry = Entry(own, plan.fitness, is_resumable=False)
            found = begin(store, entry, plan, means, budget, _Passing(listener))
    return replace(found, folder="")


class _Passing(Listener):
    """Passes on what still applies to a run that is deleted afterwards: it cannot be resumed."""

    def __init__(self, listener: Listener) -> None:
        self._listener = listener

    def warn(self, text: str) -> None:
        """Passes a warning on."""
        self._listener.warn(text)

    def search_progress(self, progress: Progress) -> None:
        """Passes progress on."""
        self._listener.search_progress(progress)


def work_on(
    store: Store, record: RunRecord, means: Means, budget: Budget, listener: Listener = SILENT
) -> SearchOutcome:
    """Works on a run for one session: until the budget of the whole run is spent."""
    from podium.search.run.setup import open_search

    announce_compilation(listener)
    with (
        open_search(store, record, means, listener.search_progress) as search,
        settled(store, record, listener),
    ):
        search.get_ready()
        warn_of_walls(listener, search.missing_walls)
        listener.status(f"run {record.id} in {record.folder}")
        if means.is_validating:
            warn_of_ranking(listener, search.rank(means.workers))
        search.work(budget)
        if means.is_validating and search.tally.accepted:
            listener.status("choosing the winner on other seeds, and validating it ...")
        search.conclude()
        summary, best = search.progress().summary(), search.best
    text = None if best is None else best.text
    return SearchOutcome(record.id, record.folder, search.ending, summary, text)


def warn_of_ranking(listener: Listener, ranking: Ranking) -> None:
    """Warns that what is good in training may not be good at full size."""
    if ranking.is_low:
        listener.warn(
            f"the training cases rank programs unlike full size: rank correlation "
            f"{ranking.correlation:.2f} on {ranking.programs} programs; train on more nodes "
            "(--nodes), more traces (--trace) or more seeds (--seeds)"
        )


def warn_of_walls(listener: Listener, missing: Sequence[str]) -> None:
    """Warns that candidates run less confined than they should."""
    if missing:
        listener.warn(f"candidates are not fully confined: missing {', '.join(missing)}")


def create(store: Store, entry: Entry, plan: RunPlan, budget: Budget) -> RunRecord:
    """Enters a run under a new id, with its plan, its budget and the command that began it."""
    from podium.search.run.folder import PLAN
    from podium.search.run.plan import RunPlan
    from podium.search.run.setup import KIND, create_run
    from podium.search.run.trust import seal
    from podium.settings import secrets_of
    from podium.store import RunRecord

    run_id, settings = secrets.token_hex(4), entry.settings
    secret = secrets_of(settings, os.environ, list(entry.command[1:]))
    folder = str((settings.search.folder / run_id).absolute())
    asked = {
        **plan.as_object(), "budget": asdict(budget),
        "allow_unconfined": settings.search.allow_unconfined,
        "command": secret.hide_command(list(entry.command)), "version": podium.__version__,
        **({"control": dict(entry.control)} if entry.control else {}),
    }  # fmt: skip
    shown = secret.hide_all(asked)
    record = RunRecord(run_id, KIND, secret.hide(entry.name), time.time(), shown, folder=folder)
    made = create_run(store, plan, record, secret)
    if entry.is_resumable:
        seal(made, run_id, RunPlan.from_object(made.read(PLAN)))
    return record


@contextmanager
def entered(store: Store, entry: Entry, plan: RunPlan, budget: Budget) -> Iterator[RunRecord]:
    """Enters a run for a block; a run that fails before its first candidate is removed again."""
    from podium.store.records import FAILED

    record = create(store, entry, plan, budget)
    try:
        yield record
    except (KeyboardInterrupt, Cancelled):
        raise  # it can be resumed
    except BaseException:
        with suppress(PodiumError, OSError):  # what went wrong first is what is told
            if store.candidates.count(record.id):
                store.runs.update(record.id, status=FAILED)
            else:
                store.runs.delete(record.id)
                shutil.rmtree(record.folder)
        raise


@contextmanager
def settled(store: Store, record: RunRecord, listener: Listener) -> Iterator[None]:
    """Records how a session ended."""
    from podium.store.run_status import session

    try:
        with session(store.runs, record.id, (KeyboardInterrupt, Cancelled)):
            yield
    except (KeyboardInterrupt, Cancelled):
        listener.status(f"stopped; podium search resume {record.id} continues")
        raise
