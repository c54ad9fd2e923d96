"""Loads the policy that a run found, after it has passed the gates of candidates again."""

from __future__ import annotations

from pathlib import Path

from podium.errors import InputError, MissingError, PolicyError
from podium.policies import Policy
from podium.policies.policy import policy_of
from podium.policies.registry import RUN
from podium.policies.source import read_source
from podium.search.candidate.gates import read_candidate
from podium.search.candidate.verdict import Verdict
from podium.search.candidate.vocabulary import LONGEST_BYTES
from podium.search.run.folder import BEST
from podium.settings import load_settings


def load_found(reference: str, folder: Path | None = None) -> Policy:
    """Loads the best policy of a run in a folder of runs, that of the settings by default.

    A file that no run can have written is refused.

    It runs in this process, without a sandbox: whoever can write to the folder of runs must not
    be able to have anything but a candidate executed.
    """
    runs = load_settings().search.folder if folder is None else folder
    path = best_of(reference.removeprefix(RUN), runs)
    text = _text(path)
    read = read_candidate(text)
    if isinstance(read, Verdict):
        raise PolicyError(
            f"this is not what the run wrote: it fails at the gate {read.gate}: {read.reason}",
            where=str(path),
            hint="the file was changed; podium search status shows what the run found",
        )
    return policy_of(read_source(text, str(path)), reference)


def best_of(run: str, folder: Path) -> Path:
    """Finds the best policy of a run by its id or a unique prefix of it."""
    found = [path for path in sorted(folder.glob(f"*/{BEST}")) if path.parent.name.startswith(run)]
    if run and len(found) == 1:
        return found[0]
    problem = "several runs begin with" if found and run else "no policy is stored for a run"
    raise MissingError(
        f'{problem} "{run}"', where=str(folder), hint="podium runs list shows the runs there are"
    )


def _text(path: Path) -> str:
    """Reads a file up to the largest size of a candidate: it may be larger than memory."""
    try:
        with path.open("rb") as file:
            return file.read(LONGEST_BYTES + 1).decode("utf-8", "backslashreplace")
    except OSError as error:
        raise InputError.at(path, f"cannot be read: {error.strerror}") from error
