"""Shows how the best candidate of a run came about."""

from __future__ import annotations

from typing import TYPE_CHECKING

from podium.cli import figures
from podium.cli.render import Screen

if TYPE_CHECKING:
    from podium.search.run.lineage import Step


def show_lineage(screen: Screen, steps: list[Step]) -> None:
    """Prints a candidate and its ancestors, the first of them first; nothing for one without."""
    if len(steps) < 2:
        return
    print()
    titles = ["lineage", "made by", "from", "source", "fitness", "gain", "parts"]
    screen.table(titles, [_row(step) for step in steps])


def _row(step: Step) -> tuple[object, ...]:
    record = step.record
    gain = None if step.gain is None else figures.Figure(f"{step.gain:+.3f}")
    parents = ", ".join(f"#{each}" for each in record.parents) or None
    fitness = figures.decimal(record.fitness, 3)
    number = f"#{record.number}"
    return number, step.operator, parents, record.source, fitness, gain, record.complexity
