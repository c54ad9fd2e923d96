"""Describes the policy of a saved result, and finds it again without running what a file says."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NoReturn

from podium.errors import PolicyError, UsageError
from podium.policies import ClusterPolicy, PairPolicy, Policy, catalogue, load, taken_as_policy

_TEXTS = ("name", "kind", "origin", "summary")
_HINT = "load the result with the policy: Result.load(path, policy=...)"


def describe_policy(policy: Policy) -> dict[str, Any]:
    """Describes a policy by its name and the digest of its text; the text stays where it is."""
    return {
        **{name: getattr(policy, name) for name in _TEXTS},
        "may_hold": policy.may_hold,
        "notes": list(policy.notes),
        "text_digest": text_digest(policy),
        **({"reads_demand": True} if policy.reads_demand else {}),
    }


def restore_policy(described: Mapping[str, Any], given: Policy | None = None) -> Policy:
    """Gives the policy that decided: the one that is given, or one that ships with Podium.

    Any other becomes a stand-in, which has the name but cannot score: text in a file from
    elsewhere is not executed.

    Raises:
        UsageError: the policy that is given is another one.
    """
    decided = str(described["text_digest"])
    if given is not None:
        _check_same(described, given)
        return given
    name = str(described["name"])
    if name in {each.name for each in catalogue()} and text_digest(load(name)) == decided:
        return load(name)
    return _stand_in(described)


def _check_same(described: Mapping[str, Any], given: Policy) -> None:
    """Compares texts where both are known, and names otherwise."""
    decided, own = str(described["text_digest"]), text_digest(given)
    if decided and own:
        is_same, differs = decided == own, "its text differs"
    else:
        is_same = (given.name, given.kind) == (described["name"], described["kind"])
        differs = "its name differs"
    if not is_same:
        raise UsageError(
            f"{given.name} is not the policy of the result: {differs}",
            where="argument policy", hint=f"give {described['name']!s} as it was then",
        )  # fmt: skip


def _stand_in(described: Mapping[str, Any]) -> Policy:
    name, summary = str(described["name"]), str(described["summary"])
    may_hold = bool(described["may_hold"])
    notes = tuple(str(note) for note in described["notes"])

    def refuse(*_arguments: object) -> NoReturn:
        raise PolicyError("the policy of a saved result cannot score", where=name, hint=_HINT)

    if described["kind"] == "pair":
        form = ("pod", "node", *(("table",) if described.get("reads_demand") else ()))
        return PairPolicy(
            name, refuse, form, summary, may_hold=may_hold, notes=notes,
            not_compiled="a saved result has no text of its policy", compiling_hint=_HINT,
        )  # fmt: skip
    return ClusterPolicy(name, refuse, summary, may_hold=may_hold, notes=notes)


def text_digest(policy: Policy) -> str:
    """Digests the text of a policy; nothing where none is at hand."""
    text = policy.source.text if policy.source is not None else policy.text
    return hashlib.sha256(text.encode()).hexdigest() if text else ""


def policy_given(policy: Policy | str | Path | Callable[..., float]) -> Policy:
    """Takes the policy of a result by name or file, as a function, or as it is.

    Raises:
        UsageError: it is nothing of that.
    """
    if isinstance(policy, str | Path):
        return load(str(policy))
    return taken_as_policy(policy)
