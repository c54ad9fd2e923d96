"""Simulates slowly and obviously: the oracle that the compiled core is held to.

It is written from the rules alone, with lists, dictionaries and `sorted`, and shares nothing
with the core but the protocols and the numbers that stand for an outcome:

- A decision offers one pod: to the best node, the lowest rank among equals, or to none.
- An arrival that fits nowhere or is held joins the queue, which is ordered by priority, then
  arrival. A pass offers every waiting pod once, except twins (pods of equal shape) of one that
  found no room in this pass, and twins of one that was held on this very state (but in rounds).
- A replay makes a pass after the departures of an instant, and after placing a pod that some
  affinity or spread looks at. Where some pod is held, a pass also
  follows an arrival once `hold_limit` decisions were made since the last pass. When nothing
  else can happen and a pass places nothing, the first held pod may no longer be held.
- A gang that has not started waits until enough of its pods have arrived. Then they are offered
  one by one, and all of them are taken back unless enough find a node: where one domain is asked
  for, the domain of the first that does, then without that domain again. The gang stands in the
  queue where its first pod would. Those left over when it starts wait on their own from then on.
- With preemption, a pod that fits nowhere may evict pods of lower priority, who wait again, and
  starts in their place; a pass follows, as after a departure. A gang that has not started evicts
  nobody, and who is evicted comes back on its own.
- A table is prepared from the whole trace, or, where the demand is what was seen, anew before a
  pod is scored once an eighth of the latest pods is new to it. Who fits nowhere was not seen, and
  who fits one node alone is not scored.
- Inflation drops what fits nowhere. Rounds makes passes until one neither places nor holds.
"""

import math
from dataclasses import dataclass, field

from podium.sim.protocols import Inflation, Replay, Rounds
from podium.sim.result import HELD as STATUS_HELD
from podium.sim.result import PLACED, UNPLACED
from support.reference_cluster import HELD, NOWHERE, SlowCluster
from support.reference_constraints import is_awaited
from support.reference_preemption import Running, find_victims
from support.reference_window import SlowWindow


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
    evictions: list = field(default_factory=list)  # (change, node, slots, start, end, preemptor)


def simulate_slowly(
    cluster, workload, policy, protocol, *, seed, ranks, bound_slots=(), demand="trace",
    ties="order",
):  # fmt: skip
    """Runs one simulation; `ranks` gives each node's rank in ties.

    `bound_slots` lists the GPUs of the pods that run already, in their order.
    """
    world = SlowCluster(cluster, workload, policy, seed, ranks, ties)
    pods = _arrivals(workload, protocol)
    if demand != "trace":
        world.seen = SlowWindow(world, workload, pods, is_warm=demand == "warm")
    run = _Run(world, pods, protocol, workload.specs(), workload.gang_rules)
    run.budgets = workload.budgets
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


def _gangs(pods, rules):
    """Tells the copies of a gang apart: a pod that comes again belongs to the next one."""
    by_name = {rule.name: rule for rule in rules}
    gang_of, found, copies, seen = [], {}, {}, {}
    for pod in pods:
        if not pod.gang or pod.gang not in by_name:
            gang_of.append(None)
            continue
        if pod.name in seen.get(pod.gang, {pod.name}):
            copies[pod.gang] = copies.get(pod.gang, 0) + 1
            seen[pod.gang] = set()
        seen[pod.gang].add(pod.name)
        gang_of.append((pod.gang, copies[pod.gang]))
        found[gang_of[-1]] = by_name[pod.gang]
    return gang_of, found


class _Run:
    def __init__(self, world, pods, protocol, trace, gang_rules):
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
        self.moves = 0  # how often a node has changed, taken back or not
        self.released = False  # whether somebody who waits may fit since the last pass
        self.awaited = {pod.name for pod in pods if is_awaited(pod, trace)}
        self.num_bound = 0
        self.running = {}  # pod: (rank, slots)
        self.budgets = ()
        self.anew = set()  # pods that were evicted
        self.ages = [pod.age_s for pod in pods]
        self.gang_of, self.rules = _gangs(pods, gang_rules)
        self.members = {gang: [] for gang in self.rules}  # that have arrived and wait
        self.started = {gang: [] for gang in self.rules}

    def begin(self, bound_slots):
        """Lets the pods run that run already."""
        rank_of = {node.spec.name: rank for rank, node in enumerate(self.world.nodes)}
        for index, slots in enumerate(bound_slots):
            if self.gang_of[index] is not None:
                self.started[self.gang_of[index]].append(index)
            self.clock = self.pods[index].arrival_s or 0.0
            if isinstance(self.protocol, Inflation):
                self.clock = float(index)
            self._place(index, rank_of[self.pods[index].node], slots)
            if isinstance(self.protocol, Inflation):
                self.outcome.changes_after.append(len(self.outcome.changes))
        self.num_bound = len(bound_slots)
        self.released = False
        if self.world.seen is not None:
            self.world.seen.begin(self.num_bound)

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
        for index in range(self.num_bound, len(self.pods)):
            self._queue_up(index)
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
        del self.running[index]
        self.world.nodes[rank].stop(self.pods[index], slots)
        self.moves += 1
        self.outcome.changes.append(-(index + 1))

    def _queue_up(self, index):
        if not self._awaits_gang(index):
            self.waiting.append(index)
            return
        gang = self.gang_of[index]
        self.members[gang].append(index)
        if self._is_ready(gang) and self.members[gang][0] not in self.waiting:
            self.waiting.append(self.members[gang][0])

    def _awaits_gang(self, index):
        gang = self.gang_of[index]
        return gang is not None and len(self.started[gang]) < self.rules[gang].minimum

    def _is_ready(self, gang):
        return len(self.started[gang]) + len(self.members[gang]) >= self.rules[gang].minimum

    def _arrive_in_gang(self, index):
        gang = self.gang_of[index]
        self.members[gang].append(index)
        if not self._is_ready(gang):
            return
        first = self.members[gang][0]
        left_over, is_started = self._try_gang(gang)
        if first in self.waiting and (is_started or self._is_dropped(first)):
            self.waiting.remove(first)
        elif first not in self.waiting and not is_started and not self._is_dropped(first):
            self.waiting.append(first)
        if not is_started and self._is_dropped(first):
            self.members[gang] = []
        self.waiting.extend(left_over)
        self._pass_if_due()

    def _is_dropped(self, first):
        return isinstance(self.protocol, Inflation) and first not in self.held

    def _try_gang(self, gang):  # noqa: C901, PLR0912 - the whole rule in one place
        """Tries to start a gang; gives who is left over and waits alone, and whether it started."""
        rule, members = self.rules[gang], self.members[gang]
        first, barred, is_held = members[0], set(), False
        self.held.discard(first)
        home = self._home(gang)
        while True:
            domain, placed = home, []
            for number, index in enumerate(members):
                left = len(members) - number
                if len(self.started[gang]) + len(placed) + left < rule.minimum:
                    break
                self.outcome.decisions += 1
                may_hold = self.forced != first and self._may_hold(index)
                answer = self.world.decide(
                    self.pods[index], index, may_hold=may_hold, within=(rule.domain, domain, barred)
                )
                if answer == NOWHERE:
                    self.outcome.status[index] = UNPLACED
                elif answer == HELD:
                    self.outcome.holds[index] += 1
                    self.outcome.status[index] = STATUS_HELD
                    is_held = True
                else:
                    placed.append((index, *answer))
                    self.world.nodes[answer[0]].start(self.pods[index], answer[1])
                    self.moves += 1
                    if domain is None:
                        domain = self.world.domain(answer[0], rule.domain)
            if len(self.started[gang]) + len(placed) >= rule.minimum:
                return self._start_gang(gang, placed), True
            for index, rank, slots in reversed(placed):
                self.world.nodes[rank].stop(self.pods[index], slots)
                self.moves += 1
                self.outcome.status[index] = UNPLACED
            if not rule.domain or home is not None or domain is None:
                break
            barred.add(domain)
        if is_held:
            self.held.add(first)
        else:
            for index in members:
                self.outcome.status[index] = UNPLACED
        return [], False

    def _home(self, gang):
        for index in self.started[gang]:
            if self.rules[gang].domain:
                names = [node.spec.name for node in self.world.nodes]
                rank = names.index(self.pods[index].node)
                return self.world.domain(rank, self.rules[gang].domain)
        return None

    def _start_gang(self, gang, placed):
        for index, rank, slots in placed:
            self.world.nodes[rank].stop(self.pods[index], slots)
            self.moves -= 1
        for index, rank, slots in placed:
            self._place(index, rank, slots)
            self.started[gang].append(index)
        left_over = []
        for index in self.members[gang]:
            if self.outcome.status[index] == STATUS_HELD:
                self.held.add(index)
                left_over.append(index)
            elif self.outcome.status[index] == UNPLACED and not isinstance(
                self.protocol, Inflation
            ):
                left_over.append(index)
        self.members[gang] = []
        return left_over

    def _arrive(self, index):
        if self._awaits_gang(index):
            self._arrive_in_gang(index)
            return
        answer = self._offer(index)
        is_dropped = answer == NOWHERE and isinstance(self.protocol, Inflation)
        if answer in (NOWHERE, HELD) and not is_dropped:
            self.waiting.append(index)
        self._pass_if_due()

    def _pass_if_due(self):
        decided = self.outcome.decisions - self.decisions_at_pass
        if self.held and decided >= self.holding.hold_limit:
            self._offer_waiting()

    def _offer(self, index):
        """Makes one decision and notes it."""
        self.outcome.decisions += 1
        self.held.discard(index)
        answer = self.world.decide(self.pods[index], index, may_hold=self._may_hold(index))
        if answer == NOWHERE and self.protocol.preemption:
            answer = self._preempt(index)
        if answer == NOWHERE:
            self.outcome.status[index] = UNPLACED
        elif answer == HELD:
            self.outcome.holds[index] += 1
            self.outcome.status[index] = STATUS_HELD
            self.held.add(index)
        else:
            self._place(index, *answer)
        return answer

    def _preempt(self, index):
        """Evicts pods for one that fits nowhere; gives where it goes, or NOWHERE."""
        pod = self.pods[index]
        running = [
            Running(i, self.pods[i], *where, self.outcome.start_s[i] - self.ages[i])
            for i, where in self.running.items()
        ]
        found = None if pod.never_preempts else find_victims(
            self.world, pod, running, self._allowances()
        )  # fmt: skip
        if found is None:
            return NOWHERE
        rank, victims = found
        for victim in victims:
            self._evict(victim, index)
        self.released = True
        if self.world.seen is not None:
            self.world.seen.add(index)
        return self.world.put(pod, rank)

    def _allowances(self):
        """Gives the members of each budget, and how many of them may leave."""
        found = {}
        for number, budget in enumerate(self.budgets):
            members = [
                i for i, pod in enumerate(self.pods) if budget.selects(pod.namespace, pod.labels)
            ]
            bound = [i for i in members if i < self.num_bound]
            kept = [i for i in members if i not in bound or self._is_kept(i, budget)]
            healthy = [i for i in kept if i in self.running and self._is_healthy(i)]
            least = budget.least_healthy(len(members))
            if budget.disruptions_allowed is not None and set(bound) & set(kept):
                # At the start as many may leave as the status says; from then on, as pods run.
                first = [i for i in kept if i in bound and self._was_healthy(i)]
                is_short = budget.disruptions_allowed == 0
                least = max(least, len(first)) if is_short else len(first)
                least -= budget.disruptions_allowed
            found[number] = (kept, len(healthy) - least)
        return found

    def _is_kept(self, index, budget):
        return self.pods[index].name.rpartition("/")[2] not in budget.disrupted

    def _was_healthy(self, index):
        return not self.pods[index].is_terminating and not self.pods[index].is_unready

    def _is_healthy(self, index):
        return index in self.anew or self._was_healthy(index)

    def _evict(self, victim, preemptor):
        index, out = victim.index, self.outcome
        out.evictions.append(
            (len(out.changes), out.node[index], out.slots[index], out.start_s[index], self.clock,
             preemptor)
        )  # fmt: skip
        out.changes.append(-(index + 1))
        out.node[index], out.slots[index], out.start_s[index] = -1, 0, math.nan
        out.status[index] = UNPLACED
        self.world.nodes[victim.rank].stop(self.pods[index], victim.slots)
        self.moves += 1
        del self.running[index]
        self.departures = [each for each in self.departures if each[1] != index]
        self.anew.add(index)
        self.ages[index] = 0.0
        self.gang_of[index] = None
        self.waiting.append(index)

    def _may_hold(self, index):
        return self.outcome.holds[index] < self.holding.max_holds and index != self.forced

    def _place(self, index, rank, slots):
        pod = self.pods[index]
        self.world.nodes[rank].start(pod, slots)
        self.moves += 1
        if isinstance(self.protocol, Replay) and pod.name in self.awaited:
            self.released = True
        self.outcome.node[index] = self.world.index_of_rank[rank]
        self.outcome.slots[index] = sum(1 << slot for slot in slots)
        self.outcome.start_s[index] = self.clock
        self.outcome.status[index] = PLACED
        self.outcome.changes.append(index + 1)
        self.running[index] = (rank, slots)
        if isinstance(self.protocol, Replay):
            duration_s = pod.duration_s + (pod.age_s if index in self.anew else 0.0)
            self.departures.append((self.clock + duration_s, index, rank, slots))

    def _offer_waiting(self):
        """Makes a pass over the queue; gives how many pods were placed or held."""
        without_room = set()
        held_on = {}  # shape: how often nodes had changed when it was held
        outcomes = 0
        late = []
        for index in self._queue():
            if self._awaits_gang(index):
                left_over, is_started = self._try_gang(self.gang_of[index])
                late += left_over
                outcomes += is_started or index in self.held
                if is_started:
                    self.waiting.remove(index)
                elif self._is_dropped(index):
                    self.waiting.remove(index)
                    self.members[self.gang_of[index]] = []
                continue
            shape = self.world.twins[self.pods[index].name]
            if self.protocol.preemption:
                shape = (shape, self.pods[index].never_preempts)
            if shape in without_room:
                self._find_no_room(index)
                continue
            is_known = held_on.get(shape) == self.moves and not isinstance(self.protocol, Rounds)
            if is_known and self._may_hold(index):
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
                held_on[shape] = self.moves
            else:
                self.waiting.remove(index)
        self.waiting.extend(late)
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
