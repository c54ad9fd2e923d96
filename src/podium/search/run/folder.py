"""Names the files of a search: its plan, its best policy and the state it goes on from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from podium.files.excerpt import excerpt
from podium.store.run_folder import RunFolder

BEST = "best.py"
"""The best policy so far."""

PLAN, STATE, CASSETTE = "plan.json", "state.json", "cassette.jsonl"
RANKING = "ranking.json"
"""How well the training set ranks."""

MOST_BATCHES = 100_000

__all__ = ["BEST", "PLAN", "RANKING", "STATE", "RunFolder", "SearchFolder"]


class SearchFolder(RunFolder):
    """Reads and writes the files of one search."""

    @property
    def cassette(self) -> Path:
        """Names the file of recorded traffic with language models."""
        return self.path / CASSETTE

    def state(self) -> dict[str, Any]:
        """Reads how far the search was when its last batch ended; nothing for a new one."""
        found = self.read(STATE) if self.has(STATE) else {}
        batches = found.get("batches", 0)
        if type(batches) is not int or not 0 <= batches <= MOST_BATCHES:
            raise self.corrupt(STATE, f"batches is {excerpt(batches)}")
        return found
