"""Keeps the winner of a run: the best by training while it runs, and who is chosen when it ends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from podium.search.population import Archive, Member
from podium.search.run.folder import BEST, SearchFolder
from podium.search.run.plan import Budget, RunPlan
from podium.search.run.progress import Chosen, Validated
from podium.search.run.selection import MOST_ALIKE, Measure, Selection
from podium.search.run.validator import BestCheck, Validate

START_S, CLOSING_SHARE = 8.0, 0.1
"""What is kept back of the time of a run to choose its winner: a start, and this share at most."""


@dataclass(slots=True)
class Winner:
    """Writes the winner so far to the run's folder, and has it validated beside the search."""

    folder: SearchFolder
    finalists: int
    selection: Selection
    checks: BestCheck
    chosen: Chosen | None = None  # on the selection set, once a session is over
    _validated: Validated | None = field(default=None)

    @classmethod
    def of(
        cls, plan: RunPlan, folder: SearchFolder, measure: Measure | None, validate: Validate
    ) -> Winner:
        """Prepares to choose as a plan says."""
        most_alike = MOST_ALIKE if plan.tuning.deep else None  # who tunes deep has many
        selection = Selection(measure, plan.finalists, most_alike)
        return cls(folder, plan.finalists, selection, BestCheck(validate))

    @property
    def validated(self) -> Validated | None:
        """Returns the last validation that is there."""
        self._validated = self.checks.last() or self._validated
        return self._validated

    def restore(self, state: Mapping[str, Any]) -> None:
        """Takes what earlier sessions measured."""
        self._validated = Validated(**state["validated"]) if state.get("validated") else None
        self.checks.number = self._validated.number if self._validated else None
        self.selection.restore(state.get("finalists", ()))

    def state(self) -> dict[str, Any]:
        """Describes as JSON types what `restore` takes."""
        validated = self.validated
        return {
            "validated": asdict(validated) if validated else None,
            "finalists": [asdict(each) for each in self.selection.measured.values()],
        }

    def take(self, best: Member | None, before: Member | None) -> None:
        """Takes the best by training, where it is another than before."""
        if best is not None and best is not before:
            self.chosen = None
            self._keep(best)

    def choose(self, archive: Archive) -> None:
        """Chooses on the selection set, and waits until the winner is validated."""
        if self.selection.measure is not None:
            self.chosen = self.selection.choose(archive)
            best = self.among(archive)
            if best is not None:
                self._keep(best)
        self.checks.finish()

    def among(self, archive: Archive) -> Member | None:
        """Returns the winner so far: the chosen one, else the best by training."""
        return self.chosen.member if self.chosen else archive.best

    def closing_s(self, budget: Budget, evaluation_s: float) -> float:
        """Estimates how long it takes to choose, which the time of a run includes."""
        if budget.seconds is None or self.selection.measure is None:
            return 0.0
        return min(CLOSING_SHARE * budget.seconds, START_S + self.finalists * evaluation_s)

    def _keep(self, best: Member) -> None:
        self.folder.write_text(BEST, best.text)
        self.checks.check(best)
