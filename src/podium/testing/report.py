"""Holds what a check of a policy found."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Finding:
    """Says whether one promise is kept, and the first case in which it is not."""

    name: str
    is_ok: bool
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Report:
    """Lists the findings on one policy."""

    policy: str
    findings: tuple[Finding, ...]

    @property
    def is_ok(self) -> bool:
        """Tells whether all promises are kept."""
        return all(finding.is_ok for finding in self.findings)

    @property
    def broken(self) -> tuple[Finding, ...]:
        """Lists the promises that are not kept."""
        return tuple(finding for finding in self.findings if not finding.is_ok)
