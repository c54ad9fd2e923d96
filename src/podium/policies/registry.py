"""Finds policies by reference: a name of the catalogue, or a file."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from podium.errors import InputError, UnknownName, UsageError
from podium.policies.loaders import ENDINGS, load_file, profile_reference
from podium.policies.policy import Origin, Policy, policy_of
from podium.policies.source import Source, read_source

_HERE = Path(__file__).parent
_FOLDERS: dict[Origin, Path] = {
    "builtin": _HERE / "builtin",
    "discovered": _HERE / "discovered",
}

RUN = "run:"
"""How a reference to what a run of a search found begins."""


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

    A reference is a name of the catalogue, or a file of one of the kinds in `loaders`, where
    `FILE#NAME` means one profile of a scheduler configuration. What a run found is not:
    `podium.search.run.found.load_found` reads it again with the gates of candidates, since others
    may be able to write to the folder of runs.
    """
    if reference in _files():
        origin, _ = _files()[reference]
        return policy_of(_source(reference), reference, origin)
    if reference.startswith(RUN):
        raise UsageError(
            f"{reference} must pass the gates of candidates first",
            where="podium.policies.load",
            hint="podium.load_policy(reference) sees to that, as commands do",
        )
    profiled = profile_reference(reference)
    if profiled is not None:
        return _profile(*profiled, ignore_unknown_plugins=ignore_unknown_plugins)
    path = Path(reference)
    if path.suffix in ENDINGS:
        return load_file(path, _shipped_text, ignore_unknown_plugins=ignore_unknown_plugins)
    if path.is_file():
        raise InputError.at(
            path, f"a policy file ends in {', '.join(ENDINGS)}",
            hint="rename the file if it is one of these",
        )  # fmt: skip
    raise UnknownName.among("policy", reference, _files())


def _profile(path: Path, profile: str, *, ignore_unknown_plugins: bool) -> Policy:
    from podium.policies.scheduler_config import load_scheduler_config

    return load_scheduler_config(path, profile, ignore_unknown_plugins=ignore_unknown_plugins)


def _shipped_text(name: str) -> str | None:
    """Reads the text of a shipped policy, however its name is spelt; None if there is none."""
    key = name.strip().casefold().replace("_", "-")
    return _source(key).text if key in _files() else None


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
