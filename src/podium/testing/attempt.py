"""Waits for a check step by step: a policy that never ends is found out by the step it is at."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from podium.policies.thread import PolicyThread
from podium.testing.report import Finding

ENDS = "ends"
STEP_S = 5.0
"""How long one call of a policy may take before it counts as endless."""

RUN_STEPS = 60
"""A small run in the simulator may take as long as so many: it compiles, and calls thousands."""


class Attempt:
    """Tells how far a check has come; what compiles stands at no step, and takes its time."""

    def __init__(self, step_s: float = STEP_S) -> None:
        self._step_s = step_s
        self._step: tuple[Callable[[], str], float] | None = None

    def at(self, what: Callable[[], str], times: float = 1.0) -> None:
        """Begins a step that calls the policy, and may take as many times as long as others."""
        self._step = what, self._step_s * times

    def aside(self) -> None:
        """Begins something that does not call it."""
        self._step = None

    def findings(self, work: Callable[[], Sequence[Finding]]) -> Sequence[Finding]:
        """Runs a check, or finds the step at which it does not go on."""
        thread = PolicyThread("check of a policy")
        thread.begin(work)
        while True:
            step = self._step
            if thread.has_ended(self._step_s if step is None else step[1]):
                thread.leave()
                found: Sequence[Finding] = thread.result()
                return found
            if step is not None and step is self._step:
                thread.leave()
                what, limit_s = step
                return [Finding(ENDS, False, f"not within {limit_s:g} s {what()}")]
