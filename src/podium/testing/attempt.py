"""Waits for a check step by step: a policy that never ends is found out by the step it is at."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from podium.policies.thread import PolicyThread
from podium.testing.report import Finding

ENDS = "ends"
STEP_S = 5.0
"""How long one call of a policy may take before it counts as endless."""

MOST_WAITS = 12
"""For how many such times a call may wait for a busy machine, or sleep."""

WORKED_SHARE = 0.9
"""Who has worked for so much of the time was not kept from it."""

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
            limit_s = self._step_s if step is None else step[1]
            if self._has_ended(thread, step, limit_s):
                thread.leave()
                found: Sequence[Finding] = thread.result()
                return found
            if step is not None and step is self._step:
                thread.leave()
                return [Finding(ENDS, False, f"not within {limit_s:g} s {step[0]()}")]

    def _has_ended(self, thread: PolicyThread, step: object, limit_s: float) -> bool:
        """Waits for the end of the check for as long as one step may take."""
        before_s = thread.worked_s()
        for _ in range(MOST_WAITS):
            if thread.has_ended(limit_s):
                return True
            worked_s = thread.worked_s() - before_s
            if step is not self._step or worked_s >= WORKED_SHARE * limit_s:
                break
        return False
