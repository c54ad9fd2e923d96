"""Decides whether a podium.toml speaks for its user: by who can write it, and by `podium trust`.

A folder is not trusted because one stands in it. What its file sets beyond data counts once the
user has said so, for this file at this place with this content; a changed file is asked about anew.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from podium.files.bounded import open_regular
from podium.files.keeper import ALL, OTHERS, stranger_at, stranger_in
from podium.settings.toml import Document

MOST_BYTES = 1 << 16


@dataclass(frozen=True, slots=True)
class Doubt:
    """Why a file does not speak for its user, and what the user can do about it."""

    reason: str
    advice: str


UNTRUSTED = Doubt("you have not said that you trust it", "podium trust, if you do")


@dataclass(frozen=True, slots=True)
class Trusted:
    """The files that this user trusts, kept in a folder of the user."""

    folder: Path

    @classmethod
    def of(cls, environ: Mapping[str, str]) -> Trusted:
        """Names the folder of an environment's user."""
        home = Path(environ.get("XDG_STATE_HOME") or "~/.local/state").expanduser()
        return cls(home / "podium" / "trusted")

    def doubt_of(self, document: Document) -> Doubt | None:
        """Doubts a file of a folder unless the user trusts it as it is now."""
        return doubt_own(document) or (None if self.has(document) else UNTRUSTED)

    def has(self, document: Document) -> bool:
        """Returns whether the user trusts a file with this content."""
        return self._read(self._entry(document.path))[:1] == [_digest(document)]

    def add(self, document: Document) -> None:
        """Remembers that the user trusts a file as it is now."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        entry = self._entry(document.path)
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
        with os.fdopen(os.open(entry, flags, 0o600), "wb") as file:
            file.write(f"{_digest(document)}\n{_place(document.path)}".encode("utf-8", "replace"))

    def revoke(self, path: Path) -> bool:
        """Forgets that the user trusts a file; returns whether there was something to forget."""
        entry = self._entry(path)
        was_there = entry.exists()
        entry.unlink(missing_ok=True)
        return was_there

    def __iter__(self) -> Iterator[str]:
        """Lists the places of the files, sorted."""
        found = [self._read(entry) for entry in self.folder.glob("*")]
        return iter(sorted(words[1] for words in found if len(words) > 1))

    def _entry(self, path: Path) -> Path:
        return self.folder / hashlib.sha256(os.fsencode(_place(path))).hexdigest()

    def _read(self, entry: Path) -> list[str]:
        with suppress(OSError, ValueError), os.fdopen(open_regular(entry, os.O_RDONLY)) as file:
            if not stranger_in(os.fstat(file.fileno()), OTHERS):
                return file.read(MOST_BYTES).split("\n", 1)
        return []


def doubt_own(document: Document) -> Doubt | None:
    """Doubts a file that others can write, or could put there."""
    real = document.path.resolve()
    for place in dict.fromkeys((real, real.parent, document.folder.resolve())):
        found = stranger_at(place, ALL)
        if found and stat.S_ISDIR(place.stat().st_mode):
            return Doubt(f"its folder {place} {found}", "move it to a folder of your own")
        if found:
            return Doubt(f"it {found}", "make it yours with chown and chmod")
    return None


def _place(path: Path) -> Path:
    """Names a file by its folder: the values of a link are relative to where the link stands."""
    return path.parent.resolve() / path.name


def _digest(document: Document) -> str:
    text = f"{_place(document.path)}\0{document.text}"
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()
