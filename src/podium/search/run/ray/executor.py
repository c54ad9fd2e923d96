"""Judges tasks on a Ray cluster: an actor for each worker, on this machine or on others.

Candidates are as confined as on one machine: every actor keeps a process that has locked itself
in. What an actor was judging when it died is judged by another one.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator, Sequence
from typing import Any

from podium.errors import MissingError, UsageError
from podium.evaluation.cases import TrainingSet
from podium.search.run.executor import Context, Done, Task
from podium.search.run.ray.cluster import RayCluster
from podium.search.run.ray.crew import Answer, Crew, Member
from podium.search.run.ray.message import (
    context_as_object,
    done_from,
    setup_as_object,
    task_as_object,
)
from podium.search.sandbox.limits import Limits

MOST_ATTEMPTS = 4
"""So often actors may be lost over one candidate before that is an error."""


class RayExecutor:
    """Judges on so many actors of a Ray cluster."""

    def __init__(
        self, training: TrainingSet, fitness: str, workers: int, limits: Limits, address: str = ""
    ) -> None:
        if workers < 1:
            raise UsageError(f"{workers} workers cannot judge", hint="give at least 1")
        self._limits = limits
        self._cluster = RayCluster(address, workers)
        setup = setup_as_object(training, fitness, limits)
        self.crew = Crew(self._cluster, setup, workers, limits.start_s)
        try:
            self.crew.start()
        except BaseException:
            self.close()
            raise

    def baseline(self) -> list[dict[str, float]]:
        """Gives what fgd reaches on each case."""
        self.crew.wait_until_ready()
        return self.crew.baseline

    def missing_walls(self) -> tuple[str, ...]:
        """Names the walls of the sandbox that some machine lacks."""
        return tuple(sorted(self.crew.missing_walls))

    def run(self, tasks: Sequence[Task], context: Context) -> Iterator[Done]:
        """Judges tasks and gives each as soon as it is done."""
        crew, attempts = self.crew, Counter[int]()
        waiting, by_number = deque(tasks), {task.number: task for task in tasks}
        kept = self._cluster.ray.put(context_as_object(context)) if tasks else None
        try:
            found: list[Done] = []
            while by_number or found:
                for member in crew.idle()[: len(waiting)]:
                    self._give(member, waiting.popleft(), kept)
                # Actors are at work again before whoever asked looks at what they found.
                yield from found
                found = []
                for answer in crew.listen() if by_number else ():
                    attempts[answer.task] += 1
                    done = _done(answer, attempts[answer.task])
                    if done is None:
                        waiting.appendleft(by_number[answer.task])
                    else:
                        del by_number[answer.task]
                        found.append(done)
        finally:
            crew.forget()

    def processes(self) -> list[tuple[str, int]]:
        """Lists the machine and the process of every actor that is ready."""
        return [(each.machine, each.pid) for each in self.crew.members if each.is_ready]

    def close(self) -> None:
        """Ends all actors, and Ray if it was started here."""
        try:
            self.crew.close()
        finally:
            self._cluster.close()

    def _give(self, member: Member, task: Task, context: Any) -> None:
        limits, told = self._limits, task_as_object(task)
        # A confined process that was replaced may still have to start.
        limit_s = limits.start_s + limits.time_s + (limits.tuning_s if task.tuning else 0.0)
        self.crew.give(
            member, task.number, lambda actor: actor.perform.remote(told, context), limit_s
        )


def _done(answer: Answer, attempts: int) -> Done | None:
    """Reads the answer to a task; nothing if somebody else is to try it."""
    if answer.told is not None:
        return done_from(answer.told)
    if attempts < MOST_ATTEMPTS:
        return None
    # A candidate is locked in: that an actor dies says nothing of the one it was judging.
    raise MissingError(
        f"actors that judged candidate #{answer.task} were lost {attempts} times: {answer.reason}",
        hint="ray status shows the cluster; put that right, then podium search resume goes on",
    )
