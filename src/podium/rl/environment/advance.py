"""Steps environments and writes what they show: one compiled call, without Python's lock.

Whatever concerns one environment beside its run is in a record of numbers and addresses, as the
run is itself (see `podium.sim.kernel.layout`). Importing this imports Numba.
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import numba
import numpy as np

from podium.policies import fragmentation
from podium.policies.jit import COMPILING, keep_on_disk, stamp_of
from podium.policies.networks import features
from podium.rl.environment import observation, tally
from podium.rl.environment.observation import show, show_nothing
from podium.rl.environment.tally import TALLY, allocation, begin, catch_up
from podium.sim.kernel import Variant, kernel_stamp
from podium.sim.kernel.compiler import CoreCompiler
from podium.sim.kernel.layout import RECORDS, inner
from podium.sim.kernel.offers import NOT_BEGUN
from podium.sim.kernel.stepping import HOLD_ACTION, await_decision, decide, is_allowed
from podium.sim.kernel.waiting import NOBODY


def advance(runs: Any, tallies: Any, which: Any, actions: Any, slots: Any) -> int:
    """Decides the offered pod of some environments and goes on; begins those that have not begun.

    Gives how many of them are over, or -1 - i where the action of environment i is refused: then
    nothing has moved. An action is a node, or the number behind the last to hold.
    """
    for k in range(len(which)):
        i = which[k]
        action = _meant(runs[i], tallies[i], actions[i])
        if runs[i].offered >= 0 and not is_allowed(runs[i], action, slots[i]):
            return int(-1 - i)
    count = 0
    for k in range(len(which)):
        i = which[k]
        _advance_one(runs[i], tallies[i], actions[i], slots[i])
        count += tallies[i].is_done
    return int(count)


@inner
def _advance_one(run, account, action, slot):
    is_new = run.offered == NOT_BEGUN
    if run.offered >= 0:
        decide(run, _meant(run, account, action), slot)
        account.steps += 1
    if run.offered != NOBODY:
        await_decision(run)
    if is_new:
        begin(run, account)
    else:
        catch_up(run, account)
    is_over = run.offered < 0
    account.is_truncated = not is_over and account.steps >= account.most_steps
    account.is_done = is_over or account.is_truncated
    if account.is_done:
        account.allocation = allocation(run, account)
    if is_over:
        show_nothing(run, account)
    else:
        show(run, account)


@inner
def _meant(run, account, action):
    if action == account.hold_action:
        return np.int64(HOLD_ACTION)
    return action if action >= 0 else run.num_nodes


def advancer(variant: Variant) -> Any:
    """Gives the compiled function, from disk where it was compiled before."""
    with COMPILING:
        return _advancer(variant)


@functools.cache
def _advancer(variant: Variant) -> Any:
    sources = [Path(__file__)]
    sources += [Path(str(each.__file__)) for each in (features, fragmentation, observation, tally)]
    stamp = stamp_of([kernel_stamp(), variant, *(each.read_text("utf-8") for each in sources)])
    made = numba.njit(nogil=True, pipeline_class=CoreCompiler)(advance)
    keep_on_disk(made, advance, stamp)
    numbers = np.zeros(1, np.int64)
    given = (np.zeros(1, RECORDS[variant]), np.zeros(1, TALLY), numbers, numbers, numbers)
    made.compile(tuple(numba.typeof(each) for each in given))
    return made
