"""What a check of a policy found, promise by promise."""

from __future__ import annotations

from dataclasses import dataclass

from podium.errors import meant_by
from podium.policies import Policy
from podium.policies.source import words_of


@dataclass(frozen=True, slots=True)
class Finding:
    """Whether one promise is kept, and the first case in which it is not."""

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
        """Returns whether all promises are kept."""
        return all(finding.is_ok for finding in self.findings)

    @property
    def broken(self) -> tuple[Finding, ...]:
        """Lists the promises that are not kept."""
        return tuple(finding for finding in self.findings if not finding.is_ok)


def described(policy: Policy, error: Exception) -> str:
    """Words what a policy raised, at which line of its file, and what may be meant instead."""
    line = policy.source.line_of(error) if policy.source is not None else 0
    hint = meant_by(error)
    return (f"line {line}: " if line else "") + words_of(error) + (f"; {hint}," if hint else "")
