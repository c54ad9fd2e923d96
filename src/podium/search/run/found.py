"""Loads the policy that a run found, after it has passed the gates of candidates again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from podium.errors import InputError, MissingError, PolicyError, UnknownName, UsageError
from podium.policies import Policy
from podium.policies.policy import policy_of
from podium.policies.registry import RUN
from podium.policies.source import read_source
from podium.search.candidate.gates import Candidate, read_candidate
from podium.search.candidate.verdict import Verdict
from podium.search.candidate.vocabulary import LONGEST_BYTES
from podium.search.population.member import SEED
from podium.search.run.folder import BEST, RunFolder
from podium.search.run.promoted import PROMOTION, decision_on, validation_of
from podium.settings import Settings, load_settings

if TYPE_CHECKING:
    from podium.store import Store

SEARCH = "search"
"""The kind of run that finds policies."""


def load_found(reference: str, folder: Path | None = None) -> Policy:
    """Loads the best policy of a run in a folder of runs, that of the settings by default.

    A run is named by its id, the beginning of it, or its name in the store of the settings. A file
    that no run can have written is refused. Where the best was promoted, it is the text that was
    validated and promoted.

    It runs in this process, without a sandbox: whoever can write to the folder of runs must not
    be able to have anything but a candidate executed.
    """
    settings = load_settings()
    runs = settings.search.folder if folder is None else folder
    run = reference.removeprefix(RUN)
    is_id = (runs / run / BEST).is_file() and run == Path(run).name
    path = best_of(run if is_id else _id_of(run, settings), runs)
    text, kept = _text(path), RunFolder(path.parent)
    decision = decision_on(kept, text)
    if decision is not None and decision.promoted:
        text, path = decision.policy, path.with_name(PROMOTION)
    _check_gates(text, path)
    policy = policy_of(read_source(text, str(path)), reference)
    return replace(policy, validation=validation_of(kept, decision))


def _check_gates(text: str, path: Path) -> None:
    read = read_candidate(text)
    if isinstance(read, Verdict):
        raise PolicyError(
            f"this is not what the run wrote: it fails at the gate {read.gate}: {read.reason}",
            where=str(path),
            hint="the file was changed; podium search status shows what the run found",
        )


def _id_of(run: str, settings: Settings) -> str:
    """Finds the id of a search in the store; what is in none may still be in the folder."""
    try:
        with _store_of(settings) as store:
            record = None if store is None else store.runs.get(run)
    except (UnknownName, MissingError):  # a server that is away must not hide a folder
        return run
    if record is None:
        return run
    if record.kind != SEARCH:
        raise UsageError(
            f"run {record.id} is a {record.kind}, not a search: it found no policy",
            hint=f"podium runs show {record.id} names the policy that it ran; podium runs list "
            f"--kind {SEARCH} lists searches",
        )  # fmt: skip
    return record.id


@contextmanager
def _store_of(settings: Settings) -> Iterator[Store | None]:
    """Opens the store of the settings, unless asking would make one."""
    from podium.store import open_store
    from podium.store.address import file_of, read_address

    file = file_of(read_address(settings.store.url))
    if file is not None and not (file.is_file() and file.stat().st_size):
        yield None
        return
    with open_store(settings.store.url) as store:
        yield store


def best_of(run: str, folder: Path) -> Path:
    """Finds the best policy of a run by its id or a unique prefix of it."""
    found = [path for path in sorted(folder.glob(f"*/{BEST}")) if path.parent.name.startswith(run)]
    if run and len(found) == 1:
        return found[0]
    problem = "several runs begin with" if found and run else "no policy is stored for a run"
    raise MissingError(
        f'{problem} "{run}"', where=str(folder), hint="podium runs list shows the runs there are"
    )


def run_that_wrote(text: str) -> str | None:
    """Finds a run that wrote what this text computes: its best now, or any other candidate.

    Layout, comments and names do not tell two texts apart. What people gave a search as a seed is
    their own. The folder of runs and the store of the settings are asked, as far as they are there.
    """
    settings, read = load_settings(), read_candidate(text)
    for path in sorted(settings.search.folder.glob(f"*/{BEST}")):
        best = _text(path)
        if best == text or _computes_alike(read, read_candidate(best)):
            return path.parent.name
    if isinstance(read, Verdict):
        return None
    with suppress(MissingError), _store_of(settings) as store:
        return None if store is None else store.candidates.run_that_wrote(read.fingerprint, SEED)
    return None


def _computes_alike(read: Candidate | Verdict, other: Candidate | Verdict) -> bool:
    if isinstance(read, Verdict) or isinstance(other, Verdict):
        return False
    return read.fingerprint == other.fingerprint


def _text(path: Path) -> str:
    """Reads a file up to the largest size of a candidate: it may be larger than memory."""
    try:
        with path.open("rb") as file:
            return file.read(LONGEST_BYTES + 1).decode("utf-8", "backslashreplace")
    except OSError as error:
        raise InputError.at(path, f"cannot be read: {error.strerror}") from error
