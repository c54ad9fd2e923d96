"""Finds policies by reference: a name of the catalogue, or a file."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from podium.errors import InputError, UnknownName, UsageError
from podium.policies.loaders import (
    ENDINGS,
    card_origin,
    load_file,
    load_weights,
    profile_reference,
    read_card,
)
from podium.policies.policy import Origin, Policy, policy_of
from podium.policies.source import Source, read_source
from podium.policies.validation import card_validation

_HERE = Path(__file__).parent
_FOLDERS: dict[str, Path] = {
    "builtin": _HERE / "builtin",
    "discovered": _HERE / "discovered",
}

_TRAINED = _HERE / "trained"

ALIASES = {"binpack": "compact", "spread": "worst-fit"}
"""Names under which other schedulers and papers know policies of the catalogue."""

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
    return [*map(_describe, _files()), *map(_describe_trained, _weights())]


def load(reference: str, *, ignore_unknown_plugins: bool = False) -> Policy:
    """Loads the policy that a reference names; the only door.

    A reference is a name of the catalogue, or a file of one of the kinds in `loaders`, where
    `FILE#NAME` means one profile of a scheduler configuration. What a run found is not:
    `podium.search.run.found.load_found` reads it again with the gates of candidates, since others
    may be able to write to the folder of runs.
    """
    if reference in _files():
        policy = policy_of(_source(reference), reference, _origin(reference))
        return replace(policy, validation=card_validation(_card(reference)))
    if reference in _weights():
        return load_weights(_weights()[reference])
    if reference in ALIASES:
        return replace(load(ALIASES[reference]), name=reference)
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
        return load_file(path, shipped_text, ignore_unknown_plugins=ignore_unknown_plugins)
    if path.is_file():
        raise InputError.at(
            path, f"a policy file ends in {', '.join(ENDINGS)}",
            hint="rename the file if it is one of these",
        )  # fmt: skip
    raise UnknownName.among("policy", reference, [*_files(), *_weights(), *ALIASES])


def _profile(path: Path, profile: str, *, ignore_unknown_plugins: bool) -> Policy:
    from podium.policies.scheduler_config import load_scheduler_config

    return load_scheduler_config(path, profile, ignore_unknown_plugins=ignore_unknown_plugins)


def shipped_text(name: str) -> str | None:
    """Reads the text of a shipped policy, however its name is spelt; None if there is none."""
    spelt = name.strip().casefold().replace("_", "-")
    key = ALIASES.get(spelt, spelt)
    if key in _weights():
        return ""  # no text passes for weights
    return _source(key).text if key in _files() else None


@functools.cache
def _files() -> dict[str, tuple[str, Path]]:
    found: dict[str, tuple[str, Path]] = {}
    for room, folder in _FOLDERS.items():
        for path in sorted(folder.glob("[!_]*.py")):
            found[path.stem.replace("_", "-")] = (room, path)
    return found


@functools.cache
def _weights() -> dict[str, Path]:
    """Finds the policies that were trained: weights with their cards."""
    return {path.stem.replace("_", "-"): path for path in sorted(_TRAINED.glob("*.npz"))}


def _describe_trained(name: str) -> PolicyInfo:
    card, path = read_card(_weights()[name].with_suffix(".json")), _weights()[name]
    shown = f"podium/policies/{path.parent.name}/{path.name}"
    return PolicyInfo(name, card["kind"], "trained", card["may_hold"], card["summary"], shown)


def _origin(name: str) -> Origin:
    """Reads in its card whose a policy is; what has no card was written by people."""
    return card_origin(_card(name)) if _card(name) else "written"


@functools.cache
def _card(name: str) -> Mapping[str, Any]:
    """Reads the card of a policy that has a text; empty where it has none."""
    path = _files()[name][1].with_suffix(".json")
    found: Mapping[str, Any] = read_card(path) if path.exists() else {}
    return found


@functools.cache
def _source(name: str) -> Source:
    _, path = _files()[name]
    return read_source(path.read_text(encoding="utf-8"), f"{path.parent.name}/{path.name}")


def _describe(name: str) -> PolicyInfo:
    source = _source(name)
    kind: Any = "pair" if source.is_pair else "cluster"
    shown = f"podium/policies/{source.path}"
    hold, summary = source.mentions_hold, source.summary
    return PolicyInfo(name, kind, _origin(name), hold, summary, shown)
