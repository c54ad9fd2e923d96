"""Lets what was never tried be tried some day, for a small share of a job type's time.

A job type that goes against the trend never tries where it would run fastest, because everything
known about others speaks against it. So a candidate that was never tried is tried once the time
that it is expected to cost fits into a share of the time that its job type has run so far.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

AGAIN = 64
"""Decisions of a job type after which a candidate that fails is tried again."""


@dataclass(slots=True)
class Account:
    """What a job type has run, and what it has paid for trying."""

    decisions: int = 0
    expected_s: float = 0.0
    paid_s: float = 0.0


class Floor:
    """The accounts of job types."""

    def __init__(self, share: float) -> None:
        self._share = share
        self._accounts: dict[str, Account] = {}

    def affords(self, job_type: str, price_s: float) -> bool:
        """Tests whether a job type may pay for a try."""
        known = self._accounts.get(job_type)
        return known is not None and known.paid_s + price_s <= self._share * known.expected_s

    def is_again(self, job_type: str) -> bool:
        """Tests whether this is one of the rare decisions that try again what fails."""
        known = self._accounts.get(job_type)
        return known is not None and known.decisions % AGAIN == AGAIN - 1

    def count(self, job_type: str, expected_s: float, price_s: float = 0.0) -> None:
        """Counts a decision."""
        known = self._accounts.setdefault(job_type, Account())
        known.decisions += 1
        known.expected_s += expected_s
        known.paid_s += price_s

    def forget(self, job_types: frozenset[str]) -> None:
        """Closes the accounts of job types."""
        for name in job_types.intersection(self._accounts):
            del self._accounts[name]

    def as_object(self) -> dict[str, list[float]]:
        """Returns the accounts as JSON types."""
        return {
            name: [each.decisions, each.expected_s, each.paid_s]
            for name, each in self._accounts.items()
        }

    def restore(self, data: Mapping[str, Any]) -> None:
        """Reads accounts back."""
        self._accounts = {
            name: Account(int(decisions), float(expected_s), float(paid_s))
            for name, (decisions, expected_s, paid_s) in data.items()
        }
