"""Loads policies from files, by what a file is and not by its ending alone.

my_policy.py                   source: the policy itself
scheduler.yaml, scheduler.json a KubeSchedulerConfiguration, by its apiVersion and kind
fed_gpu.json                   the card of a promoted policy; the policy is fed_gpu.py beside it
net.npz, net.json              weights of a trained network, and the card that describes them
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from podium.errors import InputError, PolicyError
from podium.files.excerpt import excerpt
from podium.files.json_text import JsonError, parse_value
from podium.files.text_file import read_bytes, read_text
from podium.policies.policy import Origin, Policy, policy_of
from podium.policies.source import read_source
from podium.policies.validation import UNKNOWN, Validation, card_validation, training_validation
from podium.policies.weights import LARGEST_BYTES, NETWORK, load_network

MOST_BYTES = 1 << 20
"""Most bytes of a policy file."""

ENDINGS = (".py", ".yaml", ".yml", ".json", ".npz")
"""Suffixes of files that can be policies."""

Shipped = Callable[[str], str | None]
"""Reads the text of the policy of that name that ships with Podium, if there is one."""

LONGEST_NAME = 100
"""Most characters of the name that a card gives its policy."""

_KINDS = (
    "a policy is a Python file, a KubeSchedulerConfiguration, the card of a promoted policy, or "
    "weights (.npz) with their card"
)


PROFILED = (".yaml", ".yml", ".json")
"""Suffixes of files that may have several profiles."""


def profile_reference(reference: str) -> tuple[Path, str] | None:
    """Parts a file from the profile that is named behind `#`; None where there is none.

    >>> profile_reference("scheduler.yaml#gpu-binpack")
    (PosixPath('scheduler.yaml'), 'gpu-binpack')
    """
    file, mark, profile = reference.rpartition("#")
    is_one = bool(mark) and Path(file).suffix in PROFILED and not Path(reference).exists()
    return (Path(file), profile) if is_one else None


def load_file(path: Path, shipped: Shipped, *, ignore_unknown_plugins: bool = False) -> Policy:
    """Loads the policy that a file is or describes; the error says what else the file is."""
    if not path.exists():
        raise InputError.at(path, "no such file", hint="give the path of a policy file")
    if path.suffix == ".py":
        text = read_text(path, MOST_BYTES)
        policy = policy_of(read_source(text, str(path)), path.stem)
        return replace(policy, validation=_validation_beside(path, text))
    if path.suffix == ".npz":
        return _load_weights(path, shipped)
    return _load_document(path, shipped, ignore_unknown_plugins=ignore_unknown_plugins)


def _load_document(path: Path, shipped: Shipped, *, ignore_unknown_plugins: bool) -> Policy:
    from podium.policies.scheduler_config import load_scheduler_config
    from podium.policies.scheduler_config.documents import LARGEST_BYTES as LARGEST

    document: Any = _parsed(path, LARGEST) if path.suffix == ".json" else None
    keys = set(document) if isinstance(document, dict) else set()
    if NETWORK in keys:
        return _load_weights(path.with_suffix(".npz"), shipped)
    if path.suffix != ".json" or {"apiVersion", "kind"} & keys:
        return load_scheduler_config(path, ignore_unknown_plugins=ignore_unknown_plugins)
    if {"name", "summary"} <= keys:
        return _load_promoted(path, document, shipped)
    found = f"an object with the keys {', '.join(sorted(keys)[:6])}" if keys else excerpt(document)
    raise InputError.at(path, f"this is not a policy but {excerpt(found, quote='')}", hint=_KINDS)


def _load_promoted(path: Path, card: Mapping[str, Any], shipped: Shipped) -> Policy:
    source = path.with_suffix(".py")
    if not source.exists():
        raise InputError.at(
            path, f"the card is here, but not its policy {source.name}",
            hint="keep the two files of a promoted policy in one folder, under their names",
        )  # fmt: skip
    text, name = read_text(source, MOST_BYTES), _name(path, card)
    _check_digest(path, source, card, text.encode())
    _check_shipped(path, name, shipped(name), text)
    policy = policy_of(read_source(text, str(source)), name)
    return replace(policy, origin=card_origin(card), validation=card_validation(card))


def _validation_beside(path: Path, text: str) -> Validation:
    """Reads the card beside a text, where there is one that describes this very text."""
    with suppress(InputError):
        card = read_card(path.with_suffix(".json"))
        is_its = isinstance(card, dict) and card.get("sha256") == _digest(text.encode())
        return card_validation(card) if is_its else UNKNOWN
    return UNKNOWN


def read_card(path: Path) -> Any:
    """Reads the card of a policy."""
    return _parsed(path, MOST_BYTES)


def card_origin(card: Mapping[str, Any]) -> Origin:
    """Reads whose a policy is; a card that was written without a control does not say."""
    origins: tuple[Origin, ...] = ("written", "tuned", "found", "trained")
    return next((each for each in origins if card.get("origin") == each), "file")


def _load_weights(path: Path, shipped: Shipped) -> Policy:
    name = _name(path.with_suffix(".json"), _weights_card(path))
    _check_shipped(path.with_suffix(".json"), name, shipped(name), None)
    return load_weights(path)


def load_weights(path: Path) -> Policy:
    """Loads weights and their card, whatever name the card gives them."""
    card, card_path = _weights_card(path), path.with_suffix(".json")
    content, name = read_bytes(path, LARGEST_BYTES), _name(card_path, card)
    _check_digest(card_path, path, card, content)
    policy = load_network(path, name, card, content)
    return replace(policy, validation=training_validation(card))


def _weights_card(path: Path) -> Mapping[str, Any]:
    card_path = path.with_suffix(".json")
    for file, other in ((path, "the card"), (card_path, "the weights")):
        if not file.exists():
            raise InputError.at(
                file, f"no such file beside {other}",
                hint="keep the weights (.npz) and their card (.json) in one folder",
            )  # fmt: skip
    card = _parsed(card_path, MOST_BYTES)
    if not isinstance(card, dict) or NETWORK not in card:
        raise InputError.at(card_path, f'the card of weights names no "{NETWORK}"', hint=_KINDS)
    return card


def _check_digest(card_path: Path, path: Path, card: Mapping[str, Any], content: bytes) -> None:
    """Refuses a file that differs by a single byte from what was validated."""
    wanted = card.get("sha256")
    if not isinstance(wanted, str):
        raise InputError.at(
            card_path, f'the card has no "sha256", the digest of {path.name}', column="sha256",
            hint=f"load {path.name} itself if you trust it" if path.suffix == ".py"
            else "give the card that was written with the weights",
        )  # fmt: skip
    if wanted != _digest(content):
        raise PolicyError(
            "the file was changed after it was validated: its digest does not match its card",
            where=str(path),
            hint=f"restore it, or load {path.name} itself if the change is intended"
            if path.suffix == ".py"
            else "restore it, or train again",
        )


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _check_shipped(path: Path, name: str, shipped: str | None, text: str | None) -> None:
    """Refuses a card that passes something else off as a policy that ships with Podium."""
    if shipped is not None and shipped != text:
        raise InputError.at(
            path, f"{name} is a policy that ships with Podium, but this is not its text",
            column="name", hint="give the card a name of its own",
        )  # fmt: skip


def _name(path: Path, card: Mapping[str, Any]) -> str:
    name = card.get("name", path.stem)
    if not isinstance(name, str) or not name.strip():
        raise InputError.at(path, f"{excerpt(name)} is not a name", column="name")
    if len(name) > LONGEST_NAME or not name.isprintable():
        raise InputError.at(
            path, f"{excerpt(name)} is not a name", column="name",
            hint=f"a name is up to {LONGEST_NAME} printable characters",
        )  # fmt: skip
    return name


def _parsed(path: Path, most_bytes: int) -> Any:
    try:
        return parse_value(read_text(path, most_bytes))
    except JsonError as error:
        raise InputError.at(path, f"not JSON: {error}", line=error.line) from error
