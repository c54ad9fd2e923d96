"""Replaces the names in objects by hashes, so that a cluster can be shown to others.

One name always gets one hash: what refers to it still does. Label values are hashed as well, but
for those that describe hardware. Numbers at the end of a name stay: they tell runs of one thing
apart. Keys of labels stay, too.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from podium.errors import InputError, UsageError
from podium.kube.objects import is_mark
from podium.traces.kubernetes import keys

SALT_BYTES = 32

_NUMBERED = re.compile(r"(?P<stem>.*?)(?P<number>(-[0-9]+)?)")
_PLAIN = re.compile(r"-?[0-9]*|true|false")
_HARDWARE = ("kubernetes.io/arch", "kubernetes.io/os", "node.kubernetes.io/instance-type")
_VENDORS = (
    "nvidia.com",
    "amd.com",
    "intel.com",
    "alibabacloud.com",
    "aliyun.com",
    "koordinator.sh",
)
_NAMES = frozenset(
    {"claimName", "generateName", "namespace", "nodeName", "nominatedNodeName", "podGroup",
     "podGroupName", "podGroupReplicaKey", "priorityClassName", "resourceClaimName",
     "resourceClaimTemplateName", "storageClassName", "uid", "volumeName"}
)  # fmt: skip
_NAMED_LISTS = frozenset(
    {"containerStatuses", "containers", "initContainerStatuses", "initContainers",
     "ownerReferences", "podGroups", "replicatedJobs", "reservedFor", "resourceClaimStatuses",
     "resourceClaims", "schedulingGates", "volumes"}
)  # fmt: skip
_LABELS = frozenset({"labels", "matchLabels", "nodeSelector"})
_GROUP_NAMES = frozenset(name for names in keys.GANG_KEYS.values() for name in names)
_NAMING_MARKS = _GROUP_NAMES | {keys.STORAGE_CLASS, keys.SELECTED_NODE}
_SHOWN_KINDS = frozenset({"DeviceClass"})
"""Kinds whose names say what a device is."""


def new_salt() -> bytes:
    """Draws a salt."""
    return secrets.token_bytes(SALT_BYTES)


def salt_file(recording: Path) -> Path:
    """Names the file with the salt of a recording."""
    return recording.with_name(f"{recording.name}.salt")


def kept_salt(recording: Path) -> bytes:
    """Gives the salt that lies beside a recording; a new one gets a new salt.

    Raises:
        PodiumError: the recording is there and its salt is not, or cannot be used.
    """
    file = salt_file(recording)
    try:
        if file.exists():
            return _read(file)
        if recording.exists() and recording.stat().st_size:
            raise UsageError(
                "the recording cannot go on with hashed names: their salt is not there",
                where=str(file), hint="put it back, or give another file",
            )  # fmt: skip
        return _keep(new_salt(), file)
    except ValueError as error:
        raise InputError.at(file, "it holds no salt", hint="give another file") from error
    except OSError as error:
        raise InputError.at(file, f"cannot be used: {error.strerror}") from error


def _read(file: Path) -> bytes:
    salt = bytes.fromhex(file.read_text("ascii"))
    if len(salt) != SALT_BYTES:
        raise ValueError("this is not as long as a salt")
    return salt


def _keep(salt: bytes, file: Path) -> bytes:
    """Writes a salt for its owner alone, before any name is hashed with it."""
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as stream:
        stream.write(f"{salt.hex()}\n")
        stream.flush()
        os.fsync(stream.fileno())
    return salt


@dataclass(frozen=True, slots=True)
class Hasher:
    """Hashes names with a salt: without it they cannot be guessed and tried."""

    salt: bytes  # up to 64 bytes

    @property
    def mark(self) -> str:
        """Tells one salt from another, and tells nothing of either."""
        return hashlib.blake2b(key=self.salt, digest_size=8).hexdigest()

    def name(self, text: str) -> str:
        """Gives the hash of a name, a valid name itself."""
        if not text or text.startswith("system-"):
            return text
        found = _NUMBERED.fullmatch(text)
        stem, number = (found["stem"], found["number"]) if found else (text, "")
        digest = hashlib.blake2b(stem.encode(), key=self.salt, digest_size=6).hexdigest()
        return f"x{digest}{number}"

    def object(self, value: Mapping[str, Any]) -> dict[str, Any]:
        """Gives an object without its names."""
        found = self._mapping(value)
        metadata = dict(found.get("metadata") or {})
        if value.get("kind") not in _SHOWN_KINDS and isinstance(metadata.get("name"), str):
            metadata["name"] = self._own_name(value, metadata["name"])
        return {**found, "metadata": metadata}

    def _own_name(self, value: Mapping[str, Any], name: str) -> str:
        """Hashes the name of an object; the claim of an ephemeral volume is named after its pod."""
        owners = (value.get("metadata") or {}).get("ownerReferences") or ()
        pod = next((each.get("name", "") for each in owners if each.get("kind") == "Pod"), "")
        is_claim = value.get("kind") == "PersistentVolumeClaim"
        if is_claim and pod and name.startswith(f"{pod}-"):
            return f"{self.name(pod)}-{self.name(name.removeprefix(f'{pod}-'))}"
        return self.name(name)

    def _mapping(self, value: Mapping[str, Any]) -> dict[str, Any]:
        return {key: self._field(key, part) for key, part in value.items()}

    def _field(self, key: str, value: Any) -> Any:
        if isinstance(value, str):
            return self.name(value) if key in _NAMES or key == "pool" else value
        if isinstance(value, Mapping):
            return self._mapping_field(key, value)
        return self._list(key, value) if isinstance(value, list) else value

    def _mapping_field(self, key: str, value: Mapping[str, Any]) -> dict[str, Any]:
        if key in _LABELS and all(isinstance(part, str) for part in value.values()):
            return {name: self._label(name, text) for name, text in value.items()}
        if key == "annotations":
            return {name: self._annotation(name, text) for name, text in value.items()}
        found = self._mapping(value)
        if key in ("claimRef", "pool", "workloadRef") and isinstance(found.get("name"), str):
            found["name"] = self.name(found["name"])
        return found

    def _list(self, key: str, value: list[Any]) -> list[Any]:
        hashed: Callable[[Any], Any]
        if key == "namespaces":
            hashed = self.name
        elif key == "matchFields":
            hashed = self._requirement_of_names
        elif key in ("matchExpressions", "matchLabelExpressions", "taints", "tolerations"):
            hashed = self._requirement
        elif key in _NAMED_LISTS:
            hashed = self._named
        else:
            hashed = self._part
        return [hashed(part) for part in value]

    def _part(self, value: Any) -> Any:
        return self._mapping(value) if isinstance(value, Mapping) else value

    def _named(self, value: Any) -> Any:
        if not isinstance(value, Mapping):
            return value
        found = self._mapping(value)
        return {**found, "name": self.name(found["name"])} if "name" in found else found

    def _requirement(self, value: Mapping[str, Any]) -> dict[str, Any]:
        """Hashes what a label, a taint or a toleration is compared with."""
        key, found = str(value.get("key", "")), dict(value)
        if isinstance(found.get("value"), str):
            found["value"] = self._label(key, found["value"])
        if isinstance(found.get("values"), list):
            found["values"] = [self._label(key, str(each)) for each in found["values"]]
        return found

    def _requirement_of_names(self, value: Mapping[str, Any]) -> dict[str, Any]:
        return {**value, "values": [self.name(str(each)) for each in value.get("values") or ()]}

    def _label(self, key: str, text: str) -> str:
        domain = key.partition("/")[0]
        is_hardware = key in _HARDWARE or any(
            domain == each or domain.endswith(f".{each}") for each in _VENDORS
        )
        if is_hardware or _PLAIN.fullmatch(text):
            return text
        # A volume that is in several zones lists them so.
        return "__".join(map(self.name, text.split("__")))

    def _annotation(self, key: str, text: Any) -> Any:
        if key in _NAMING_MARKS and isinstance(text, str):
            return self.name(text)
        return text if is_mark(key) else ""
