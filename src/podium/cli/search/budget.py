"""Says how long a sitting goes on, by its options and by what the run began with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from podium.cli.search.options import read_time

if TYPE_CHECKING:
    from podium.search.run.plan import Budget

DEFAULT_EVALUATIONS = 2000


def budget_of(evaluations: int | None, time_span: str | None, target: float | None) -> Budget:
    """Gives the budget that is asked for; without a number or a time it is a usual number."""
    from podium.search.run.plan import Budget

    span = read_time(time_span)
    if evaluations is None and span is None:
        evaluations = DEFAULT_EVALUATIONS
    return Budget(evaluations, span, target)


def renewed_budget(
    saved: dict[str, Any], evaluations: int | None, time_span: str | None, target: float | None
) -> Budget:
    """Gives the budget of a sitting: what is asked for now, else what the run began with."""
    from podium.search.run.plan import Budget

    if target is None:
        target = saved.get("target")
    if evaluations is not None or time_span is not None:
        return budget_of(evaluations, time_span, target)
    return Budget(saved.get("evaluations"), saved.get("seconds"), target)
