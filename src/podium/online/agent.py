"""The agent: learns run times and slowdowns, and decides where jobs run.

It does no input or output and reads no clock; whoever calls it keeps the observations. All methods
may be called from any thread.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from podium.errors import UsageError
from podium.online.answer import Answer, Figures
from podium.online.assignment import Assignment, assign_costs
from podium.online.cost import Candidate, candidates_of
from podium.online.exploration import EXPLOITATION, EXPLORATION, FORCED, ExplorationCap
from podium.online.interference import Interference
from podium.online.observation import Observation, Request
from podium.online.parameters import Parameters
from podium.online.runtime import RuntimeModel

FORMAT = 1
"""Of the exported state."""

_MOST_WEIGHED = 1000


class Agent:
    """Scores jobs on GPU types, and learns from how long they ran."""

    def __init__(self, parameters: Parameters | None = None) -> None:
        self.parameters = parameters or Parameters()
        self._lock = threading.RLock()
        # Held by all that learn, and by long readers of what was learned, who let others decide.
        self._learning = threading.RLock()
        self._runtime = RuntimeModel(self.parameters)
        self._interference = Interference(self.parameters.prior.slowdown_spread)
        self._cap = ExplorationCap(
            self.parameters.exploration_cap, self.parameters.exploration_window
        )
        self._weighed: dict[Hashable, tuple[Candidate, ...]] = {}  # until the next observation
        self._sigmas: dict[str, list[float]] = {}  # until the job type is observed again
        self._observations = 0
        self._expected_s = 0.0  # of all choices with a known alternative
        self._best_s = 0.0  # of the best known alternatives

    def score(self, request: Request, now_s: float = 0.0) -> Answer:
        """Decides where a job runs, and counts the decision; now is a time of any clock."""
        with self._lock:
            candidates = self.candidates(request)
            chosen, decision_type = self._decide(candidates)
            self._cap.count(decision_type)
            avoided = self._avoided(request.job_type)
        return Answer(chosen, decision_type, candidates, avoided)

    def candidates(self, request: Request) -> tuple[Candidate, ...]:
        """Weighs the GPU types of a request without deciding anything."""
        key = (
            request.job_type,
            request.candidate_gpu_types,
            tuple(request.features.items()),
            request.colocated_job_types,
        )
        with self._lock:
            known = self._weighed.get(key)
            if known is None:
                if len(self._weighed) >= _MOST_WEIGHED:
                    self._weighed.clear()
                known = self._weighed[key] = self._weigh(request)
            return known

    def check(self, observation: Observation) -> None:
        """Raises what `observe` would raise, and learns nothing: call it before a run is stored."""
        with self._lock:
            part = self._interference if observation.colocated_job_types else self._runtime
            part.check(observation)

    def knows(self, observation: Observation) -> bool:
        """Tests whether a run has no new names; there is room for only so many."""
        with self._lock:
            part = self._interference if observation.colocated_job_types else self._runtime
            return part.knows(observation)

    def observe(self, observation: Observation) -> None:
        """Learns from a run; one with neighbours teaches about the neighbours alone."""
        with self._learning, self._lock:
            if observation.colocated_job_types:
                self._interference.observe(observation, self.parameters.forgetting)
            else:
                self._runtime.observe(observation)
            self._observations += 1
            self._weighed.clear()
            self._sigmas.pop(observation.job_type, None)
            self._learn_slowdowns(observation.job_type)

    def replay(self, observations: Iterable[Observation]) -> None:
        """Learns from many runs, oldest first."""
        for observation in observations:
            self.observe(observation)

    def forget(self, *, job_type: str | None = None, gpu_type: str | None = None) -> None:
        """Becomes as though a job type, or a GPU type, had never been observed."""
        jobs = () if job_type is None else (job_type,)
        self.forget_all(jobs, () if gpu_type is None else (gpu_type,))

    def forget_all(self, job_types: Collection[str], gpu_types: Collection[str]) -> None:
        """Becomes as though job types and GPU types had never been observed.

        However many there are, all that stays is put together once. Others may decide meanwhile;
        decisions that were made stay counted.
        """
        jobs, gpus = frozenset(job_types), frozenset(gpu_types)
        with self._learning:
            runtime = self._runtime.without(jobs, gpus)
            interference = self._interference.without(jobs, gpus)
            gone = self._runtime.observations - runtime.observations
            gone += self._interference.observations - interference.observations
            if self.parameters.enable_interference:
                for name in runtime.job_types:
                    noise = runtime.noise_variance(name)
                    interference.learn(name, runtime.cells(name), noise)
            _ = runtime.pair_spread  # fits the posterior before anybody waits for it
            with self._lock:
                self._runtime, self._interference = runtime, interference
                self._observations -= gone
                self._weighed.clear()
                self._sigmas.clear()

    def names(self) -> tuple[set[str], set[str]]:
        """Lists the job types and the GPU types that are known, alone or beside others."""
        with self._learning:
            jobs = {*self._runtime.job_types, *self._interference.job_types}
            return jobs, {*self._runtime.gpu_types, *self._interference.gpu_types}

    def merge(self, other: Agent) -> None:
        """Adds everything that another agent has learned; decisions are not added up."""
        with self._learning, other._learning, self._lock:
            self._runtime.merge(other._runtime)
            self._interference.merge(other._interference)
            self._observations += other._observations
            self._weighed.clear()
            self._sigmas.clear()
            for job_type in self._runtime.job_types:
                self._learn_slowdowns(job_type)

    def assign(self, requests: Sequence[Request], capacities: Mapping[str, int]) -> Assignment:
        """Assigns many jobs to GPU types at once, at the lowest cost by what is known.

        Nothing is explored: a batch is decided by the costs without information gain.
        """
        costs = self.costs(requests, tuple(capacities))
        found = assign_costs(costs, list(capacities.values()))
        return Assignment(found.columns, found.cost, tuple(capacities))

    def costs(self, requests: Sequence[Request], gpu_types: Sequence[str]) -> NDArray[np.float64]:
        """Returns the cost of each job on each GPU type; infinite where it may not run."""
        rows = [self._costs(request, gpu_types) for request in requests]
        return np.array(rows, dtype=np.float64).reshape(len(requests), len(gpu_types))

    def figures(self) -> Figures:
        """Returns what was counted; nothing is decided.

        The uncertainty of a job type is that after its own last run: what runs of others taught
        about it since is left out, for thousands of job types are asked for every few seconds.
        """
        with self._learning:
            sigmas = [
                sigma
                for job_type in self._runtime.job_types
                for sigma in self._known_sigmas(job_type)
            ]
            with self._lock:
                return Figures(
                    dict(self._cap.totals),
                    self._observations,
                    self._cap.ratio,
                    sum(sigmas) / len(sigmas) if sigmas else 0.0,
                    self._expected_s / self._best_s - 1.0 if self._best_s else 0.0,
                    len(self._runtime.job_types),
                    len(sigmas),
                )

    def as_object(self) -> dict[str, Any]:
        """Returns the whole state as JSON types, to be read back by `from_object`."""
        with self._learning:
            runtime, interference = self._runtime.as_object(), self._interference.as_object()
            with self._lock:
                return {
                    "format": FORMAT,
                    "features": list(self.parameters.features),
                    "observations": self._observations,
                    "runtime": runtime,
                    "interference": interference,
                    "exploration": self._cap.as_object(),
                    "expected_s": self._expected_s,
                    "best_s": self._best_s,
                }

    @classmethod
    def from_object(cls, parameters: Parameters, data: Mapping[str, Any]) -> Agent:
        """Reads a state back."""
        _check(parameters, data)
        agent = cls(parameters)
        agent._runtime = RuntimeModel.from_object(parameters, data["runtime"])
        agent._interference = Interference.from_object(
            parameters.prior.slowdown_spread, data["interference"]
        )
        agent._cap.restore(data["exploration"])
        agent._observations = int(data["observations"])
        agent._expected_s, agent._best_s = float(data["expected_s"]), float(data["best_s"])
        for job_type in agent._runtime.job_types:
            agent._learn_slowdowns(job_type)
        return agent

    def _weigh(self, request: Request) -> tuple[Candidate, ...]:
        names = tuple(dict.fromkeys(request.candidate_gpu_types))
        estimates = self._runtime.estimates(request.job_type, names, request.features)
        slowdown = 0.0
        if self.parameters.enable_interference:
            slowdown = self._interference.slowdown(request.job_type, request.colocated_job_types)
        return candidates_of(names, estimates, slowdown, self.parameters)

    def _known_sigmas(self, job_type: str) -> list[float]:
        found = self._sigmas.get(job_type)
        if found is None:
            names = list(self._runtime.cells(job_type))
            with self._lock:
                estimates = self._runtime.estimates(job_type, names, {})
            found = self._sigmas[job_type] = [each.sigma for each in estimates]
        return found

    def _decide(self, candidates: Sequence[Candidate]) -> tuple[Candidate, str]:
        best = min(candidates, key=attrgetter("cost"))
        observed = [each for each in candidates if each.observations]
        if not observed:
            return best, FORCED
        known = min(observed, key=attrgetter("greedy_cost"))
        is_exploring = best is not known and self._cap.allows()
        chosen = best if is_exploring else known
        self._expected_s += chosen.mu
        self._best_s += known.mu
        return chosen, EXPLORATION if is_exploring else EXPLOITATION

    def _avoided(self, job_type: str) -> tuple[str, ...]:
        if not self.parameters.enable_interference:
            return ()
        return tuple(self._interference.avoided(job_type, self.parameters.avoid_slowdown))

    def _learn_slowdowns(self, job_type: str) -> None:
        if self.parameters.enable_interference:
            noise = self._runtime.noise_variance(job_type)
            self._interference.learn(job_type, self._runtime.cells(job_type), noise)

    def _costs(self, request: Request, names: Sequence[str]) -> list[float]:
        weighed = {each.gpu_type: each for each in self.candidates(request)}
        return [weighed[name].greedy_cost if name in weighed else np.inf for name in names]


def _check(parameters: Parameters, data: Mapping[str, Any]) -> None:
    if data.get("format") != FORMAT or data.get("features") != list(parameters.features):
        raise UsageError(
            "the state was written by another version or with other features",
            where="online.features",
            hint="restore online.features, or learn from the observations again",
        )
