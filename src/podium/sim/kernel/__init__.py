"""The compiled core. Importing it imports Numba; the engine does so when it first runs."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import numba

from podium.policies.jit import keep_on_disk, stamp_of
from podium.sim.kernel.loop import play


@functools.cache
def core() -> Any:
    """Gives the compiled core, from disk where it was compiled before."""
    compiled = numba.njit(nogil=True)(play)
    keep_on_disk(compiled, play, kernel_stamp())
    return compiled


@functools.cache
def kernel_stamp() -> str:
    """Digests the sources that the machine code is made of."""
    here = Path(__file__).parent
    package = here.parent.parent
    others = (package / "policies" / "abi.py", package / "model" / "records.py")
    return stamp_of(path.read_text() for path in (*sorted(here.glob("*.py")), *others))
