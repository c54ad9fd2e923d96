"""Simulates slowly and obviously: the oracle that the compiled core is held to.

It is written from the rules alone, with lists, dictionaries and `sorted`, and shares nothing
with the core but the protocols and the numbers that stand for an outcome:

- A decision offers one pod: to the best node, the lowest rank among equals, or to none.
- An arrival that fits nowhere or is held joins the queue, which is ordered by priority, then
  arrival. A pass offers every waiting pod once, except twins (pods of equal shape) of one that
  found no room in this pass, and twins of one that was held on this very state.
- A replay makes a pass after the departures of an instant, and after placing a pod that some
  affinity or spread looks at. Where some pod is held, a pass also
  follows an arrival once `hold_limit` decisions were made since the last pass. When nothing
  else can happen and a pass places nothing, the first held pod may no longer be held.
- Inflation drops what fits nowhere. Rounds makes passes until one neither places nor holds.
"""

import math
from dataclasses import dataclass, field

from podium.sim.protocols import Inflation, Replay, Rounds
from podium.sim.result import HELD as STATUS_HELD
from podium.sim.result import PLACED, UNPLACED
from support.reference_cluster import HELD, NOWHERE, SlowCluster
from support.reference_constraints import is_awaited


@dataclass
class Outcome:
    """Holds what a run decided, per pod in order of arrival."""

    node: list
    slots: list
    start_s: list
    status: list
    holds: list
    changes: list = field(default_factory=list)
    changes_after: list = field(default_factory=list)  # inflation: after each arrival
    decisions: int = 0


def simulate_slowly(cluster, workload, policy, protocol, *, seed, ranks, bound_slots=()):
    """Runs one simulation; `ranks` gives each node's rank in ties.

    `bound_slots` lists the GPUs of the pods that run already, in their order.
    """
    world = SlowCluster(cluster, workload, policy, seed, ranks)
    pods = _arrivals(workload, protocol)
    run = _Run(world, pods, protocol, workload.specs())
    run.begin(bound_slots)
    if isinstance(protocol, Replay):
        run.replay()
    elif isinstance(protocol, Inflation):
        run.inflation()
    elif isinstance(protocol, Rounds):
        run.rounds()
    return run.outcome


def _arrivals(workload, protocol):
    pods = workload.specs()
    bound = [pod for pod in pods if pod.node]
    if isinstance(protocol, Inflation):
        return bound + [pods[index] for index in protocol.order.arrivals]
    pending = [pod for pod in pods if not pod.node]
    if workload.arrival_s is None:
        return bound + pending
    return bound + sorted(pending, key=lambda pod: pod.arrival_s)


class _Run:
    def __init__(self, world, pods, protocol, trace):
        count = len(pods)
        self.world = world
        self.pods = pods
        self.protocol = protocol
        self.holding = protocol.holding
        self.outcome = Outcome(
            [-1] * count, [0] * count, [math.nan] * count, [UNPLACED] * count, [0] * count
        )
        self.clock = 0.0
        self.waiting = []
        self.held = set()
        self.forced = None  # the pod that may no longer be held because nothing else can happen
        self.departures = []  # (time, pod, rank, slots)
        self.decisions_at_pass = 0
        self.released = False  # whether somebody who waits may fit since the last pass
        self.awaited = {pod.name for pod in pods if is_awaited(pod, trace)}
        self.num_bound = 0

    def begin(self, bound_slots):
        """Lets the pods run that run already."""
        rank_of = {node.spec.name: rank for rank, node in enumerate(self.world.nodes)}
        for index, slots in enumerate(bound_slots):
            self.clock = self.pods[index].arrival_s or 0.0
            if isinstance(self.protocol, Inflation):
                self.clock = float(index)
            self._place(index, rank_of[self.pods[index].node], slots)
            if isinstance(self.protocol, Inflation):
                self.outcome.changes_after.append(len(self.outcome.changes))
        self.num_bound = len(bound_slots)
        self.released = False

    def replay(self):
        first = self.pods[0].arrival_s
        for index, pod in list(enumerate(self.pods))[self.num_bound :]:
            time = first + (pod.arrival_s - first) / self.protocol.load
            self._let_depart_until(time)
            self.clock = time
            self._arrive(index)
        self._let_depart_until(math.inf)
        while self.held:
            self._make_somebody_move()
            self._let_depart_until(math.inf)

    def inflation(self):
        for index in range(self.num_bound, len(self.pods)):
            self.clock = float(index)
            self._arrive(index)
            self.outcome.changes_after.append(len(self.outcome.changes))

    def rounds(self):
        self.waiting = list(range(self.num_bound, len(self.pods)))
        for number in range(self.protocol.max_rounds):
            self.clock = float(number)
            if self._offer_waiting() == 0:
                break

    def _let_depart_until(self, time):
        """Plays every instant with a departure up to and including a time."""
        self._settle()
        while self.departures and min(self.departures)[0] <= time:
            self.clock = min(self.departures)[0]
            self._settle()

    def _settle(self):
        """Lets pods depart that are due, and offers those who wait as long as that may help."""
        while True:
            for departure in sorted(d for d in self.departures if d[0] <= self.clock):
                self._depart(departure)
                self.released = True
            if not self.released:
                return
            self.released = False
            if self.waiting:
                self._offer_waiting()

    def _depart(self, departure):
        _, index, rank, slots = departure
        self.departures.remove(departure)
        self.world.nodes[rank].stop(self.pods[index], slots)
        self.outcome.changes.append(-(index + 1))

    def _arrive(self, index):
        answer = self._offer(index)
        is_dropped = answer == NOWHERE and isinstance(self.protocol, Inflation)
        if answer in (NOWHERE, HELD) and not is_dropped:
            self.waiting.append(index)
        decided = self.outcome.decisions - self.decisions_at_pass
        if self.held and decided >= self.holding.hold_limit:
            self._offer_waiting()

    def _offer(self, index):
        """Makes one decision and notes it."""
        self.outcome.decisions += 1
        self.held.discard(index)
        answer = self.world.decide(self.pods[index], may_hold=self._may_hold(index))
        if answer == NOWHERE:
            self.outcome.status[index] = UNPLACED
        elif answer == HELD:
            self.outcome.holds[index] += 1
            self.outcome.status[index] = STATUS_HELD
            self.held.add(index)
        else:
            self._place(index, *answer)
        return answer

    def _may_hold(self, index):
        return self.outcome.holds[index] < self.holding.max_holds and index != self.forced

    def _place(self, index, rank, slots):
        pod = self.pods[index]
        self.world.nodes[rank].start(pod, slots)
        if isinstance(self.protocol, Replay) and pod.name in self.awaited:
            self.released = True
        self.outcome.node[index] = self.world.index_of_rank[rank]
        self.outcome.slots[index] = sum(1 << slot for slot in slots)
        self.outcome.start_s[index] = self.clock
        self.outcome.status[index] = PLACED
        self.outcome.changes.append(index + 1)
        if isinstance(self.protocol, Replay):
            self.departures.append((self.clock + pod.duration_s, index, rank, slots))

    def _offer_waiting(self):
        """Makes a pass over the queue; gives how many pods were placed or held."""
        without_room = set()
        held_on = {}  # shape: how many changes there had been when it was held
        outcomes = 0
        for index in self._queue():
            shape = self.world.twins[self.pods[index].name]
            if shape in without_room:
                self._find_no_room(index)
                continue
            if held_on.get(shape) == len(self.outcome.changes) and self._may_hold(index):
                self.outcome.status[index] = STATUS_HELD
                self.held.add(index)
                continue
            answer = self._offer(index)
            if answer == NOWHERE:
                without_room.add(shape)
                self._find_no_room(index)
                continue
            outcomes += 1
            if answer == HELD:
                held_on[shape] = len(self.outcome.changes)
            else:
                self.waiting.remove(index)
        self.decisions_at_pass = self.outcome.decisions
        return outcomes

    def _queue(self):
        return sorted(self.waiting, key=lambda index: (-self.pods[index].priority, index))

    def _find_no_room(self, index):
        self.held.discard(index)
        self.outcome.status[index] = UNPLACED
        if isinstance(self.protocol, Inflation):
            self.waiting.remove(index)

    def _make_somebody_move(self):
        before = len(self.outcome.changes)
        self._offer_waiting()
        if len(self.outcome.changes) == before and self.held:
            first = next(index for index in self._queue() if index in self.held)
            self.forced = first
            self._offer_waiting()
