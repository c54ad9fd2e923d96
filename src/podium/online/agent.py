"""The agent: learns run times, slowdowns and failures, and decides where jobs run.

It does no input or output and reads no clock; whoever calls it keeps the observations. All methods
may be called from any thread.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from podium.errors import UsageError
from podium.online.answer import Answer, Figures
from podium.online.assignment import Assignment, assign_costs
from podium.online.company import avoided
from podium.online.cost import Candidate, Option, weigh
from podium.online.estimate import Estimate
from podium.online.exploration import EXPLOITATION, EXPLORATION, FORCED, ExplorationCap
from podium.online.failures import Failures
from podium.online.floor import Floor
from podium.online.in_flight import InFlight
from podium.online.observation import Observation, Place, Request
from podium.online.parameters import Parameters
from podium.online.runtime import RuntimeModel

BUSY_S = 0.5
"""Whoever asks for figures waits so long for what is being learned."""

_MOST_WEIGHED = 1000
MOST_PLACES = 20_000
"""Places in all answers that are remembered until the next observation; each takes about 1.5 kB."""

FORMAT = 1
"""Of the exported state."""


class Agent:
    """Scores jobs on GPU types, and learns from how they ran."""

    def __init__(self, parameters: Parameters | None = None) -> None:
        self.parameters = parameters or Parameters()
        self._lock = threading.RLock()
        # Held by all that learn, and by long readers of what was learned, who let others decide.
        self._learning = threading.RLock()
        self._runtime = RuntimeModel(self.parameters)
        self._failures = Failures()
        self._cap = ExplorationCap(
            self.parameters.exploration_cap, self.parameters.exploration_window
        )
        self._floor = Floor(self.parameters.exploration_floor)
        self._in_flight = InFlight(self.parameters.in_flight_limit_s)
        # Until the next observation:
        self._options: dict[Hashable, tuple[Option, ...]] = {}
        self._weighed: dict[Hashable, tuple[Candidate, ...]] = {}
        self._places = 0  # in all of those
        self._avoids: dict[str, tuple[str, ...]] = {}
        self._sigmas: dict[str, list[float]] = {}  # until the job type is observed again
        self._figures: Figures | None = None  # when they were last asked for
        self._observations = 0
        self._expected_s = 0.0  # of all choices with a known alternative
        self._best_s = 0.0  # of the best known alternatives

    def score(self, request: Request, now_s: float = 0.0) -> Answer:
        """Decides where a job runs, and counts the decision; now is a time of any clock.

        A job with an id is in flight until it is observed.
        """
        with self._lock:
            self._in_flight.expire(now_s)
            candidates = self.candidates(request)
            chosen, decision_type = self._decide(request.job_type, candidates)
            self._cap.count(decision_type)
            if request.job_id:
                self._in_flight.begin(request.job_id, request.job_type, chosen.gpu_type, now_s)
            avoided = self._avoided(request.job_type)
        return Answer(chosen, decision_type, candidates, avoided)

    def candidates(self, request: Request) -> tuple[Candidate, ...]:
        """Weighs the places of a request without deciding anything."""
        with self._lock:
            key = self._key(request)  # what a run gives may be learned until here
            frequency = self._floor.frequency(request.job_type)
            in_flight = self._in_flight.of(request.job_type)
            if in_flight:
                options = [
                    Option(each.place, each.known, each.risk, in_flight[each.place.gpu_type])
                    for each in self._known_options(key, request)
                ]
                return weigh(options, self.parameters, frequency)
            known = self._weighed.get((key, frequency))
            if known is None:
                known = weigh(self._known_options(key, request), self.parameters, frequency)
                self._make_room(len(known))
                self._weighed[key, frequency] = known
            return known

    def options(self, request: Request) -> tuple[Option, ...]:
        """Returns what is known of the places of a request, without weighing them."""
        with self._lock:
            return self._known_options(self._key(request), request)

    def check(self, observation: Observation) -> None:
        """Raises what `observe` would raise, and learns nothing: call it before a run is stored."""
        with self._lock:
            self._failures.check(observation)
            self._runtime.check(observation)

    def knows(self, observation: Observation) -> bool:
        """Tests whether a run has no new names; there is room for only so many."""
        with self._lock:
            part = self._runtime if observation.success else self._failures
            return part.knows(observation)

    def observe(self, observation: Observation) -> None:
        """Learns from a run, and closes its decision; one that failed teaches that it may fail."""
        with self._learning, self._lock:
            self.check(observation)
            if observation.success:
                self._runtime.observe(observation)
            self._failures.observe(observation)
            self._observations += 1
            self.close(observation.job_id)
            self._forget_answers()
            self._sigmas.pop(observation.job_type, None)

    def close(self, job_id: str) -> None:
        """Forgets a decision whose run will not be observed, or has been."""
        with self._lock:
            self._in_flight.end(job_id)

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
            failures = self._failures.without(jobs, gpus)
            for job_type, gpu_type, count in runtime.counts():
                failures.put(job_type, gpu_type, count)
            _ = runtime.spreads  # fits the posterior before anybody waits for it
            with self._lock:
                before = jobs | self._job_types()
                self._runtime, self._failures = runtime, failures
                self._floor.forget(before - self._job_types())
                self._observations = runtime.observations + failures.total
                self._forget_answers()
                self._sigmas.clear()

    def _job_types(self) -> frozenset[str]:
        return frozenset((*self._runtime.job_types, *self._failures.job_types))

    def names(self) -> tuple[set[str], set[str]]:
        """Lists the job types and the GPU types that are known, alone or beside others."""
        with self._learning:
            jobs = {*self._failures.job_types, *self._runtime.neighbours}
            return jobs, set(self._failures.gpu_types)

    def merge(self, other: Agent) -> None:
        """Adds everything that another agent has learned; decisions are not added up."""
        with self._learning, other._learning, self._lock:
            self._runtime.merge(other._runtime)
            self._failures.merge(other._failures)
            self._observations += other._observations
            self._forget_answers()
            self._sigmas.clear()

    def assign(self, requests: Sequence[Request], capacities: Mapping[str, int]) -> Assignment:
        """Assigns many jobs to GPU types at once, at the lowest cost by what is known.

        Nothing is explored: a batch is decided by the costs without information gain. A job goes
        to a GPU type where it fails more often than not only if there is no room elsewhere.
        """
        weighed, costs = self._batch(requests, tuple(capacities))
        found = assign_costs(weighed, list(capacities.values()))
        chosen = np.array(found.columns, dtype=np.intp)
        total = math.fsum(costs[np.arange(len(costs)), chosen].tolist())
        return Assignment(found.columns, total, tuple(capacities))

    def costs(self, requests: Sequence[Request], gpu_types: Sequence[str]) -> NDArray[np.float64]:
        """Returns the cost of each job on each GPU type; infinite where it may not run.

        Where a job fails more often than not, it costs more than any other choice of all jobs.
        """
        weighed, _ = self._batch(requests, gpu_types)
        return weighed

    def _batch(
        self, requests: Sequence[Request], gpu_types: Sequence[str]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Returns costs by which a batch is assigned, and what those choices really cost."""
        shape = (len(requests), len(gpu_types))
        costs, is_failing = np.full(shape, np.inf), np.zeros(shape, dtype=bool)
        columns = {name: at for at, name in enumerate(gpu_types)}
        for row, request in enumerate(requests):
            for each in self.candidates(request):
                if each.gpu_type in columns:
                    at = columns[each.gpu_type]
                    costs[row, at], is_failing[row, at] = each.greedy_cost, each.is_failing
        if not is_failing.any():
            return costs, costs
        finite = np.where(np.isfinite(costs), costs, 0.0)
        return costs + np.where(is_failing, 1.0 + finite.max(axis=1).sum(), 0.0), costs

    def figures(self) -> Figures:
        """Returns what was counted; nothing is decided.

        The uncertainty of a job type is that after its own last run: what runs of others taught
        about it since is left out, for thousands of job types are asked for every few seconds.
        While names are forgotten, which may take seconds, it is what was counted before.
        """
        known = self._figures
        is_free = self._learning.acquire(timeout=BUSY_S if known else -1)
        if known and not is_free:
            return known
        try:
            self._figures = counted = self._counted()
        finally:
            self._learning.release()
        return counted

    def _counted(self) -> Figures:
        job_types = self._runtime.job_types
        sigmas = [each for job_type in job_types for each in self._known_sigmas(job_type)]
        with self._lock:
            return Figures(
                dict(self._cap.totals),
                self._observations,
                self._cap.ratio,
                sum(sigmas) / len(sigmas) if sigmas else 0.0,
                self._expected_s / self._best_s - 1.0 if self._best_s else 0.0,
                len(job_types),
                len(sigmas),
                self._failures.total,
                len(self._in_flight),
                self._runtime.changes,
            )

    def as_object(self) -> dict[str, Any]:
        """Returns the whole state as JSON types, to be read back by `from_object`.

        Decisions in flight are not part of it.
        """
        with self._learning:
            runtime, failures = self._runtime.as_object(), self._failures.as_object()
            with self._lock:
                return {
                    "format": FORMAT,
                    "features": list(self.parameters.features),
                    "observations": self._observations,
                    "runtime": runtime,
                    "failures": failures,
                    "exploration": self._cap.as_object(),
                    "floor": self._floor.as_object(),
                    "expected_s": self._expected_s,
                    "best_s": self._best_s,
                }

    @classmethod
    def from_object(cls, parameters: Parameters, data: Mapping[str, Any]) -> Agent:
        """Reads a state back."""
        _check(parameters, data)
        agent = cls(parameters)
        agent._runtime = RuntimeModel.from_object(parameters, data["runtime"])
        agent._failures = Failures.from_object(data["failures"])
        agent._cap.restore(data["exploration"])
        agent._floor.restore(data["floor"])
        agent._observations = int(data["observations"])
        agent._expected_s, agent._best_s = float(data["expected_s"]), float(data["best_s"])
        return agent

    def _key(self, request: Request) -> Hashable:
        return (
            request.job_type,
            request.candidate_gpu_types,
            self._runtime.used(request.features),
            request.colocated_job_types,
            request.places,
        )

    def _known_options(self, key: Hashable, request: Request) -> tuple[Option, ...]:
        known = self._options.get(key)
        if known is None:
            places = request.candidates
            self._make_room(len(places))
            estimates = self._estimates(request, places)
            risks = [self._failures.risk(request.job_type, each.gpu_type) for each in places]
            known = tuple(map(Option, places, estimates, risks))
            self._options[key] = known
        return known

    def _estimates(self, request: Request, places: Sequence[Place]) -> list[Estimate]:
        """Estimates the run time at each place, all that have the same company at once."""
        runtime, features = self._runtime, request.features
        if not self.parameters.enable_interference:
            names = [place.gpu_type for place in places]
            return runtime.estimates(request.job_type, names, features)
        if not request.places:
            names, beside = [place.gpu_type for place in places], request.colocated_job_types
            return runtime.estimates(request.job_type, names, features, beside)
        by_company: dict[tuple[str, ...], list[int]] = {}
        for at, place in enumerate(places):
            by_company.setdefault(place.colocated_job_types, []).append(at)
        found: dict[int, Estimate] = {}
        for beside, group in by_company.items():
            names = [places[at].gpu_type for at in group]
            made = runtime.estimates(request.job_type, names, features, beside)
            found.update(zip(group, made, strict=True))
        return [found[at] for at in range(len(places))]

    def _known_sigmas(self, job_type: str) -> list[float]:
        found = self._sigmas.get(job_type)
        if found is None:
            names = self._runtime.ran_on(job_type)
            with self._lock:
                estimates = self._runtime.estimates(job_type, names, {})
            found = self._sigmas[job_type] = [each.sigma for each in estimates]
        return found

    def _decide(self, job_type: str, candidates: Sequence[Candidate]) -> tuple[Candidate, str]:
        """Chooses among all that do not fail, or all if they do."""
        viable = [each for each in candidates if not each.is_failing]
        failing = [each for each in candidates if each.has_mostly_failed] if viable else []
        viable = viable or list(candidates)
        best = min(viable, key=_by_cost)
        tried = [each for each in viable if each.observations]
        if not tried and not any(each.failures for each in candidates):
            # Jobs that start at once are spread: what is true of others may not be true of them.
            is_busy = any(each.in_flight for each in viable)
            return min(viable, key=_by_share) if is_busy else best, FORCED
        # What is best by what is known is no exploration, though it may be new.
        settled = [each for each in viable if each.observations or not each.in_flight]
        known = min(settled or viable, key=attrgetter("greedy_cost"))
        chosen, decision_type, price_s = known, EXPLOITATION, 0.0
        if self._cap.allows():
            if again := self._tried_again(job_type, failing, known):
                chosen, decision_type = again, EXPLORATION
            elif best is not known:
                chosen, decision_type = best, EXPLORATION
            elif found := self._affordable(job_type, viable, known):
                (chosen, price_s), decision_type = found, EXPLORATION
        self._floor.count(job_type, known.expected_s, price_s)
        # What is less certain may be expected to be faster: that is no gain of exploring.
        self._expected_s += max(chosen.expected_s, known.expected_s)
        self._best_s += known.expected_s
        return chosen, decision_type

    def _affordable(
        self, job_type: str, viable: Sequence[Candidate], known: Candidate
    ) -> tuple[Candidate, float] | None:
        """Finds what was never tried and is worth a try, and the seconds that all jobs pay."""
        untried = [
            each for each in viable if not (each.observations or each.failures or each.in_flight)
        ]
        cheapest = min(untried, key=attrgetter("expected_s"), default=None)
        if cheapest is None:
            return None
        try_s, known_s = cheapest.expected_s, known.expected_s
        price_s = max(try_s - known_s, 0.0)
        if self._floor.affords(job_type, try_s, known_s):
            return cheapest, price_s
        if self._floor.pays_itself(job_type, try_s, known_s):
            self._floor.count_own(job_type, price_s)
            return cheapest, 0.0
        return None

    def _tried_again(
        self, job_type: str, failing: Sequence[Candidate], known: Candidate
    ) -> Candidate | None:
        """Finds what fails and is tried now and then, as whatever broke may have been mended."""
        if not failing:
            return None
        cheapest = min(failing, key=attrgetter("mu"))
        chance = cheapest.success_chance
        # By one failure; where the last run succeeded, another one is expected to.
        lost_s = cheapest.failure * chance / (1.0 - chance) if cheapest.is_failing else 0.0
        if cheapest.in_flight or not self._floor.is_again(job_type, lost_s, known.mu):
            return None
        self._floor.count_again(job_type)
        return cheapest

    def _avoided(self, job_type: str) -> tuple[str, ...]:
        parameters = self.parameters
        if not parameters.enable_interference:
            return ()
        found = self._avoids.get(job_type)
        if found is None:
            least, probability = parameters.avoid_slowdown, parameters.avoid_probability
            found = avoided(self._runtime, job_type, least, probability)
            if len(self._avoids) < _MOST_WEIGHED:
                self._avoids[job_type] = found
        return found

    def _make_room(self, places: int) -> None:
        """Forgets answers before there are too many, or too many places in them."""
        self._places += places
        most = max(len(self._options), len(self._weighed))
        if most >= _MOST_WEIGHED or self._places > MOST_PLACES:
            self._options.clear()
            self._weighed.clear()
            self._places = places

    def _forget_answers(self) -> None:
        self._options.clear()
        self._weighed.clear()
        self._places = 0
        self._avoids.clear()


def _by_cost(candidate: Candidate) -> tuple[float, int]:
    return candidate.cost, candidate.in_flight


def _by_share(candidate: Candidate) -> float:
    """Gives a candidate that is expected to be twice as fast four times as many jobs.

    That is about how probable it is that it is the faster one, where only others were seen.
    """
    return candidate.expected_s**2 * (1 + candidate.in_flight)


def _check(parameters: Parameters, data: Mapping[str, Any]) -> None:
    if data.get("format") != FORMAT or data.get("features") != list(parameters.features):
        raise UsageError(
            "the state was written by another version or with other features",
            where="online.features",
            hint="restore online.features, or learn from the observations again",
        )
