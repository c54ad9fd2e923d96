"""Runs simulations while a progress bar watches."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING

from podium.cli.failure import LONGEST_TEXT
from podium.cli.terminal import on_one_line
from podium.errors import PolicyError

if TYPE_CHECKING:
    from podium.cli.case import Case
    from podium.cli.render import Screen
    from podium.policies import Policy
    from podium.sim import Result

POLL_S = 0.1


def announce_compilation(screen: Screen) -> None:
    """Says so before the first start, which takes longer than any other."""
    from podium.sim.kernel import is_core_on_disk

    if not is_core_on_disk():
        screen.note("compiling the simulator's core, once; this takes about ten seconds ...")


def run_watched(screen: Screen, case: Case, policy: Policy) -> Result:
    """Runs one simulation; the bar follows the arrivals that the core counts."""
    from podium.sim.engine import make_plan
    from podium.sim.execution import Execution

    announce_compilation(screen)

    plan = make_plan(case.cluster, case.workload, policy, case.protocol, case.setup)
    execution = Execution(plan)
    finished = threading.Event()

    def watch() -> None:
        with screen.progress(policy.name, len(plan.arrivals)) as advance:
            shown = 0
            while not finished.wait(POLL_S):
                arrived = execution.arrived
                advance(arrived - shown)
                shown = arrived

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        with advising(policy):
            return execution.run()
    finally:
        finished.set()
        watcher.join()


@contextmanager
def advising(policy: Policy) -> Iterator[None]:
    """Says how to look into a policy, in errors of policies that give no advice."""
    try:
        yield
    except PolicyError as error:
        reference = policy.source.path if policy.source and policy.origin == "file" else policy.name
        error.hint = error.hint or f"podium policies check {reference} looks for what is wrong"
        raise


@contextmanager
def cancelling(pool: ThreadPoolExecutor) -> Iterator[ThreadPoolExecutor]:
    """Leaves a pool when the work is done, or drops what has not begun when it fails."""
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)


def inform(screen: Screen, notes: Iterable[str], noted: set[str] | None = None) -> None:
    """Prints notes, each once: those of a set that grows were printed before."""
    seen = set() if noted is None else noted
    for note in notes:
        if note not in seen:
            seen.add(note)
            screen.note(f"note: {on_one_line(note[:LONGEST_TEXT])}")
