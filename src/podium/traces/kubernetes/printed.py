"""Skips what nobody reads in the YAML that kubectl printed, before it is parsed."""

from __future__ import annotations

import re

from podium.files.yaml_tree import Text

_UNREAD = (
    "addresses", "args", "command", "configMap", "downwardAPI", "env", "envFrom", "hostIPs",
    "images", "lastState", "lifecycle", "livenessProbe", "managedFields", "nodeInfo", "podCIDRs",
    "podIPs", "projected", "readinessProbe", "secret", "securityContext", "startupProbe",
    "volumeDevices", "volumeMounts", "volumesAttached", "volumesInUse",
)  # fmt: skip
"""Keys whose values are a good half of every dump, and tell nothing of where a pod may run."""

_BLOCK = re.compile(
    rf"^( *)(- )?((?:{'|'.join(_UNREAD)}):\n)((?:(?(2)\1  |\1)[ -].*\n)+)", re.MULTILINE
)
_HEAD = "apiVersion: v1\nitems:\n- apiVersion: "
_NEXT = "\n- apiVersion: "
_CHUNK_CHARACTERS = 1 << 20


class Printed:
    """Reads a text; in a list as kubectl prints it, unread blocks become empty lines.

    kubectl writes a key a line and what is below it deeper or behind a dash, so that lines tell
    where a block ends. What people write may look otherwise, and is left as it is.
    """

    def __init__(self, stream: Text) -> None:
        self._stream = stream
        self._rest: str | None = None  # of the last chunk, from the object on that it cuts
        self._is_printed = False

    def read(self, size: int = -1) -> str:
        """Reads the next part, however large; empty at the end."""
        del size
        chunk = self._stream.read(_CHUNK_CHARACTERS)
        if self._rest is None:
            self._is_printed = chunk.startswith(_HEAD)
            self._rest = ""
        if not self._is_printed:
            return chunk
        text = self._rest + chunk
        end = text.rfind(_NEXT) + 1 if chunk else len(text)
        if not end and len(text) > _CHUNK_CHARACTERS:
            end = len(text)  # an object as large as this is none: the parser will tell
        self._rest = text[end:]
        return _BLOCK.sub(_emptied, text[:end]) if end or not chunk else self.read()


def _emptied(block: re.Match[str]) -> str:
    """Keeps the key, and the number of lines, which messages name."""
    return f"{block[1]}{block[2] or ''}{block[3]}" + "\n" * block[4].count("\n")
