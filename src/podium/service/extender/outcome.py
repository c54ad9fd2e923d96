"""Follows what becomes of a cluster: GPUs allocated and lost, room that is left, pods that wait.

The figures of the real cluster come from the watch; those of its twins say what would have been.
All of it is worked out beside the answers, in small pieces on the same event loop, so that an
answer waits for one piece at most.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector
from structlog.typing import FilteringBoundLogger

from podium.errors import PolicyError
from podium.kube.state import LiveState
from podium.model.workload import PodSpec, Shapes
from podium.policies import PairPolicy, load
from podium.policies.policy import Policy
from podium.service.extender.account import Account, families
from podium.service.extender.capacity import Demand, measure_capacity, open_nodes
from podium.service.extender.guard import guard_of
from podium.service.extender.scorer import Scorer
from podium.service.extender.twin import Twin, Waiter
from podium.service.extender.waits import NamespaceLabels, Waited, Waits
from podium.service.extender.window import LiveWindow
from podium.service.http.logs import KIND
from podium.settings import Extender
from podium.sim.plan import TIE_POLICY

CLUSTER, POLICY, BASELINE = "cluster", "policy", "baseline"
"""Schedulers: the real ones; twins of the policy that scores, and of the profile without Podium."""

INTERVAL_S = 2.0
"""Seconds between one look at the cluster and its twins, and the next."""

PAUSE = 9
"""Of ten parts of the time, as many as are left to others while twins catch up."""

COMPILE_S = 60.0
"""Longest that a policy may take until it can place pods of a twin."""

CREATION_S = 1.0
"""Creation times are whole seconds, cut off."""


class Arrivals:
    """Knows since when pods wait, and counts those of the real cluster that get a node."""

    def __init__(self, state: LiveState, waits: Waits, clock: Callable[[], float]) -> None:
        self._state = state
        self._waits = waits
        self._clock = clock
        self._since_s: dict[str, float] = {}  # of all that were seen waiting and are still there
        self._unbound: set[str] = set()
        self._gated: set[str] = set()
        for uid in state.pods:
            self.hear(uid)

    def since_s(self, uid: str) -> float:
        """Says since when a pod waits or waited: its creation, or the fall of its last gate."""
        return self._since_s.get(uid, self._clock())

    def hear(self, uid: str) -> None:
        """Looks at a pod that came, changed or went."""
        pod = self._state.known_pod(uid)
        if pod is None:
            self._since_s.pop(uid, None)
            self._unbound.discard(uid)
            self._gated.discard(uid)
        elif pod.draft.standing.is_gated:
            self._gated.add(uid)
        elif pod.is_pending and uid not in self._since_s:
            self._since_s[uid] = self._arrival_s(uid, pod.draft.created_s)
            self._unbound.add(uid)
        elif pod.node and uid in self._unbound:
            self._unbound.discard(uid)
            self._waits.end(pod.spec, self._clock() - self._since_s[uid])

    def _arrival_s(self, uid: str, created_s: float | None) -> float:
        now_s = self._clock()
        if uid in self._gated or created_s is None:
            return now_s
        return min(now_s, created_s + CREATION_S)


class Outcome(Collector):
    """Measures the cluster and its twins every few seconds, and shows the latest figures."""

    def __init__(
        self, state: LiveState, recent: LiveWindow, settings: Extender, log: FilteringBoundLogger,
        clock: Callable[[], float] = time.time,
    ) -> None:  # fmt: skip
        self.accounts: tuple[Account, ...] = ()
        self._state = state
        self._recent = recent
        self._settings = settings
        self._log = log
        self._clock = clock
        self._namespaces = NamespaceLabels()
        self._waits: dict[str, Waits] = {CLUSTER: Waits(self._namespaces)}
        self.latest: Callable[[], Shapes | None] = lambda: None  # of which tables are made
        self._shapes: Shapes | None = None
        self._scorers: dict[str, Scorer] = {}  # of twins, by scheduler
        self._plain: Scorer | None = None  # of kube-scheduler without Podium
        self._twins: dict[str, Twin] = {}
        self._starting: Twin | None = None  # not yet like the cluster
        self._started_s: dict[str, float] = {}
        self._arrivals: Arrivals | None = None

    # Beginning.

    def prepare(
        self, policies: Sequence[Policy], shapes: Shapes, dtype: np.dtype[Any]
    ) -> None:  # fmt: skip
        """Makes what scores for twins; may run beside the event loop.

        Args:
            policies: the one that scores, and then its shadows.
            shapes: of recent pods.
            dtype: of the node records.
        """
        placing = {f"{each.name} (shadow)": each for each in policies[1:]}
        if self._settings.twin:
            placing |= {POLICY: policies[0], BASELINE: load(TIE_POLICY)}
        if placing:
            self._plain = Scorer(load(TIE_POLICY), shapes)
            self._plain.compile_for(dtype)
        self._shapes = shapes
        limit_s = self._settings.max_answer_s
        for name, policy in placing.items():
            scorer = Scorer(policy, shapes, guard_of(policy, limit_s, self._log))
            try:
                scorer.ask(b"", partial(scorer.compile_for, dtype), COMPILE_S)
            except PolicyError as error:
                facts = {"policy": policy.name, "problem": str(error)}
                self._log.warning("a policy has no twin", **facts)
            else:
                self._scorers[name] = scorer

    def _renew(self) -> None:
        """Has the tables of twins follow that of the policy that scores."""
        shapes = self.latest()
        if shapes is not None and shapes is not self._shapes:
            self._shapes = shapes
            for name, each in self._scorers.items():
                with suppress(PolicyError):  # the last table goes on serving
                    fresh = each.refresh(shapes)
                    fresh.ask(b"", fresh.session)
                    self._scorers[name] = fresh

    def follow(self) -> Callable[[], None]:
        """Begins to watch the state, which is complete; gives what ends it."""
        self._namespaces.begin(self._state.pods.values())
        self._arrivals = Arrivals(self._state, self._waits[CLUSTER], self._clock)
        return self._state.watch(self._hear)

    def _hear(self, kind: Literal["Node", "Pod"], name: str) -> None:
        assert self._arrivals is not None
        if kind == "Pod":
            self._arrivals.hear(name)
        now_s = self._clock()
        for twin in self._all_twins():
            twin.hear(kind, name, now_s)

    def _all_twins(self) -> Iterator[Twin]:
        yield from self._twins.values()
        if self._starting is not None:
            yield self._starting

    # Going on.

    async def run(self) -> None:
        """Follows the cluster for ever."""
        while True:
            try:
                began_s = time.perf_counter()
                for _ in self.advance():
                    # Answers come first: most of the time belongs to them.
                    await asyncio.sleep(PAUSE * (time.perf_counter() - began_s))
                    began_s = time.perf_counter()
            except Exception as error:  # noqa: BLE001 - pods are scored all the same
                self._log.error("twins begin anew", exc_info=error, **{KIND: "failed twins"})
                self._twins.clear()
                self._starting = None
            await asyncio.sleep(INTERVAL_S)

    def advance(self) -> Iterator[None]:
        """Lets the twins catch up, and measures them and the cluster, piece by piece."""
        self._renew()
        for scheduler in list(self._scorers):
            yield from self._advance_twin(scheduler)
        demand = Demand.of(self._recent.records())
        yield
        accounts = [self._account(CLUSTER, self._state.nodes, self._state.specs, demand)]
        for scheduler, twin in self._twins.items():
            yield
            accounts.append(self._account(scheduler, twin.nodes, twin.specs, demand))
        self.accounts = tuple(accounts)

    def _advance_twin(self, scheduler: str) -> Iterator[None]:
        assert self._arrivals is not None
        now_s = self._clock()
        age_s = now_s - self._started_s.get(scheduler, 0.0)
        if scheduler not in self._twins or age_s >= self._settings.twin_lifetime_s:
            self._starting = twin = self._new_twin(scheduler)
            yield from twin.begin(self._arrivals.since_s, now_s)
            self._twins[scheduler], self._starting = twin, None
            self._started_s[scheduler] = now_s
        twin = self._twins[scheduler]
        twin.scorer = self._scorers[scheduler]
        yield from twin.work(self._arrivals.since_s, now_s)

    def _new_twin(self, scheduler: str) -> Twin:
        waits = self._waits.setdefault(scheduler, Waits(self._namespaces))

        def started(waiter: Waiter, now_s: float) -> None:
            waits.end(waiter.spec, now_s - waiter.since_s)

        return Twin(self._state, self._scorers[scheduler], self._ties_of(scheduler), started)

    def _ties_of(self, scheduler: str) -> Scorer | None:
        """Gives what settles ties: kube-scheduler's own scores, unless Podium orders by name."""
        policy = self._scorers[scheduler].policy
        draws_lots = isinstance(policy, PairPolicy) and policy.ties == "random"
        return self._plain if draws_lots or self._settings.ties == "equal" else None

    def _account(
        self, scheduler: str, nodes: npt.NDArray[Any], specs: Any, demand: Demand
    ) -> Account:
        waits = self._waits[scheduler]
        scorer = self._scorers.get(scheduler)
        return Account(
            scheduler=scheduler,
            policy="" if scorer is None else scorer.policy.name,
            started_s=self._started_s.get(scheduler, 0.0),
            capacity=measure_capacity(nodes, open_nodes(specs), demand),
            waiting=waits.waiting(self._waiting(scheduler), self._clock()),
            waited={group: Waited(each.pods, each.total_s) for group, each in waits.waited.items()},
        )

    def _waiting(self, scheduler: str) -> list[tuple[PodSpec, float]]:
        assert self._arrivals is not None
        if scheduler == CLUSTER:
            return [(pod.spec, self._arrivals.since_s(pod.uid)) for pod in self._state.pending]
        waiters = self._twins[scheduler].waiting.values()
        return [(waiter.spec, waiter.since_s) for waiter in waiters]

    # Showing.

    def collect(self) -> Iterator[Metric]:
        """Gives the latest figures to Prometheus."""
        return families(self.accounts)
