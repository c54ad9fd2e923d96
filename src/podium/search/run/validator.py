"""Measures the best candidate on held-out seeds, only to show it: nothing is chosen by it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from podium.errors import PodiumError
from podium.evaluation.cases import TrainingSet
from podium.search.judging.judge import Judge
from podium.search.population import Member
from podium.search.run.progress import Validated
from podium.search.sandbox.limits import Limits

Validate = Callable[[int, str], Validated | None]
"""Measures the candidate of a number and text; None if it fails."""


class Validator:
    """Judges on validation seeds, in a process of its own that starts when it is needed."""

    def __init__(
        self, training: TrainingSet, fitness: str, limits: Limits, *, may_hold: bool = False
    ) -> None:
        self._held_out, self._fitness, self._limits = training.held_out(), fitness, limits
        self._may_hold = may_hold
        self._judge: Judge | None = None
        self._is_closed = False
        self._opening = threading.Lock()
        self._turn = threading.Lock()  # of whoever measures

    def check(self, number: int, text: str) -> Validated | None:
        """Measures one candidate; None if it fails on cases it never saw, or holds pods there."""
        scores = self.scores(text)
        if not scores or (scores["held"] and not self._may_hold):
            return None
        return Validated(number, scores["fitness"], scores["fgd"]["fitness"])

    def scores(self, text: str) -> dict[str, Any]:
        """Returns the scores of a text on the held-out cases; None where it is refused."""
        with self._turn:
            return self._opened().judge(text).scores

    def close(self) -> None:
        """Ends the process, and with it a measurement that is under way elsewhere."""
        with self._opening:
            self._is_closed = True
        if self._judge is not None:
            self._judge.pool.close()
        with self._turn:  # whoever was measuring has heard of it
            self._judge = None

    def _opened(self) -> Judge:
        with self._opening:
            if self._is_closed:
                raise PodiumError("the process that validates was stopped")
            if self._judge is None:
                self._judge = Judge(self._held_out, self._fitness, 1, self._limits)
            return self._judge


class BestCheck:
    """Validates the best candidate beside the search, which does not wait for it."""

    def __init__(self, validate: Validate) -> None:
        self._validate = validate
        self._checking: Future[Validated | None] | None = None
        self._wanted: Member | None = None
        self._last: Validated | None = None
        self.number: int | None = None  # of the candidate that was to be validated last

    def check(self, best: Member) -> None:
        """Has a candidate validated, unless a better one comes before its turn."""
        if best.number != self.number:
            self.number, self._wanted = best.number, best
        self._go_on()

    def last(self) -> Validated | None:
        """Returns the last validation that is there."""
        self._go_on()
        return self._last

    def finish(self) -> None:
        """Waits until the best is validated."""
        while self._checking is not None or self._wanted is not None:
            if self._checking is not None:
                self._checking.exception()
            self._go_on()

    def _go_on(self) -> None:
        if self._checking is not None and self._checking.done():
            self._last = self._checking.result() or self._last
            self._checking = None
        if self._checking is None and self._wanted is not None:
            best, self._wanted = self._wanted, None
            thread = ThreadPoolExecutor(1, "podium-validation")
            self._checking = thread.submit(self._validate, best.number, best.text)
            thread.shutdown(wait=False)  # it ends with its work, however the session ends
