"""Employs workers on a Ray cluster: an actor for each, on this machine or on others."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from podium.compute.crew import CrewExecutor, WorkerLost
from podium.compute.executor import check_workers
from podium.compute.ray.cluster import RayCluster
from podium.compute.worker import (
    HostedWorker,
    Values,
    Welcome,
    WorkerSpec,
    as_object,
    welcome_all,
)

_FAREWELL_S = 2.0


class RayExecutor(CrewExecutor):
    """Keeps as many actors; Ray is ended with them if it was started here."""

    def __init__(
        self, spec: WorkerSpec, workers: int, address: str = "", welcome: Welcome = welcome_all
    ) -> None:
        check_workers(workers)
        self.cluster = RayCluster(address, workers)
        super().__init__(RayHost(self.cluster), spec, workers, welcome)

    def close(self) -> None:
        """Ends all actors, and Ray if it was started here."""
        try:
            super().close()
        finally:
            self.cluster.close()


class RayHost:
    """Starts workers in actors; Ray itself restarts none and repeats nothing."""

    def __init__(self, cluster: RayCluster) -> None:
        self._cluster, self._ray = cluster, cluster.ray

    def start(self, spec: WorkerSpec) -> tuple[Any, Any]:
        """Creates an actor, which gets ready as soon as the cluster has room for it."""
        kind = self._ray.remote(HostedWorker)
        # Two calls at a time: one works, and one can end it.
        options = {"num_cpus": 1, "max_restarts": 0, "max_task_retries": 0, "max_concurrency": 2}
        actor = kind.options(**options).remote(as_object(spec))
        return actor, actor.get_ready.remote()

    def share(self, values: Values) -> Any:
        """Stores values where every machine fetches them once."""
        return self._ray.put(dict(values))

    def call(self, worker: Any, task: Values, shared: Any) -> Any:
        """Sends a task to an idle actor."""
        return worker.perform.remote(dict(task), shared)

    def wait(self, answers: Sequence[Any], timeout_s: float) -> Sequence[Any]:
        """Waits until an actor answers, or is known to be dead."""
        done: list[Any] = self._ray.wait(list(answers), num_returns=1, timeout=timeout_s)[0]
        return done

    def receive(self, answer: Any) -> Values:
        """Reads what an actor answers."""
        exceptions = self._ray.exceptions
        try:
            found: Values = self._ray.get(answer)
        except exceptions.RayTaskError:
            raise
        except exceptions.RayError as error:
            raise WorkerLost(_first_line(error)) from error
        return found

    def kill(self, worker: Any) -> None:
        """Ends an actor, dead or alive."""
        with suppress(Exception):  # it may be dead, or its machine
            self._ray.kill(worker)

    def close(self, workers: Sequence[Any]) -> None:
        """Asks actors to end what they started, on any machine, then kills them."""
        with suppress(Exception):  # an actor that is gone has nothing left to close
            farewell = [each.close.remote() for each in workers]
            self._ray.wait(farewell, num_returns=len(farewell), timeout=_FAREWELL_S)
        for each in workers:
            self.kill(each)

    def advice(self, reason: str) -> tuple[str, str]:
        """Returns what to do when no actor gets ready."""
        where = f"Ray cluster of {self._cluster.cpus:g} cores"
        if "No module named 'podium" in reason:
            hint = "install this Podium, with its extra ray, on every machine of the cluster"
            return where, hint
        return where, "ray status shows the free resources of the cluster"


def _first_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    telling = [line for line in lines if "No module named" in line]
    return (telling or lines or [type(error).__name__])[0]
