"""Finds policies by reference: a name, a file, or a scheduler configuration."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from podium.errors import InputError, MissingError, UnknownName, UsageError
from podium.files.text_file import read_text
from podium.policies.policy import Origin, Policy, policy_of
from podium.policies.source import Source, read_source
from podium.settings import load_settings

_HERE = Path(__file__).parent
_FOLDERS: dict[Origin, Path] = {
    "builtin": _HERE / "builtin",
    "discovered": _HERE / "discovered",
}


RUN = "run:"
MOST_BYTES = 1 << 20
"""Bytes of a policy file."""

BEST = "best.py"
"""What a run of a search keeps in its folder: the best policy so far."""


@dataclass(frozen=True, slots=True)
class PolicyInfo:
    """Describes a policy of the catalogue without running it."""

    name: str
    kind: Literal["pair", "cluster"]
    origin: Origin
    may_hold: bool
    summary: str
    source: str  # the file it lives in, relative to the package


def catalogue() -> list[PolicyInfo]:
    """Lists the policies that ship with Podium, built-in ones first."""
    return [_describe(name, origin) for name, (origin, _) in _files().items()]


def load(reference: str, *, ignore_unknown_plugins: bool = False) -> Policy:
    """Loads the policy that a reference names; the only door.

    A reference is a name of the catalogue, a Python file, or a KubeSchedulerConfiguration file.
    What a run found is not: `podium.search.run.found.load_found` reads it again with the gates of
    candidates, since others may be able to write to the folder of runs.
    """
    if reference in _files():
        origin, _ = _files()[reference]
        return policy_of(_source(reference), reference, origin)
    if reference.startswith(RUN):
        raise UsageError(
            f"{reference} has to pass the gates of candidates first",
            where="podium.policies.load",
            hint="podium.search.run.found.load_found(reference) sees to that, as commands do",
        )
    path = Path(reference)
    if path.suffix in (".yaml", ".yml", ".json"):
        from podium.policies.scheduler_config import load_scheduler_config

        return load_scheduler_config(path, ignore_unknown_plugins=ignore_unknown_plugins)
    if path.suffix == ".py":
        return policy_of(read_source(_text(path), reference), path.stem)
    raise UnknownName.among("policy", reference, _files())


def best_of(run: str) -> Path:
    """Finds the best policy of a run by its id, or as much of it as no other run has."""
    folder = load_settings().search.folder
    found = [path for path in sorted(folder.glob(f"*/{BEST}")) if path.parent.name.startswith(run)]
    if run and len(found) == 1:
        return found[0]
    told = "several runs begin with" if found and run else "no policy is kept of a run"
    raise MissingError(
        f'{told} "{run}"', where=str(folder), hint="podium runs list shows the runs there are"
    )


@functools.cache
def _files() -> dict[str, tuple[Origin, Path]]:
    found: dict[str, tuple[Origin, Path]] = {}
    for origin, folder in _FOLDERS.items():
        for path in sorted(folder.glob("[!_]*.py")):
            found[path.stem.replace("_", "-")] = (origin, path)
    return found


@functools.cache
def _source(name: str) -> Source:
    _, path = _files()[name]
    return read_source(path.read_text(encoding="utf-8"), f"{path.parent.name}/{path.name}")


def _describe(name: str, origin: Origin) -> PolicyInfo:
    source = _source(name)
    kind: Any = "pair" if source.is_pair else "cluster"
    shown = f"podium/policies/{source.path}"
    return PolicyInfo(name, kind, origin, source.mentions_hold, source.summary, shown)


def _text(path: Path) -> str:
    if not path.exists():
        raise InputError.at(path, "no such file", hint="give the path of a policy file")
    return read_text(path, MOST_BYTES)
