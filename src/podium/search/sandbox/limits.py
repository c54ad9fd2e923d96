"""How much of the machine one candidate may use."""

from __future__ import annotations

from dataclasses import dataclass

from podium.errors import UsageError

CLOCK_FACTOR = 10.0
"""So much longer a process may take on the clock, since it may have to share its processor."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits on the trial of one candidate; a process that exceeds them is killed."""

    time_s: float = 10.0  # of the processor, for all gates together
    trial_s: float = 2.0  # of which for the tiny trace and the contract
    memory_mib: int = 512  # beyond what the process holds before the candidate comes
    start_s: float = 180.0  # for a process to get ready, the first compilation included
    allows_unconfined: bool = False  # candidates run even where a wall of the sandbox is missing

    @property
    def clock_s(self) -> float:
        """Returns after how long the trial of a candidate is over, however busy the machine."""
        return self.time_s * CLOCK_FACTOR

    def __post_init__(self) -> None:
        for key in ("time_s", "trial_s", "start_s"):
            if not 0 < getattr(self, key) < float("inf"):
                raise UsageError(f"{key} is {getattr(self, key)}", hint="give a positive number")
        if self.memory_mib < 16:
            raise UsageError(
                f"memory_mib is {self.memory_mib}, less than 16", hint="give at least 16 MiB"
            )
