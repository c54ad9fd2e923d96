"""Loads the policy that a run found, once it has passed again what candidates pass."""

from __future__ import annotations

from pathlib import Path

from podium.errors import InputError, PolicyError
from podium.policies import Policy
from podium.policies.policy import policy_of
from podium.policies.registry import RUN, best_of
from podium.policies.source import read_source
from podium.search.candidate.gates import read_candidate
from podium.search.candidate.verdict import Verdict
from podium.search.candidate.vocabulary import LONGEST_BYTES


def load_found(reference: str) -> Policy:
    """Loads the best policy of a run; refuses a file that no run can have written.

    It runs in this process, without a sandbox: whoever can write to the folder of runs must not
    be able to have more than a candidate executed.
    """
    path = best_of(reference.removeprefix(RUN))
    text = _text(path)
    read = read_candidate(text)
    if isinstance(read, Verdict):
        raise PolicyError(
            f"this is not what the run wrote: it fails at the gate {read.gate}: {read.reason}",
            where=str(path),
            hint="somebody changed the file; podium search status shows what the run found",
        )
    return policy_of(read_source(text, str(path)), reference)


def _text(path: Path) -> str:
    """Reads a file as far as a candidate can go: it may be longer than memory."""
    try:
        with path.open("rb") as file:
            return file.read(LONGEST_BYTES + 1).decode("utf-8", "backslashreplace")
    except OSError as error:
        raise InputError.at(path, f"cannot be read: {error.strerror}") from error
