"""Says how long to wait before a call is made again."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC
from email.utils import parsedate_to_datetime

import numpy as np

LONGEST_WAIT_S = 60.0
FIRST_WAIT_S = 1.0


@dataclass(frozen=True, slots=True)
class Pace:
    """Holds the clocks that calls are timed and spaced by."""

    sleep: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.monotonic  # for durations
    now: Callable[[], float] = time.time  # since 1970, for dates that services give


def wait_s(retry_after: str, failures: int, rng: np.random.Generator, now: float) -> float:
    """Gives the seconds to wait after so many failures, as the service asks or doubling.

    >>> wait_s("2.5", 1, np.random.default_rng(0), 0.0)
    2.5
    """
    asked = _asked_s(retry_after.strip(), now)
    if asked is not None:
        return min(max(asked, 0.0), LONGEST_WAIT_S)
    # Half of it is drawn, so that calls that failed together do not come back together.
    doubled = min(FIRST_WAIT_S * 2.0 ** (failures - 1), LONGEST_WAIT_S)
    return doubled * (0.5 + 0.5 * float(rng.random()))


def _asked_s(text: str, now: float) -> float | None:
    try:
        seconds = float(text)
    except ValueError:
        pass
    else:
        return seconds if math.isfinite(seconds) else None
    try:
        date = parsedate_to_datetime(text)
    except (ValueError, TypeError, IndexError):
        return None
    return (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp() - now
