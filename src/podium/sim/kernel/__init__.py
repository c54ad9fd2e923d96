"""The compiled core. Asking for it imports Numba; asking whether it is on disk does not."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any, Literal

import numpy as np

from podium.model.records import POD
from podium.policies.jit import COMPILING, keep_on_disk, kept_folder, stamp_of

Variant = Literal["plain", "full"]
"""What the core knows: CPU, memory and GPUs alone, which compiles in half the time, or all."""


def core(variant: Variant = "plain") -> Any:
    """Gives the compiled core, from disk where it was compiled before."""
    with COMPILING:
        return _core(variant)


@functools.cache
def _core(variant: Variant) -> Any:
    from podium.sim.kernel.layout import RECORDS
    from podium.sim.kernel.loop import play

    return _compiled(play, _core_stamp(variant), np.zeros(1, RECORDS[variant]))


def stepper(variant: Variant = "plain") -> Any:
    """Gives the compiled step of many runs, from disk where it was compiled before."""
    with COMPILING:
        return _stepper(variant)


@functools.cache
def _stepper(variant: Variant) -> Any:
    from podium.sim.kernel.layout import RECORDS
    from podium.sim.kernel.stepping import step

    flags, numbers = np.zeros(1, np.bool_), np.zeros(1, np.int64)
    batch = (np.zeros(1, RECORDS[variant]), numbers, numbers, np.zeros(1, POD), flags, flags)
    return _compiled(step, stamp_of([kernel_stamp(), "step", variant]), *batch)


def prober(variant: Variant = "plain") -> Any:
    """Gives the compiled questions about a state, from disk where they were compiled before."""
    with COMPILING:
        return _prober(variant)


@functools.cache
def _prober(variant: Variant) -> Any:
    from podium.sim.kernel.layout import RECORDS
    from podium.sim.kernel.probe import probe

    numbers = np.zeros(1, np.int64)
    stamp = stamp_of([kernel_stamp(), "probe", variant])
    return _compiled(probe, stamp, np.zeros(1, RECORDS[variant]), numbers, numbers)


def _compiled(function: Any, stamp: str, *arguments: Any) -> Any:
    import numba

    from podium.sim.kernel.compiler import CoreCompiler

    compiled = numba.njit(nogil=True, pipeline_class=CoreCompiler)(function)
    keep_on_disk(compiled, function, stamp)
    compiled.compile(tuple(numba.typeof(each) for each in arguments))
    return compiled


def preempter() -> Any:
    """Gives the compiled search for victims, from disk where it was compiled before."""
    with COMPILING:
        return _preempter()


@functools.cache
def _preempter() -> Any:
    from podium.sim.kernel.layout import RUN
    from podium.sim.kernel.preemption import SPACE, preempt

    stamp = stamp_of([kernel_stamp(), "preempt"])
    return _compiled(preempt, stamp, np.zeros(1, RUN), np.zeros(1, SPACE))


def is_core_on_disk(variant: Variant = "plain") -> bool:
    """Tells whether the core was compiled before, so that starting it takes no time."""
    folder = kept_folder(_core_stamp(variant))
    return folder is not None and any(folder.glob("*.nbi"))


def _core_stamp(variant: Variant) -> str:
    # Nothing else has this stamp: its folder tells whether the core was compiled.
    return stamp_of([kernel_stamp(), "play", variant])


@functools.cache
def kernel_stamp() -> str:
    """Digests the sources that the machine code is made of."""
    here = Path(__file__).parent
    package = here.parent.parent
    others = (package / "policies" / "abi.py", package / "model" / "records.py")
    return stamp_of(path.read_text() for path in (*sorted(here.glob("*.py")), *others))
