"""Keeps the last two checkpoints of a training: each is a whole file, or none."""

from __future__ import annotations

import io
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from podium.errors import InputError
from podium.files.bounded import open_regular
from podium.files.draft import drafted
from podium.rl.learner import Arrays

KEPT = 2
MOST_BYTES = 1 << 30
_NAME = re.compile(r"checkpoint-(\d{9})\.npz")
_FACTS = "facts"


@dataclass(frozen=True, slots=True, eq=False)
class Checkpoint:
    """Arrays and facts as they were after an iteration."""

    iteration: int
    arrays: Arrays
    facts: Mapping[str, Any]  # JSON


@dataclass(frozen=True, slots=True)
class Checkpoints:
    """Reads and writes the checkpoints in the folder of a run."""

    folder: Path

    def save(self, checkpoint: Checkpoint) -> Path:
        """Writes a checkpoint, then deletes all but the last two."""
        path = self.folder / f"checkpoint-{checkpoint.iteration:09d}.npz"
        facts = np.frombuffer(json.dumps(checkpoint.facts, allow_nan=False).encode(), np.uint8)
        content = packed({**checkpoint.arrays, _FACTS: facts})
        with drafted(path) as draft, draft.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        for old in self._files()[:-KEPT]:
            old.unlink(missing_ok=True)
        return path

    def newest(self) -> Checkpoint | None:
        """Reads the newest checkpoint that can be read; None where there is none at all.

        Raises:
            InputError: there are checkpoints, but none can be read.
        """
        problem: InputError | None = None
        for path in reversed(self._files()):
            try:
                return _read(path)
            except InputError as error:
                problem = problem or error
        if problem is not None:
            raise problem
        return None

    def _files(self) -> list[Path]:
        return sorted(each for each in self.folder.glob("checkpoint-*.npz")
                      if _NAME.fullmatch(each.name))  # fmt: skip


def packed(arrays: Arrays) -> bytes:
    """Packs arrays as NumPy's .npz; the same arrays give the same bytes."""
    stream = io.BytesIO()
    np.savez(stream, **{name: np.asarray(each) for name, each in sorted(arrays.items())})  # type: ignore[arg-type]
    return stream.getvalue()


def _read(path: Path) -> Checkpoint:
    arrays: dict[str, npt.NDArray[Any]]
    try:
        with os.fdopen(open_regular(path, os.O_RDONLY), "rb") as file:
            content = file.read(MOST_BYTES)
        # Pickled objects would be programs, and others may have written to the folder.
        with np.load(io.BytesIO(content), allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
        facts = json.loads(arrays.pop(_FACTS).tobytes())
    except Exception as error:
        raise InputError.at(
            path, f"not a checkpoint: {error}", hint="begin a new training"
        ) from error
    found = _NAME.fullmatch(path.name)
    return Checkpoint(int(found[1]) if found else 0, arrays, facts)
