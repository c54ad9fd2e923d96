"""Judges candidates on workers: what they are sent, what comes back, and where they run.

Candidates are as confined on a cluster as on one machine: every worker keeps a process that has
locked itself in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

from podium.compute.executor import Call, Reply
from podium.compute.executor import Executor as Employer
from podium.compute.local import ThreadExecutor
from podium.compute.worker import Greeting, Welcome, WorkerSpec
from podium.errors import PodiumError
from podium.evaluation.cases import TrainingSet
from podium.evaluation.measures import Values
from podium.search.candidate.verdict import Decisions, Judgement, Verdict
from podium.search.judging.race import Rivals
from podium.search.sandbox.limits import Limits

FACTORY = "podium.search.run.judge_worker:open_judge"
BASELINE, JUDGEMENT, MISSING_WALLS = "baseline", "judgement", "missing_walls"


@dataclass(frozen=True, slots=True)
class Task:
    """Asks for the judgement of one candidate."""

    number: int
    text: str
    complexity: int
    island: int = 0
    rival: tuple[Values, ...] = ()  # whom it races against in place of its island's

    def as_object(self) -> dict[str, Any]:
        """Describes the task as JSON types."""
        return {**asdict(self), "rival": [dict(each) for each in self.rival]}


@dataclass(frozen=True, slots=True)
class Context:
    """What all tasks of a batch are judged against."""

    rivals: tuple[Rivals, ...] = ()  # island by island
    signatures: Mapping[str, int] = field(default_factory=dict)  # with the least complexity
    may_hold: bool = False  # whether who holds pods is wanted

    def wants(self, complexity: int, decisions: Decisions) -> bool:
        """Returns whether a candidate decides unlike any other, or like one that is less simple."""
        return complexity < self.signatures.get(decisions.signature, complexity + 1)

    def as_object(self) -> dict[str, Any]:
        """Describes the context as JSON types."""
        rivals = [each.as_object() for each in self.rivals]
        signatures = dict(self.signatures)
        return {"rivals": rivals, "signatures": signatures, "may_hold": self.may_hold}

    @classmethod
    def from_object(cls, source: Mapping[str, Any]) -> Context:
        """Reads what `as_object` wrote."""
        rivals = tuple(Rivals.from_object(each) for each in source["rivals"])
        return cls(rivals, source["signatures"], source["may_hold"])


NO_CONTEXT = Context()


def judgement_as_object(judgement: Judgement) -> dict[str, Any]:
    """Describes a whole judgement as JSON types, for the way back from a worker."""
    return asdict(judgement)


def judgement_from_object(source: Mapping[str, Any]) -> Judgement:
    """Reads what `judgement_as_object` wrote."""
    known = source["decisions"]
    return Judgement(
        **{
            **source,
            "verdict": Verdict(**source["verdict"]),
            "cases": tuple(source["cases"]),
            "decisions": Decisions(known["signature"], tuple(known["behaviour"]))
            if known
            else None,
        }
    )


class Executor(Protocol):
    """Judges tasks, here or elsewhere."""

    def baseline(self) -> list[dict[str, float]]:
        """Returns what fgd reaches on each case."""
        ...

    def missing_walls(self) -> tuple[str, ...]:
        """Lists the sandbox walls that some worker lacks."""
        ...

    def send(self, task: Task, context: Context) -> None:
        """Puts a task behind those that were sent before, and returns at once."""
        ...

    def receive(self, timeout_s: float) -> list[Judgement]:
        """Returns what was judged, once there is something or the time is over."""
        ...

    def drop(self) -> None:
        """Forgets the tasks that are not judged yet."""
        ...

    def close(self) -> None:
        """Ends all processes."""
        ...


class JudgingExecutor:
    """Judges on the workers of any executor, if fgd reaches the same figures on all of them."""

    def __init__(
        self, spec: WorkerSpec, limits: Limits, employ: Callable[[WorkerSpec, Welcome], Employer]
    ) -> None:
        self._limits = limits
        self._baseline: list[dict[str, float]] = []
        self._missing_walls: set[str] = set()
        self._context: tuple[Context, dict[str, Any]] = (NO_CONTEXT, NO_CONTEXT.as_object())
        self.workers = employ(spec, self._welcome)

    def baseline(self) -> list[dict[str, float]]:
        """Returns what fgd reaches on each case."""
        self.workers.get_ready()
        return self._baseline

    def missing_walls(self) -> tuple[str, ...]:
        """Lists the sandbox walls that some machine lacks."""
        return tuple(sorted(self._missing_walls))

    def run(self, tasks: Sequence[Task], context: Context) -> Iterator[Judgement]:
        """Judges tasks and yields each as soon as it is done."""
        calls = [self._call(task) for task in tasks]
        for reply in self.workers.run(calls, context.as_object()):
            yield self._judgement(reply)

    def send(self, task: Task, context: Context) -> None:
        """Puts a task behind those that were sent before, and returns at once."""
        if self._context[0] is not context:
            self._context = context, context.as_object()
        self.workers.send(self._call(task), self._context[1])

    def receive(self, timeout_s: float) -> list[Judgement]:
        """Returns what was judged, once there is something or the time is over."""
        return [self._judgement(reply) for reply in self.workers.receive(timeout_s)]

    def drop(self) -> None:
        """Forgets the tasks that are not judged yet."""
        self.workers.drop()

    def close(self) -> None:
        """Ends all processes."""
        self.workers.close()

    def _judgement(self, reply: Reply) -> Judgement:
        self._missing_walls.update(reply.values[MISSING_WALLS])
        return judgement_from_object(reply.values[JUDGEMENT])

    def _call(self, task: Task) -> Call:
        # A confined process that was replaced may still have to start.
        limit_s = self._limits.start_s + self._limits.clock_s
        return Call(task.number, task.as_object(), limit_s, f"candidate #{task.number}")

    def _welcome(self, greeting: Greeting) -> None:
        self._missing_walls.update(greeting.facts[MISSING_WALLS])
        baseline = greeting.facts[BASELINE]
        if self._baseline and self._baseline != baseline:
            raise PodiumError(
                "fgd gets different results on this machine than on the others",
                where=greeting.machine,
                hint="install the same traces, NumPy and Numba on every machine",
            )
        self._baseline = baseline


def local_executor(
    training: TrainingSet, fitness: str, workers: int, limits: Limits
) -> JudgingExecutor:
    """Judges in as many confined processes of this machine."""

    def employ(spec: WorkerSpec, welcome: Welcome) -> ThreadExecutor:
        return ThreadExecutor(spec, workers, welcome)

    return JudgingExecutor(judge_spec(training, fitness, limits), limits, employ)


def ray_executor(
    training: TrainingSet, fitness: str, workers: int, limits: Limits, address: str = ""
) -> JudgingExecutor:
    """Judges on as many actors of a Ray cluster, each with one confined process."""
    from podium.compute.ray.executor import RayExecutor

    def employ(spec: WorkerSpec, welcome: Welcome) -> RayExecutor:
        return RayExecutor(spec, workers, address, welcome)

    return JudgingExecutor(judge_spec(training, fitness, limits), limits, employ)


def judge_spec(training: TrainingSet, fitness: str, limits: Limits) -> WorkerSpec:
    """Describes workers that judge."""
    setup = {"training": training.as_object(), "fitness": fitness, "limits": asdict(limits)}
    return WorkerSpec(FACTORY, setup, limits.start_s)
