"""Decides what a bad row does: it stops the reading, or it is left out, counted and listed."""

from __future__ import annotations

from dataclasses import dataclass, field

from podium.errors import InputError

LEFT_OUT = "left out: "
"""How a note about a bad row begins."""

LISTED = 20
"""Bad rows that are listed one by one; the rest are counted."""


@dataclass(slots=True)
class Rejects:
    """Collects bad rows for as long as they may be skipped."""

    is_skipping: bool = False
    count: int = 0
    listed: list[str] = field(default_factory=list)

    def add(self, error: InputError) -> None:
        """Counts a bad row, or raises it when rows may not be skipped."""
        if not self.is_skipping:
            if not error.hint:
                error.hint = "correct it, or leave such rows out with --skip-bad"
            raise error
        self.leave_out(error)

    def leave_out(self, error: InputError) -> None:
        """Counts what is left out even where bad rows are not: one odd object of a cluster."""
        self.count += 1
        if self.count <= LISTED:
            self.listed.append(f"{LEFT_OUT}{error}")

    @property
    def first(self) -> str:
        """Says where the first bad row was and what was wrong with it."""
        return self.listed[0].removeprefix(LEFT_OUT)

    def notes(self) -> list[str]:
        """Lists what was left out."""
        more = self.count - len(self.listed)
        return self.listed + ([f"{LEFT_OUT}{more} more"] if more else [])
