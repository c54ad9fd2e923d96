"""Holds one figure of speed or memory beside what it should be."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Measurement:
    """Holds one figure, what it should be, and what the same machine does without the trick."""

    name: str
    value: float
    unit: str
    target: float
    is_ceiling: bool  # the target is a most, not a least
    reference: float | None
    reference_name: str

    @property
    def ok(self) -> bool:
        """Tells whether the target is met."""
        return self.value <= self.target if self.is_ceiling else self.value >= self.target

    @property
    def ratio(self) -> float | None:
        """Compares with the reference: above 1 is better than it."""
        if not self.reference or not self.value:
            return None
        pair = (self.reference, self.value) if self.is_ceiling else (self.value, self.reference)
        return pair[0] / pair[1]

    def as_object(self) -> dict[str, object]:
        """Gives the figure under its stable names."""
        return {
            "name": self.name,
            "value": self.value,
            "unit": self.unit,
            "target": self.target,
            "ok": self.ok,
            "reference": self.reference,
            "reference_name": self.reference_name,
            "ratio": self.ratio,
        }
