"""Says that a gate inside a worker refuses a candidate, and why."""

from __future__ import annotations

from podium.errors import PodiumError


class Rejected(Exception):  # noqa: N818 - reads as the sentence it makes
    """A gate refuses the candidate; one that spoils its process leaves nothing to trust in it."""

    def __init__(self, reason: str, *, is_spoiling: bool = False) -> None:
        super().__init__(reason)
        self.is_spoiling = is_spoiling

    @classmethod
    def by(cls, error: PodiumError) -> Rejected:
        """Refuses for the reason, and with the advice, of an error."""
        return cls(f"{error}; {error.hint}" if error.hint else str(error))
