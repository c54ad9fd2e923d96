"""A figure of speed or memory beside its target, and the machine it was measured on."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass
from pathlib import Path

import numpy as np


@dataclass(frozen=True, slots=True)
class Measurement:
    """One figure, its target, and what the same machine does without the optimisation."""

    name: str
    value: float
    unit: str
    target: float
    is_ceiling: bool  # the target is a most, not a least
    reference: float | None
    reference_name: str

    @property
    def ok(self) -> bool:
        """Returns whether the target is met."""
        return self.value <= self.target if self.is_ceiling else self.value >= self.target

    @property
    def ratio(self) -> float | None:
        """Compares with the reference: above 1 is better than it."""
        if not self.reference or not self.value:
            return None
        pair = (self.reference, self.value) if self.is_ceiling else (self.value, self.reference)
        return pair[0] / pair[1]

    def as_object(self) -> dict[str, object]:
        """Returns the figure under its stable names."""
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


def machine() -> str:
    """Describes the machine in one line."""
    import llvmlite
    import numba

    return (
        f"{_processor()}, {os.cpu_count()} cores; Python {platform.python_version()}, "
        f"numba {numba.__version__}, llvmlite {llvmlite.__version__}, numpy {np.__version__}"
    )


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.is_file() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()
