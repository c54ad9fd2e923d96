"""Records the figures of a training: one JSON object a line, and TensorBoard's event files.

A training that is resumed goes back to its last checkpoint, and so do its records.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

FIGURES = "figures.jsonl"
TENSORBOARD = "tensorboard"


class FigureRecords:
    """Writes figures by iteration into the folder of a run."""

    def __init__(self, folder: Path, iteration: int = 0, episodes: int = 0) -> None:
        self._path = folder / FIGURES
        self._keep_until(iteration)
        self._file = self._path.open("a", encoding="utf-8")
        self._board = _board(folder / TENSORBOARD, episodes)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        self._file.close()
        if self._board is not None:
            self._board.close()

    def add(self, iteration: int, episodes: int, kind: str, figures: Mapping[str, float]) -> None:
        """Records the figures of an iteration."""
        row = {"iteration": iteration, "episodes": episodes, "kind": kind, **figures}
        self._file.write(json.dumps(row) + "\n")
        if self._board is not None:
            for name, value in figures.items():
                self._board.add_scalar(f"{kind}/{name}", value, episodes)

    def flush(self) -> None:
        """Hands everything to the system."""
        self._file.flush()
        if self._board is not None:
            self._board.flush()

    def _keep_until(self, iteration: int) -> None:
        rows = [row for row in read_figures(self._path) if row["iteration"] <= iteration]
        text = "".join(json.dumps(row) + "\n" for row in rows)
        self._path.write_text(text, encoding="utf-8")


def read_figures(path: Path) -> list[dict[str, Any]]:
    """Reads what was recorded; a last line that was cut off by a crash is left out."""
    if not path.is_file():
        return []
    found = []
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            row = json.loads(line)
        except ValueError:
            continue
        if isinstance(row, dict) and isinstance(row.get("iteration"), int):
            found.append(row)
    return found


def has_tensorboard() -> bool:
    """Returns whether TensorBoard's event files can be written here."""
    from importlib.util import find_spec

    return find_spec("tensorboardX") is not None


def _board(folder: Path, episodes: int) -> Any:
    """Opens TensorBoard's event files; None where the extra is not installed."""
    if not has_tensorboard():
        return None
    from importlib import import_module

    purge = episodes + 1 if episodes else None
    return import_module("tensorboardX").SummaryWriter(str(folder), purge_step=purge)
