"""Keeps the last two checkpoints of a training: each is a whole file, or none.

A checkpoint names the plan of its run by a digest, so that no run goes on with what another one
learned. Others may have written to the folder: what cannot be taken up gives way to what was saved
before it.
"""

from __future__ import annotations

import io
import json
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from podium.errors import InputError, MissingError
from podium.files.bounded import open_regular
from podium.files.draft import drafted
from podium.files.excerpt import excerpt
from podium.policies.weights import LARGEST_BYTES, unpacked
from podium.rl.learner import Arrays

KEPT = 2
MOST_BYTES = 4 * LARGEST_BYTES
"""Bytes of a checkpoint, packed or unpacked: weights, two moments of an optimiser, and the best."""

_NAME = re.compile(r"checkpoint-(\d{9})\.npz")
_FACTS, _PLAN = "facts", "plan"


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
    plan_digest: str = ""  # empty: of no plan in particular

    def save(self, checkpoint: Checkpoint) -> Path:
        """Writes a checkpoint, then deletes all but the last two."""
        path = self.folder / f"checkpoint-{checkpoint.iteration:09d}.npz"
        told = {**checkpoint.facts, _PLAN: self.plan_digest}
        facts = np.frombuffer(json.dumps(told, allow_nan=False).encode(), np.uint8)
        content = packed({**checkpoint.arrays, _FACTS: facts})
        if path.is_symlink():
            path.unlink()  # it would be followed
        with drafted(path) as draft, draft.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        # The training cannot resume from later ones; they are not counted.
        for old in [each for each in self._files() if each <= path][:-KEPT]:
            old.unlink(missing_ok=True)
        return path

    def newest(
        self, take_up: Callable[[Checkpoint], None] = lambda _checkpoint: None,
        note: Callable[[str], None] = lambda _text: None,
    ) -> Checkpoint | None:  # fmt: skip
        """Takes up the newest checkpoint that can be; None where there is none at all.

        Raises:
            InputError: there are checkpoints, but none can be read and taken up.
        """
        problems: list[InputError] = []
        for path in reversed(self._files()):
            try:
                found = self._taken_up(path, take_up)
            except InputError as error:
                problems.append(error)
                continue
            for each in problems:
                note(f"{each}; the training goes on from {path.name}")
            return found
        if problems:
            raise problems[0]
        return None

    def _taken_up(self, path: Path, take_up: Callable[[Checkpoint], None]) -> Checkpoint:
        found = _read(path)
        facts = {**found.facts}
        if (plan := facts.pop(_PLAN, None)) != self.plan_digest:
            raise InputError.at(
                path, f"the checkpoint of another run, with the plan {excerpt(plan, 20)}",
                hint="remove it, or begin a new training",
            )  # fmt: skip
        checkpoint = Checkpoint(found.iteration, found.arrays, facts)
        try:
            take_up(checkpoint)
        except MissingError:
            raise  # no fault of the checkpoint
        except Exception as error:  # whatever a file that nothing wrote so leads to
            problem = excerpt(str(error), 200, quote="") or type(error).__name__
            raise _unusable(path, f"a checkpoint that cannot be resumed: {problem}") from error
        return checkpoint

    def _files(self) -> list[Path]:
        return sorted(each for each in self.folder.glob("checkpoint-*.npz")
                      if _NAME.fullmatch(each.name))  # fmt: skip


def packed(arrays: Arrays) -> bytes:
    """Packs arrays as NumPy's .npz; the same arrays give the same bytes."""
    stream = io.BytesIO()
    np.savez(stream, **{name: np.asarray(each) for name, each in sorted(arrays.items())})  # type: ignore[arg-type]
    return stream.getvalue()


def _read(path: Path) -> Checkpoint:
    try:
        with os.fdopen(open_regular(path, os.O_RDONLY), "rb") as file:
            content = file.read(MOST_BYTES + 1)
        arrays = unpacked(path, content, MOST_BYTES)
        facts = dict(json.loads(arrays.pop(_FACTS).tobytes()))
    except InputError as error:
        raise _unusable(path, f"not a checkpoint: {error.message}") from error
    except Exception as error:
        raise _unusable(path, f"not a checkpoint: {error}") from error
    found = _NAME.fullmatch(path.name)
    return Checkpoint(int(found[1]) if found else 0, arrays, facts)


def _unusable(path: Path, problem: str) -> InputError:
    return InputError.at(path, problem, hint="begin a new training")
