"""Describes a PodDisruptionBudget: how many of some pods should keep running."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from podium.model.constraints import PodSelector

_DEFAULT = "default"
_MOST_DIGITS = 9


@dataclass(frozen=True, slots=True)
class DisruptionBudget:
    """Protects pods from eviction; preemption goes against it only where nothing else helps.

    Amounts are written as in a manifest: "2", or "50%" of the pods that it selects.
    """

    name: str
    selector: PodSelector  # without namespaces
    namespace: str = ""
    min_available: str = ""
    max_unavailable: str = ""
    desired_healthy: int | None = None  # as a controller has worked it out
    # The same of evictions, when the dump was made; `repr` is part of digests, which came before.
    disruptions_allowed: int | None = field(default=None, repr=False)
    disrupted: tuple[str, ...] = field(default=(), repr=False)  # pods whose eviction has begun

    def selects(self, namespace: str, labels: Mapping[str, str]) -> bool:
        """Decides as `filterPodsWithPDBViolation` does: an empty selector selects no pod."""
        if (namespace or _DEFAULT) != (self.namespace or _DEFAULT) or not labels:
            return False
        return bool(self.selector.requirements) and self.selector.selects(namespace, labels)

    def least_healthy(self, expected: int) -> int:
        """Gives how many of so many pods should run, as the disruption controller does.

        >>> DisruptionBudget("b", PodSelector(None), max_unavailable="30%").least_healthy(7)
        4
        """
        if self.desired_healthy is not None:
            return self.desired_healthy
        if self.max_unavailable:
            return max(0, expected - _amount(self.max_unavailable, expected))
        return _amount(self.min_available or "100%", expected)

    def must_run(self, expected: int, running: int, healthy: int) -> int:
        """Gives how many pods should run, by what `status.disruptionsAllowed` says at the start.

        It speaks of so many running pods, of which some are healthy; where none runs, of nothing.

        >>> budget = DisruptionBudget("b", PodSelector(None), "", "2", disruptions_allowed=1)
        >>> budget.must_run(5, 4, 4), budget.must_run(5, 0, 0)
        (3, 2)
        """
        desired = self.least_healthy(expected)
        if self.disruptions_allowed is None or not running:
            return desired
        if self.disruptions_allowed:
            return healthy - self.disruptions_allowed
        return max(desired, healthy)


def is_amount(written: str) -> bool:
    """Tells whether a text is a whole number, or a percentage."""
    digits = written.removesuffix("%")
    return digits.isascii() and digits.isdigit() and len(digits) <= _MOST_DIGITS


def _amount(written: str, expected: int) -> int:
    """Reads a number, or a percentage, rounded up."""
    if written.endswith("%"):
        return -(-int(written[:-1]) * expected // 100)
    return int(written)
