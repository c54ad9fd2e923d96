"""Takes down what a worker tells of a candidate, and refuses what cannot be true."""

from __future__ import annotations

import contextlib
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from podium.evaluation.measures import Held, Values, is_measurement
from podium.evaluation.waste import Losses, are_losses
from podium.search.candidate.verdict import (
    COMPILE,
    CONTRACT,
    NOVELTY,
    RACE,
    TINY,
    TRAINING,
    Verdict,
)
from podium.search.judging.probe import AXES, Decisions
from podium.search.sandbox.channel import ChannelGarbled
from podium.search.sandbox.worker_main import LACKING, SPOILED

_INSIDE = (TINY, CONTRACT, NOVELTY, COMPILE, RACE, TRAINING)
_MOST_DECISIONS = 2**53
_SIGNATURE = re.compile("[0-9a-f]{16}")
_MODULE = re.compile(r"[A-Za-z_]\w*(\.\w+)*", re.ASCII)
_LIBRARIES = frozenset({"cma", "llvmlite", "numba", "numpy", "podium", *sys.stdlib_module_names})
_AT_WORK_WHEN_LOADED = frozenset({"antigravity", "idlelib", "test", "this", "turtledemo"})
_MOST_LACKING = 50

Wants = Callable[[Decisions], bool]
"""Says of a candidate's decisions whether it is still wanted."""


def anything(_decisions: Decisions) -> bool:
    """Wants every candidate."""
    return True


@dataclass(slots=True)
class Trial:
    """Holds how far a candidate came inside a worker."""

    gate: str = TINY
    reason: str = ""
    is_done: bool = False
    is_spoiled: bool = True
    cases: list[dict[str, float]] = field(default_factory=list)
    held: list[Held] = field(default_factory=list)  # decisions of each case
    losses: list[Losses] = field(default_factory=list)  # case by case, once it is accepted
    seconds: float = 0.0
    simulated_s: float = 0.0  # processor time in the simulator, on the training cases
    processor_s: float = 0.0  # processor time of the worker, for all of it
    decisions: Decisions | None = None
    tuned: dict[str, float] = field(default_factory=dict)
    evaluations: int = 0  # that tuning took
    killed_by: str = ""  # a signal that somebody else sent: nothing is known of the candidate
    lacking: tuple[str, ...] = ()  # modules without which nothing is known of it either

    @property
    def verdict(self) -> Verdict:
        """Gives the verdict of the gates inside the worker."""
        return Verdict(self.is_done and not self.reason, self.gate, self.reason)


@dataclass(slots=True)
class Hearing:
    """Hears a worker out on one candidate."""

    kinds: tuple[str, ...]  # protocol of each case
    wants: Wants
    is_tuning: bool = False
    bounds: tuple[Values, ...] = ()  # what is possible on each case, where it is known
    trial: Trial = field(default_factory=Trial)

    def take(self, message: dict[str, Any]) -> dict[str, Any] | None:
        """Takes one message down; gives what the worker waits to hear, if anything."""
        trial = self.trial
        if message.get("gate") in _INSIDE:
            trial.gate = message["gate"]
        elif "case" in message:
            self._take_case(message)
        elif "losses" in message:
            self._take_losses(message)
        elif "signature" in message and trial.decisions is None:
            trial.decisions = _decisions(message)
            return {"is_wanted": self.wants(trial.decisions)}
        elif message.get("done"):
            self._take_end(message)
        else:
            raise ChannelGarbled("a message of no known kind")
        return None

    def _take_end(self, message: dict[str, Any]) -> None:
        trial = self.trial
        if not message.get("reason"):
            self._complete(message)
        trial.reason = str(message.get("reason", ""))
        trial.processor_s = _seconds(message, "processor_s")
        trial.lacking = _modules(message)
        trial.is_done, trial.is_spoiled = True, bool(message.get(SPOILED, True))

    def _complete(self, message: dict[str, Any]) -> None:
        """Refuses a good ending that lacks what was asked for."""
        trial, expected = self.trial, len(self.kinds)
        if self.is_tuning:
            trial.tuned, trial.evaluations = _tuned(message)
        elif len(trial.cases) != expected:
            raise ChannelGarbled("fewer cases than it was given")
        elif trial.decisions is None:
            raise ChannelGarbled("no decisions")
        elif len(trial.losses) != expected:
            raise ChannelGarbled("fewer losses than cases")

    def _take_case(self, message: dict[str, Any]) -> None:
        trial, kinds = self.trial, self.kinds
        index: Any = message["case"]
        values: Any = message.get("values")
        is_next = type(index) is int and index == len(trial.cases) < len(kinds)
        bounds = self.bounds[index] if is_next and self.bounds else None
        if not is_next or not is_measurement(values, kinds[index], bounds):
            raise ChannelGarbled("figures that no run can have")
        trial.cases.append(values)
        trial.held.append(_held(message))
        trial.simulated_s += _seconds(message, "simulated_s")

    def _take_losses(self, message: dict[str, Any]) -> None:
        trial = self.trial
        index: Any = message["losses"]
        values: Any = message.get("values")
        is_next = type(index) is int and index == len(trial.losses) < len(trial.cases)
        if not is_next or not are_losses(values, trial.cases[index]):
            raise ChannelGarbled("losses that no run can have")
        trial.losses.append(values)


def _decisions(message: dict[str, Any]) -> Decisions:
    signature: Any = message["signature"]
    behaviour: Any = message.get("behaviour")
    is_digest = isinstance(signature, str) and _SIGNATURE.fullmatch(signature) is not None
    is_row = isinstance(behaviour, list) and len(behaviour) == len(AXES)
    if not is_digest or not is_row or not all(_is_part(each) for each in behaviour):
        raise ChannelGarbled("decisions that nobody can make")
    return Decisions(signature, tuple(float(each) for each in behaviour))


def _held(message: dict[str, Any]) -> Held:
    told: Any = message.get("held")
    is_pair = isinstance(told, list) and len(told) == 2 and {*map(type, told)} == {int}
    if not is_pair or not 0 <= told[0] <= told[1] <= _MOST_DECISIONS:
        raise ChannelGarbled("decisions that nobody can make")
    return told[0], told[1]


def _tuned(message: dict[str, Any]) -> tuple[dict[str, float], int]:
    values: Any = message.get("tuned")
    evaluations: Any = message.get("evaluations")
    is_told = isinstance(values, dict) and type(evaluations) is int and evaluations >= 0
    if not is_told or not all(type(each) in (int, float) for each in values.values()):
        raise ChannelGarbled("constants that are no numbers")
    try:
        return {name: float(each) for name, each in values.items()}, evaluations
    except OverflowError as error:
        raise ChannelGarbled("constants that no machine holds") from error


def _modules(message: dict[str, Any]) -> tuple[str, ...]:
    """Reads which modules of libraries a process could no longer load; others are not loaded."""
    told: Any = message.get(LACKING, [])
    if not isinstance(told, list) or len(told) > _MOST_LACKING:
        raise ChannelGarbled("modules that nobody needs")
    names = [each for each in told if isinstance(each, str) and _MODULE.fullmatch(each)]
    roots = _LIBRARIES - _AT_WORK_WHEN_LOADED
    return tuple(name for name in names if name.partition(".")[0] in roots)


def _seconds(message: dict[str, Any], key: str) -> float:
    """Reads a time that nothing depends on; nonsense is none."""
    with contextlib.suppress(TypeError, ValueError, OverflowError):
        return float(message.get(key, 0.0))
    return 0.0


def _is_part(value: object) -> bool:
    return type(value) in (int, float) and 0 <= value <= 1  # type: ignore[operator]
