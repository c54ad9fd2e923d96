"""Orders jobs that wait: what their waiting costs against the time that they would take."""

from __future__ import annotations

GRACE_S = 60.0
"""Everybody counts as having waited so long, so that short jobs go first among new ones."""


def priority_score(expected_s: float, waited_s: float = 0.0, weight: float = 1.0) -> float:
    """Returns a number from 0 to 100: the higher, the sooner the job should run.

    Among jobs that have just arrived this is Smith's rule (1956), which keeps the weighted time
    until jobs are done lowest: weight over run time. Whoever waits gains, as by the highest
    response ratio next (Brinch Hansen, 1971), so that nobody waits for ever. 50 stands for a job of
    weight 1 that has waited, with a minute of grace, as long as it will take.

    >>> [round(priority_score(expected_s)) for expected_s in (6, 60, 600)]
    [91, 50, 9]
    >>> round(priority_score(600, waited_s=5_940))
    91
    """
    ratio = weight * (waited_s + GRACE_S) / expected_s
    return 100.0 * (ratio / (1.0 + ratio))
