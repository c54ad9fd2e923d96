"""Packs policies into the files of a ConfigMap, as the pods of Podium find them."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from podium.policies import Policy

FOLDER = "/etc/podium/policy"
"""Where the ConfigMap is mounted."""


@dataclass(frozen=True, slots=True)
class PackedPolicy:
    """Is a policy by the reference under which the pods find it, with the files that it needs."""

    reference: str
    texts: Mapping[str, str] = field(default_factory=dict)  # by file name
    weights: Mapping[str, bytes] = field(default_factory=dict)

    @property
    def size_bytes(self) -> int:
        """Counts the bytes that it takes in a ConfigMap."""
        return sum(len(text.encode()) for text in self.texts.values()) + sum(
            map(len, self.weights.values())
        )


def packed_text(policy: Policy, text: str) -> PackedPolicy:
    """Packs a Python policy, with a card where its file cannot say its name or validation."""
    stem, text = _stem(policy.name), text.replace("\r\n", "\n").rstrip("\n") + "\n"
    is_known = policy.validation.is_passed is not None
    if stem == policy.name and not is_known:
        return PackedPolicy(f"{FOLDER}/{stem}.py", {f"{stem}.py": text})
    card = {
        "name": policy.name,
        "summary": policy.summary,
        "origin": policy.origin,
        "sha256": hashlib.sha256(text.encode()).hexdigest(),
        **({"decision": policy.validation.as_decision()} if is_known else {}),
    }
    texts = {f"{stem}.py": text, f"{stem}.json": _json(card)}
    return PackedPolicy(f"{FOLDER}/{stem}.json", texts)


def packed_weights(policy: Policy, weights: bytes, card: Mapping[str, Any]) -> PackedPolicy:
    """Packs a trained policy: its weights, and their card with the policy's own name."""
    stem, told = _stem(policy.name), {**card, "name": policy.name}
    file = f"{stem}.npz"
    return PackedPolicy(f"{FOLDER}/{file}", {f"{stem}.json": _json(told)}, {file: weights})


def data_of(policies: tuple[PackedPolicy, ...]) -> str:
    """Writes the data of a ConfigMap that holds all their files, as YAML."""
    texts = {name: text for each in policies for name, text in each.texts.items()}
    weights = {name: content for each in policies for name, content in each.weights.items()}
    lines = ["data:"]
    for name, text in sorted(texts.items()):
        lines += [f"  {name}: |2", *(f"    {line}" if line else "" for line in _lines(text))]
    lines += ["binaryData:"] if weights else []
    lines += [f"  {name}: {base64.b64encode(each).decode()}" for name, each in weights.items()]
    return "\n".join(lines)


def _lines(text: str) -> list[str]:
    return text.removesuffix("\n").split("\n")


def _stem(name: str) -> str:
    """Makes a key of a ConfigMap of a name; one that is no key gets a digest, to stay distinct."""
    if re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,99}", name):
        return name
    short = re.sub(r"[^A-Za-z0-9_]+", "-", name)[:40].strip("-")
    return f"{short}-{hashlib.sha256(name.encode()).hexdigest()[:6]}".strip("-")


def _json(card: Mapping[str, Any]) -> str:
    return json.dumps(card, indent=1) + "\n"
