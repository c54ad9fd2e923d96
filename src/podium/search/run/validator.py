"""Measures the best candidate on held-out seeds, only to show it: nothing is chosen by it."""

from __future__ import annotations

from typing import Any

from podium.evaluation.cases import TrainingSet
from podium.search.judging.judge import Judge
from podium.search.run.progress import Validated
from podium.search.sandbox.limits import Limits


class Validator:
    """Judges on validation seeds, in a process of its own that starts when it is needed."""

    def __init__(
        self, training: TrainingSet, fitness: str, limits: Limits, *, may_hold: bool = False
    ) -> None:
        self._held_out, self._fitness, self._limits = training.held_out(), fitness, limits
        self._may_hold = may_hold
        self._judge: Judge | None = None

    def check(self, number: int, text: str) -> Validated | None:
        """Measures one candidate; None if it fails on cases it never saw, or holds pods there."""
        scores = self.scores(text)
        if not scores or (scores["held"] and not self._may_hold):
            return None
        return Validated(number, scores["fitness"], scores["fgd"]["fitness"])

    def scores(self, text: str) -> dict[str, Any]:
        """Returns the scores of a text on the held-out cases; None where it is refused."""
        if self._judge is None:
            self._judge = Judge(self._held_out, self._fitness, 1, self._limits)
        return self._judge.judge(text).scores

    def close(self) -> None:
        """Ends the process."""
        if self._judge is not None:
            self._judge.pool.close()
