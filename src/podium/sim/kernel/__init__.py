"""The compiled core. Asking for it imports Numba; asking whether it is on disk does not."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import numpy as np

from podium.model.records import POD
from podium.policies.jit import COMPILING, keep_on_disk, kept_folder, stamp_of


def core() -> Any:
    """Gives the compiled core, from disk where it was compiled before."""
    with COMPILING:
        return _core()


@functools.cache
def _core() -> Any:
    import numba

    from podium.sim.kernel.layout import RUN
    from podium.sim.kernel.loop import play

    compiled = numba.njit(nogil=True)(play)
    keep_on_disk(compiled, play, kernel_stamp())
    compiled.compile((numba.typeof(np.zeros(1, RUN)),))
    return compiled


def stepper() -> Any:
    """Gives the compiled step of many runs, from disk where it was compiled before."""
    with COMPILING:
        return _stepper()


@functools.cache
def _stepper() -> Any:
    import numba

    from podium.sim.kernel.layout import RUN
    from podium.sim.kernel.stepping import step

    compiled = numba.njit(nogil=True)(step)
    # A stamp of its own: the folder of the core's tells whether the core was compiled.
    keep_on_disk(compiled, step, stamp_of([kernel_stamp(), "step"]))
    flags = np.zeros(1, np.bool_)
    numbers = np.zeros(1, np.int64)
    batch = (np.zeros(1, RUN), numbers, numbers, np.zeros(1, POD), flags, flags)
    compiled.compile(tuple(numba.typeof(each) for each in batch))
    return compiled


def prober() -> Any:
    """Gives the compiled questions about a state, from disk where they were compiled before."""
    with COMPILING:
        return _prober()


@functools.cache
def _prober() -> Any:
    import numba

    from podium.sim.kernel.layout import RUN
    from podium.sim.kernel.probe import probe

    compiled = numba.njit(nogil=True)(probe)
    keep_on_disk(compiled, probe, stamp_of([kernel_stamp(), "probe"]))
    numbers = numba.typeof(np.zeros(1, np.int64))
    compiled.compile((numba.typeof(np.zeros(1, RUN)), numbers, numbers))
    return compiled


def preempter() -> Any:
    """Gives the compiled search for victims, from disk where it was compiled before."""
    with COMPILING:
        return _preempter()


@functools.cache
def _preempter() -> Any:
    import numba

    from podium.sim.kernel.layout import RUN
    from podium.sim.kernel.preemption import SPACE, preempt

    compiled = numba.njit(nogil=True)(preempt)
    keep_on_disk(compiled, preempt, stamp_of([kernel_stamp(), "preempt"]))
    compiled.compile((numba.typeof(np.zeros(1, RUN)), numba.typeof(np.zeros(1, SPACE))))
    return compiled


def is_core_on_disk() -> bool:
    """Tells whether the core was compiled before, so that starting it takes no time."""
    folder = kept_folder(kernel_stamp())
    return folder is not None and folder.is_dir()


@functools.cache
def kernel_stamp() -> str:
    """Digests the sources that the machine code is made of."""
    here = Path(__file__).parent
    package = here.parent.parent
    others = (package / "policies" / "abi.py", package / "model" / "records.py")
    return stamp_of(path.read_text() for path in (*sorted(here.glob("*.py")), *others))
