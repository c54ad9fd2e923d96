"""How a worker process ended one request, and the checks that every ending must pass.

What a process reports before the end is for a subclass to record, and to check: see
`podium.search.judging.report`.
"""

from __future__ import annotations

import contextlib
import math
import re
import sys
from dataclasses import dataclass
from typing import Any

from podium.search.sandbox.channel import ChannelGarbled

SPOILED = "spoiled"
"""Marks an answer after which the process is not to be used again."""

LACKING = "lacking"
"""Marks an answer that depends on modules which this process could no longer load."""

_MODULE = re.compile(r"[A-Za-z_]\w*(\.\w+)*", re.ASCII)
_LIBRARIES = frozenset({"llvmlite", "numba", "numpy", "podium", *sys.stdlib_module_names})
_AT_WORK_WHEN_LOADED = frozenset({"antigravity", "idlelib", "test", "this", "turtledemo"})
_LONGEST_REASON = 4000
_MOST_LACKING = 50


@dataclass(slots=True, kw_only=True)
class WorkerReport:
    """The messages of one worker about one request; trusted as little as the candidate's code."""

    reason: str = ""  # why nothing came of it, in words
    is_done: bool = False
    is_spoiled: bool = True  # until the process says that it is not
    seconds: float = 0.0
    processor_s: float = 0.0  # processor time of the worker, for all of it
    killed_by: str = ""  # a signal that somebody else sent: nothing is known of the request
    lacking: tuple[str, ...] = ()  # modules without which nothing is known of it either

    @property
    def is_short(self) -> bool:
        """Returns whether the process is still at work that has the shorter of two limits."""
        return False

    def take(self, message: dict[str, Any]) -> dict[str, Any] | None:
        """Takes one message down, and returns what the worker waits to hear, if anything."""
        if not message.get("done"):
            return self.take_step(message)
        if not message.get("reason"):
            self.complete(message)
        self.reason = str(message.get("reason", ""))[:_LONGEST_REASON]
        self.processor_s = seconds_of(message, "processor_s")
        self.lacking = _modules(message)
        self.is_done, self.is_spoiled = True, bool(message.get(SPOILED, True))
        return None

    def take_step(self, _message: dict[str, Any]) -> dict[str, Any] | None:
        """Takes down a message before the last one."""
        raise ChannelGarbled("a message of an unknown kind")

    def complete(self, _message: dict[str, Any]) -> None:
        """Takes down what a good ending brings, and refuses one that lacks what was asked for."""


def seconds_of(message: dict[str, Any], key: str) -> float:
    """Reads a time that nothing depends on; nonsense counts as 0."""
    with contextlib.suppress(TypeError, ValueError, OverflowError):
        found = float(message.get(key, 0.0))
        return found if math.isfinite(found) and found >= 0 else 0.0
    return 0.0


def _modules(message: dict[str, Any]) -> tuple[str, ...]:
    """Reads which modules of libraries a process could no longer load; others are not loaded."""
    told: Any = message.get(LACKING, [])
    if not isinstance(told, list) or len(told) > _MOST_LACKING:
        raise ChannelGarbled("modules that nobody needs")
    names = [each for each in told if isinstance(each, str) and _MODULE.fullmatch(each)]
    roots = _LIBRARIES - _AT_WORK_WHEN_LOADED
    return tuple(
        name
        for name in names
        # A `__main__` begins to work when it is loaded.
        if name.partition(".")[0] in roots and not name.endswith("__main__")
    )
