"""What a check of `podium doctor` found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Status = Literal["ok", "note", "warning", "broken"]


@dataclass(frozen=True, slots=True)
class Finding:
    """The state of one thing, and what to do about it."""

    check: str
    status: Status
    detail: str
    hint: str = ""
