"""Finds the texts that a run begins with beside the seeds."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from podium.cli.options import blaming
from podium.cli.runs import opened
from podium.files.text_file import read_text
from podium.policies.loaders import MOST_BYTES

if TYPE_CHECKING:
    from podium.settings import Settings

MOST_STARTERS = 24
"""So many candidates that decide differently are taken from an earlier run."""


def find_starters(
    settings: Settings, policy: list[Path] | None, origin: str | None
) -> tuple[tuple[str, str], ...]:
    """Gives texts with their names: those of files, and the best of an earlier run."""
    found = [read_starter(path) for path in policy or []]
    if origin is not None:
        with opened(settings) as kept:
            with blaming("flag --from"):
                record = kept.runs.get(origin)
            best = kept.candidates.best(record.id, 5 * MOST_STARTERS)
        apart = {each.signature: each for each in reversed(best)}
        chosen = sorted(apart.values(), key=lambda each: -(each.fitness or 0.0))[:MOST_STARTERS]
        found += [(f"{record.id}-{each.number}", each.text) for each in chosen]
    return tuple(found)


def read_starter(path: Path) -> tuple[str, str]:
    """Reads a policy file to begin with."""
    with blaming(f"policy {path}", "give a policy file"):
        return path.stem, read_text(path, MOST_BYTES)
