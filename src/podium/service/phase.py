"""Says whether the service can work: it replays first, and drains at the end."""

from __future__ import annotations

from dataclasses import dataclass

from podium.service.http.problem import Problem

REPLAYING, READY, DRAINING, FAILED = "replaying", "ready", "draining", "failed"

_REASONS = {
    REPLAYING: "what was learned is still being read from the store",
    DRAINING: "the service is shutting down",
    FAILED: "what was learned could not be read from the store",
}


@dataclass(slots=True)
class Phase:
    """Holds where the service is between its start and its end."""

    name: str = REPLAYING
    is_awake: bool = False  # what was learned is read

    @property
    def is_ready(self) -> bool:
        """Tells whether new work is welcome."""
        return self.name == READY

    def wake(self) -> None:
        """Goes on to work, unless the end came first."""
        self.is_awake = True
        if self.name == REPLAYING:
            self.name = READY

    def check(self) -> None:
        """Refuses work before anything is known; while draining, what has come is still done.

        Raises:
            Problem: the service has nothing to answer with.
        """
        if not self.is_awake:
            raise self.problem()

    def problem(self) -> Problem:
        """Says why the service is not ready."""
        return Problem(
            503, _REASONS[self.name], hint="try it again shortly", headers={"retry-after": "1"}
        )
