"""Runs one simulation: loads the case, follows the run, and sums it up."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from podium.errors import PolicyError, meant_by
from podium.experiments.listener import SILENT, Cancelled, Listener, Notes, announce_compilation

if TYPE_CHECKING:
    from podium.experiments.case import Case, Inputs
    from podium.policies import Policy
    from podium.settings import Settings
    from podium.sim import Result
    from podium.sim.plan import Plan

WORK = "podium-work"
"""Prefix of the names of threads that simulate; an interrupted program leaves them behind."""

POLL_S = 0.1

Found = TypeVar("Found")


@dataclass(frozen=True, slots=True, eq=False)
class Simulation:
    """A finished simulation with its figures."""

    case: Case
    result: Result
    summary: dict[str, Any]  # every figure under its stable name
    notes: tuple[str, ...]

    def as_object(self) -> dict[str, Any]:
        """Describes the run as JSON types."""
        return {**self.summary, "notes": list(self.notes)}


def simulate(
    settings: Settings, inputs: Inputs, policy: Policy, listener: Listener = SILENT
) -> Simulation:
    """Runs a policy on the case that settings and inputs describe."""
    from podium.experiments.case import load_case
    from podium.reports.idle import idle_note
    from podium.reports.summary import hold_note, summarise

    case = load_case(settings, inputs, listener=listener)
    noted = Notes(listener)
    notes = [*case.notes, *policy.notes]
    noted.add(notes)
    result = run_case(case, policy, listener)
    summary = summarise(result)
    held = hold_note(policy, [summary])
    if held:
        notes.append(held)
        noted.add([held])
    idle = idle_note(case.cluster, case.workload, [summary])
    if idle:
        notes.append(idle)
        listener.advise(idle)
    return Simulation(case, result, summary, (*notes, *filter(None, [case.untried])))


def plan_of(case: Case, policy: Policy) -> Plan:
    """Settles everything about a run of a case."""
    from podium.sim.engine import make_plan

    return make_plan(case.cluster, case.workload, policy, case.protocol, case.setup)


def run_case(case: Case, policy: Policy, listener: Listener = SILENT) -> Result:
    """Runs one simulation; the listener follows the pods that the core has dealt with."""
    from podium.sim.execution import Execution

    plan = plan_of(case, policy)
    announce_compilation(listener, plan.variant)
    execution, total = Execution(plan), len(plan.arrivals)

    def follow() -> None:
        listener.progress(policy.name, execution.settled, total)

    with advising(policy):
        listener.progress(policy.name, 0, total)
        return interruptible(execution.run, follow)


def interruptible(work: Callable[[], Found], follow: Callable[[], object] = lambda: None) -> Found:
    """Runs the work in another thread, and follows it in this one.

    Compiled code ignores ctrl-C, and a policy may never come back from a loop; this thread only
    waits, so ctrl-C takes effect at once.
    """
    with cancelling(ThreadPoolExecutor(1, WORK)) as pool:
        future = pool.submit(work)
        while not wait([future], POLL_S).done:
            follow()
        return future.result()


@contextmanager
def advising(policy: Policy) -> Iterator[None]:
    """Adds advice on how to check the policy to errors of policies that have none."""
    try:
        yield
    except PolicyError as error:
        path = policy.source.path if policy.source else ""
        is_file = policy.origin == "file" or Path(path).is_file()  # not one of the catalogue
        reference = path if path and is_file else policy.name
        advice = f"podium policies check {reference} finds out what is wrong"
        error.hint = meant_by(error.__cause__) or error.hint or advice
        raise


@contextmanager
def cancelling(pool: ThreadPoolExecutor) -> Iterator[ThreadPoolExecutor]:
    """Closes a pool when the work is done, or drops what has not begun when it fails.

    Whoever presses ctrl-C does not wait for what has begun either: it may never end.
    """
    try:
        yield pool
    except (KeyboardInterrupt, Cancelled):
        pool.shutdown(wait=False, cancel_futures=True)
        raise
    except BaseException:
        pool.shutdown(cancel_futures=True)
        raise
    pool.shutdown()
