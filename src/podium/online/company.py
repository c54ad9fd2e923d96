"""Tells which job types should not run beside each other.

A pair is judged in each direction apart, as a large job may disturb a small one and not the other
way round; to avoid a pair, one direction is enough.
"""

from __future__ import annotations

import math

from podium.online.runtime import RuntimeModel


def avoided(
    runtime: RuntimeModel, job_type: str, threshold: float, probability: float
) -> tuple[str, ...]:
    """Lists job types that probably slow this one down by more than this, or that it slows."""
    least = math.log1p(threshold)
    found = {
        name
        for name, known in runtime.slowdowns(job_type).items()
        if _exceeds(known, least) > probability
    }
    for victim in runtime.victims(job_type):
        if _exceeds(runtime.slowdown(victim, job_type), least) > probability:
            found.add(victim)
    return tuple(sorted(found))


def _exceeds(known: tuple[float, float], least: float) -> float:
    """Returns how probable it is that a neighbour adds more than this."""
    mean, variance = known
    return 0.5 * math.erfc((least - mean) / math.sqrt(2.0 * max(variance, 1e-12)))
