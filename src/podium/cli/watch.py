"""Runs simulations while a progress bar watches."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager, redirect_stdout
from typing import TYPE_CHECKING, TypeVar

from podium.cli.failure import LONGEST_TEXT
from podium.cli.group import WORK
from podium.cli.terminal import on_one_line
from podium.errors import PolicyError, meant_by

if TYPE_CHECKING:
    from podium.cli.case import Case
    from podium.cli.render import Screen
    from podium.policies import Policy
    from podium.sim import Result

POLL_S = 0.1

Found = TypeVar("Found")


def announce_compilation(screen: Screen) -> None:
    """Says so before the first start, which takes longer than any other."""
    from podium.sim.kernel import is_core_on_disk

    if not is_core_on_disk():
        screen.note("compiling the simulator's core, once; this takes about ten seconds ...")


def run_watched(screen: Screen, case: Case, policy: Policy) -> Result:
    """Runs one simulation; the bar follows the pods that the core has dealt with."""
    from podium.sim.engine import make_plan
    from podium.sim.execution import Execution

    announce_compilation(screen)

    plan = make_plan(case.cluster, case.workload, policy, case.protocol, case.setup)
    execution = Execution(plan)
    shown = 0
    with screen.progress(policy.name, len(plan.arrivals)) as advance, advising(policy), apart():

        def follow() -> None:
            nonlocal shown
            advance(execution.settled - shown)
            shown = execution.settled

        return interruptible(execution.run, follow)


def interruptible(work: Callable[[], Found], follow: Callable[[], object] = lambda: None) -> Found:
    """Does the work in a thread of its own, and follows it in this one.

    Compiled code does not hear ctrl-C, and a policy may never come back from a loop: who waits for
    it hears ctrl-C at once.
    """
    with cancelling(ThreadPoolExecutor(1, WORK)) as pool:
        future = pool.submit(work)
        while not wait([future], POLL_S).done:
            follow()
        return future.result()


@contextmanager
def apart() -> Iterator[None]:
    """Keeps what a policy prints out of the results: it goes where words for people go."""
    with redirect_stdout(sys.stderr):
        yield


@contextmanager
def advising(policy: Policy) -> Iterator[None]:
    """Says how to look into a policy, in errors of policies that give no advice."""
    try:
        yield
    except PolicyError as error:
        reference = policy.source.path if policy.source and policy.origin == "file" else policy.name
        usual = f"podium policies check {reference} looks for what is wrong"
        error.hint = meant_by(error.__cause__) or error.hint or usual
        raise


@contextmanager
def cancelling(pool: ThreadPoolExecutor) -> Iterator[ThreadPoolExecutor]:
    """Leaves a pool when the work is done, or drops what has not begun when it fails.

    Whoever presses ctrl-C does not wait for what has begun either: it may never end.
    """
    try:
        yield pool
    except KeyboardInterrupt:
        pool.shutdown(wait=False, cancel_futures=True)
        raise
    except BaseException:
        pool.shutdown(cancel_futures=True)
        raise
    pool.shutdown()


def inform(screen: Screen, notes: Iterable[str], noted: set[str] | None = None) -> None:
    """Prints notes, each once: those of a set that grows were printed before."""
    seen = set() if noted is None else noted
    for note in notes:
        if note not in seen:
            seen.add(note)
            screen.note(f"note: {on_one_line(note[:LONGEST_TEXT])}")
