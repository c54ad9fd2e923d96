"""Tells which job types should not run beside each other.

A pair is judged in each direction apart, as a large job may disturb a small one and not the other
way round; to avoid a pair, one direction is enough.
"""

from __future__ import annotations

import math

from podium.online.runtime import RuntimeModel


class Company:
    """Which job types slow each other down, by what a model of run times knows."""

    def __init__(self, runtime: RuntimeModel) -> None:
        self._runtime = runtime
        self._slows: dict[tuple[str, str], float] = {}  # how probable it is, until more is known
        self._beside: dict[str, list[str]] = {}  # job types that were seen beside each
        for victim in runtime.job_types:
            for name in runtime.beside(victim):
                self._beside.setdefault(name, []).append(victim)

    def avoided(self, job_type: str, threshold: float, probability: float) -> list[str]:
        """Lists job types that probably slow this one down by more than this, or that it slows."""
        found = {
            name
            for name in self._runtime.beside(job_type)
            if self._probability(job_type, name, threshold) > probability
        }
        for name in self._beside.get(job_type, ()):
            if self._probability(name, job_type, threshold) > probability:
                found.add(name)
        return sorted(found)

    def _probability(self, victim: str, name: str, threshold: float) -> float:
        known = self._slows.get((victim, name))
        if known is None:
            mean, variance = self._runtime.slowdown(victim, name)
            above = math.log1p(threshold) - mean
            known = 0.5 * math.erfc(above / math.sqrt(2.0 * max(variance, 1e-12)))
            self._slows[victim, name] = known
        return known
