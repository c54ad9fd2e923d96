"""Records what a worker reports on a candidate, and refuses what cannot be true."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from podium.evaluation.measures import FIGURES, FUNSEARCH, Held, Values, is_measurement
from podium.evaluation.waste import Losses, are_in_use, are_losses, without_details
from podium.search.candidate.verdict import (
    AXES,
    COMPILE,
    CONTRACT,
    NOVELTY,
    RACE,
    TINY,
    TRAINING,
    Decisions,
    Verdict,
)
from podium.search.judging.fitness import Outcome
from podium.search.judging.race import NO_RACE, Race
from podium.search.sandbox.channel import ChannelGarbled
from podium.search.sandbox.report import WorkerReport, seconds_of

_INSIDE = (TINY, CONTRACT, NOVELTY, COMPILE, RACE, TRAINING)
_SHORT = (TINY, CONTRACT, NOVELTY)
_MOST_DECISIONS = 2**53
_SIGNATURE = re.compile("[0-9a-f]{16}")

_MOST_OUTCOMES = 10_000

Score = Callable[[Sequence[Outcome]], float]
"""Returns what runs are worth."""

Wants = Callable[[Decisions], bool]
"""Returns whether a candidate with these decisions is still wanted."""


Racing = Callable[[Decisions], Race]
"""Returns what a candidate with these decisions races against."""


def anything(_decisions: Decisions) -> bool:
    """Accepts every candidate."""
    return True


def unopposed(_decisions: Decisions) -> Race:
    """Lets every candidate run to its end."""
    return NO_RACE


@dataclass(slots=True)
class TrialReport(WorkerReport):
    """How far a candidate came inside a worker, and what was measured there."""

    kinds: tuple[str, ...]  # protocol of each case
    wants: Wants
    bounds: tuple[Values, ...] = ()  # what is possible on each case, where it is known
    score: Score | None = None  # what runs are worth, where the worker cannot know it
    gate: str = TINY
    cases: list[dict[str, float]] = field(default_factory=list)
    held: list[Held] = field(default_factory=list)  # decisions of each case
    losses: list[Losses] = field(default_factory=list)  # case by case, once it is accepted
    simulated_s: float = 0.0  # processor time in the simulator, on the training cases
    decisions: Decisions | None = None
    racing: Racing = unopposed
    race: Race = NO_RACE  # of this candidate, once its decisions are known

    @property
    def verdict(self) -> Verdict:
        """Returns what the gates inside the worker decided."""
        return Verdict(self.is_done and not self.reason, self.gate, self.reason)

    @property
    def is_short(self) -> bool:
        """Returns whether the candidate has not reached the training cases yet."""
        return self.gate in _SHORT

    def take_step(self, message: dict[str, Any]) -> dict[str, Any] | None:
        """Records a gate, a case, its losses, or decisions, which the parent answers."""
        if message.get("gate") in _INSIDE:
            self.gate = message["gate"]
        elif "case" in message:
            self._take_case(message)
        elif "losses" in message:
            self._take_losses(message)
        elif "outcomes" in message:
            return _worth(message, self.score)
        elif "signature" in message and self.decisions is None:
            self.decisions = _decisions(message)
            self.race = self.racing(self.decisions)
            is_wanted = self.wants(self.decisions)
            return {"is_wanted": is_wanted, "race": self.race.as_object()}
        else:
            raise ChannelGarbled("a message of an unknown kind")
        return None

    def complete(self, _message: dict[str, Any]) -> None:
        """Refuses a successful report that lacks a case, its losses or decisions."""
        expected = len(self.kinds)
        if len(self.cases) != expected:
            raise ChannelGarbled("fewer cases than it was given")
        if self.decisions is None:
            raise ChannelGarbled("no decisions")
        if len(self.losses) != expected:
            raise ChannelGarbled("fewer losses than cases")

    def _take_case(self, message: dict[str, Any]) -> None:
        index: Any = message["case"]
        values: Any = message.get("values")
        is_next = type(index) is int and index == len(self.cases) < len(self.kinds)
        bounds = self.bounds[index] if is_next and self.bounds else None
        if not is_next or not _is_measured(values, self.kinds[index], bounds):
            raise ChannelGarbled("figures that no run can have")
        self.cases.append(values)
        self.held.append(_held(message))
        self.simulated_s += seconds_of(message, "simulated_s")

    def _take_losses(self, message: dict[str, Any]) -> None:
        index: Any = message["losses"]
        values: Any = message.get("values")
        is_next = type(index) is int and index == len(self.losses) < len(self.cases)
        is_possible = values == {} if is_next and self.kinds[index] == FUNSEARCH else None
        if is_possible is None:
            is_possible = is_next and are_losses(values, self.cases[index])
        if not is_possible:
            raise ChannelGarbled("losses that no run can have")
        self.losses.append(values)


def _is_measured(values: Any, kind: str, bounds: Values | None = None) -> bool:
    """Returns whether a report has the figures of a run, with or without what was lost."""
    if not isinstance(values, dict) or not all(isinstance(key, str) for key in values):
        return False
    figures, losses = without_details(values)
    if not is_measurement(figures, kind, bounds) or not are_in_use(values):
        return False
    return not losses or are_losses(losses, figures)


def _worth(message: dict[str, Any], score: Score | None) -> dict[str, Any]:
    """Answers a worker that asks what runs are worth."""
    rows: Any = message["outcomes"]
    is_list = isinstance(rows, list) and 0 < len(rows) <= _MOST_OUTCOMES
    if score is None or not is_list or not all(_is_outcome(row) for row in rows):
        raise ChannelGarbled("runs that no fitness asks about")
    return {"worth": score([Outcome(*row) for row in rows])}


def _is_outcome(row: Any) -> bool:
    is_row = isinstance(row, list) and len(row) == 3 and row[0] in FIGURES
    return is_row and all(_is_measured(values, row[0]) for values in row[1:])


def _decisions(message: dict[str, Any]) -> Decisions:
    signature: Any = message["signature"]
    behaviour: Any = message.get("behaviour")
    is_digest = isinstance(signature, str) and _SIGNATURE.fullmatch(signature) is not None
    is_row = isinstance(behaviour, list) and len(behaviour) == len(AXES)
    if not is_digest or not is_row or not all(_is_part(each) for each in behaviour):
        raise ChannelGarbled("decisions that nobody can make")
    return Decisions(signature, tuple(float(each) for each in behaviour))


def _held(message: dict[str, Any]) -> Held:
    pair: Any = message.get("held")
    is_pair = isinstance(pair, list) and len(pair) == 2 and {*map(type, pair)} == {int}
    if not is_pair or not 0 <= pair[0] <= pair[1] <= _MOST_DECISIONS:
        raise ChannelGarbled("decisions that nobody can make")
    return pair[0], pair[1]


def _is_part(value: object) -> bool:
    return type(value) in (int, float) and 0 <= value <= 1  # type: ignore[operator]
