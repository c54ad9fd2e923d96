"""Decides one pod at a time, slowly and obviously: fit, score, choice of node and GPUs."""

import math
from dataclasses import replace

import numpy as np

from podium.model.constraints import UNCONSTRAINED
from podium.model.records import NODE_8, NODE_16, Node, pod_view
from podium.policies import HOLD, ClusterPolicy, load
from support.reference_constraints import may_run

NOWHERE, HELD = "fits nowhere", "held"
PACKING = load("kube-packing")

_WORD = 2**64


class Dice:
    """Draws whole numbers with splitmix64 (Steele, Lea and Flood, OOPSLA 2014)."""

    def __init__(self, seed):
        self.state = seed

    def index_below(self, count):
        """Gives floor(u * count); one of one needs no draw."""
        if count == 1:
            return 0
        self.state = (self.state + 0x9E3779B97F4A7C15) % _WORD
        z = self.state
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % _WORD
        z = (z ^ (z >> 27)) * 0x94D049BB133111EB % _WORD
        z = z ^ (z >> 31)
        return int((z >> 11) * 2.0**-53 * count)


class SlowNode:
    """Keeps what is free on one node and which pods run there."""

    def __init__(self, spec, gpu_model, rack):
        self.spec = spec
        self.gpu_model = gpu_model
        self.rack = rack
        self.cpu_milli_left = spec.cpu_milli
        self.memory_mib_left = spec.memory_mib
        self.gpu_milli_left = [1000] * spec.gpu_count
        self.running = []
        self.classes = []  # of the pods that run, None without GPUs
        self.shown = None

    def fitting_slots(self, pod):
        """Lists the GPUs with enough free milli, lowest slot first."""
        return [slot for slot, free in enumerate(self.gpu_milli_left) if free >= pod.gpu_milli]

    def asked_here(self, pod, slots=None):
        """Gives the pod with the GPUs that its request is on this node, None where it is none.

        Devices of shared cards lie on as few cards as have room, or on those slots.
        """
        if pod.gpu_count == 0 or self.spec.gpu_count == 0:
            return pod
        if pod.gpu_memory_mib:
            memory = self.spec.gpu_memory_mib
            if pod.gpu_memory_mib > memory:
                return None
            share = min(
                math.ceil(1000 * pod.gpu_memory_mib / memory),
                max(1, 1000 // (memory // pod.gpu_memory_mib)),
            )
            return replace(pod, gpu_milli=max(pod.gpu_milli, share))
        if not self.counts_devices_of(pod):
            return pod
        ways = self.ways(pod)
        if slots is not None:
            return next(way for way in ways if way.gpu_count == len(slots))
        return next(filter(self.has_gpus, ways), ways[0])

    def counts_devices_of(self, asked):
        """Tells whether a pod asks for devices of which a card may have several."""
        if asked.gpu_memory_mib or not asked.gpu_count:
            return False
        return self.spec.has_partitions or (asked.gpu_milli == 1000 and self.spec.gpu_replicas > 1)

    def has_gpus(self, way):
        """Tells whether GPUs have room; over all of a node's shared ones devices may lie anyhow."""
        if len(self.fitting_slots(way)) >= way.gpu_count:
            return True
        is_enough = sum(self.gpu_milli_left) >= way.gpu_count * way.gpu_milli
        return way.gpu_count == self.spec.gpu_count and is_enough

    def ways(self, pod):
        """Lists how the devices of a pod may lie on cards, as much of each: few cards first.

        Among the others, those come first that give each card a whole number of devices.
        """
        replicas, asked = self.spec.gpu_replicas, pod.gpu_count
        if pod.gpu_milli < 1000 or replicas == 1:
            total = asked * pod.gpu_milli
            others = [n for n in range(1, 17) if n != asked and n * 1000 >= total]
            return [pod, *(replace(pod, gpu_count=n, gpu_milli=total // n) for n in others)]
        first, *others = [n for n in range(1, 17) if n * replicas >= asked]
        even = [n for n in others if asked % n == 0]
        uneven = [n for n in others if asked % n]
        return [
            replace(pod, gpu_count=n, gpu_milli=asked * 1000 // (replicas * n))
            for n in [first, *even, *uneven]
        ]

    def fits(self, asked):
        """Tells whether CPU, memory, model and GPUs are there."""
        pod = self.asked_here(asked)
        if pod is None:
            return False
        if pod.cpu_milli > 0 and pod.cpu_milli > self.cpu_milli_left:
            return False
        if pod.memory_mib > 0 and pod.memory_mib > self.memory_mib_left:
            return False
        if pod.gpu_count == 0:
            return True
        allowed = [model for model in pod.gpu_spec.split("|") if model]
        if allowed and self.spec.gpu_model not in allowed:
            return False
        if self.counts_devices_of(asked):
            return self.has_gpus(pod)
        return len(self.fitting_slots(pod)) >= pod.gpu_count

    def start(self, pod, slots):
        """Takes the pod's resources."""
        self.running.append(pod)
        self.classes.append(gpu_class(self.asked_here(pod, slots)) if pod.gpu_count else None)
        self._move(self.asked_here(pod, slots), slots, -1)

    def stop(self, pod, slots):
        """Returns the pod's resources."""
        at = self.running.index(pod)
        del self.running[at], self.classes[at]
        self._move(self.asked_here(pod, slots), slots, +1)

    def _move(self, pod, slots, sign):
        self.cpu_milli_left += sign * pod.cpu_milli
        self.memory_mib_left += sign * pod.memory_mib
        for slot in slots:
            self.gpu_milli_left[slot] += sign * pod.gpu_milli
        self.shown = None

    def view(self, gpu_slots):
        """Shows the node as policies see it."""
        if self.shown is None:
            self.shown = Node(
                cpu_milli_left=self.cpu_milli_left,
                cpu_milli_total=self.spec.cpu_milli,
                memory_mib_left=self.memory_mib_left,
                memory_mib_total=self.spec.memory_mib,
                gpu_count=self.spec.gpu_count,
                gpu_model=self.gpu_model,
                rack=self.rack,
                gpu_classes=sum({1 << kind for kind in self.classes if kind is not None}),
                gpu_milli_left=tuple((self.gpu_milli_left + [0] * gpu_slots)[:gpu_slots]),
            )
        return self.shown


def gpu_class(pod):
    """Numbers the class of a GPU pod: 0 for a share of one, k for k whole GPUs."""
    return 0 if pod.gpu_milli < 1000 else pod.gpu_count


class SlowCluster:
    """Holds the nodes in rank order and asks the policy."""

    def __init__(self, cluster, workload, policy, seed, ranks, ties="order"):
        specs = cluster.specs()
        in_rank_order = sorted(range(len(specs)), key=lambda index: ranks[index])
        self.index_of_rank = in_rank_order
        self.nodes = [
            SlowNode(specs[i], int(cluster.nodes[i]["gpu_model"]), int(cluster.nodes[i]["rack"]))
            for i in in_rank_order
        ]
        # Looking at every running pod for every pair is for those who ask for it.
        self.is_free_of_constraints = all(
            pod.constraints == UNCONSTRAINED for pod in workload.specs()
        ) and not any(spec.taints or spec.extended for spec in specs)
        self.gpu_slots = 16 if any(spec.gpu_count > 8 for spec in specs) else 8
        self.policy = policy
        self.ties = ties
        self.dice = Dice(seed)
        self.seed = seed
        self.seen = None  # the pods that a table is prepared from, where not from the trace
        settled = workload.on(cluster)
        self.records = settled.pods
        if isinstance(policy, ClusterPolicy):
            self.chooser = policy.start(seed)
        else:
            self.table = policy.table(settled.shapes())
        self.views = {
            spec.name: pod_view(record)
            for spec, record in zip(workload.specs(), settled.pods, strict=True)
        }
        # Twins are the core's own notion: pods that it would decide alike.
        classes = settled.class_of if settled.class_of is not None else [0] * len(workload)
        self.twins = {
            spec.name: (spec.gpu_spec, spec.gpu_memory_mib, spec.gpu_count, spec.gpu_milli,
                        tuple(record), int(kind))
            for spec, record, kind in zip(workload.specs(), settled.pods, classes, strict=True)
        }  # fmt: skip

    def domain(self, rank, level):
        """Names a node's rack, block or zone; None where it has none."""
        return (getattr(self.nodes[rank].spec, level) or None) if level else None

    def decide(self, pod, index, *, may_hold, within=("", None, ())):
        """Gives (rank of the node, slots), NOWHERE or HELD; `within` bounds where a gang goes."""
        self.within = within
        if self.seen is not None:
            self.seen.offer(index, sum(self.fits(pod, node) for node in self.nodes))
        if isinstance(self.policy, ClusterPolicy):
            rank, slot = self._choose(pod), None
        else:
            rank, slot = self._best(pod, may_hold=may_hold)
        if rank == HELD and not may_hold:
            rank = next(rank for rank, node in enumerate(self.nodes) if self.fits(pod, node))
        return rank if rank in (NOWHERE, HELD) else (rank, self._slots(pod, rank, slot))

    def put(self, pod, rank):
        """Gives (rank, slots) of a pod that goes to a node which nobody scored."""
        slot = None
        if not isinstance(self.policy, ClusterPolicy) and self.policy.takes_gpu:
            slot = self._score(pod, self.nodes[rank])[1]
        return rank, self._slots(pod, rank, slot)

    def fits(self, pod, node):
        """Tells whether a node has what the pod asks for, and everybody's constraints hold."""
        level, domain, barred = self.within
        if level:
            own = getattr(node.spec, level) or None
            if own is None or own in barred or (domain is not None and own != domain):
                return False
        return node.fits(pod) and (self.is_free_of_constraints or may_run(pod, node, self.nodes))

    def _best(self, pod, *, may_hold):
        scored = [
            (*self._score(pod, node), rank)
            for rank, node in enumerate(self.nodes)
            if self.fits(pod, node)
        ]
        if not scored:
            return NOWHERE, None
        best = max(score for score, _, _ in scored)
        if best == HOLD and may_hold:
            return HELD, None
        equal = [(rank, slot) for score, slot, rank in scored if score == best]
        if self.policy.ties == "random":
            return equal[self.dice.index_below(len(equal))]
        return self._settled(pod, equal) if self.ties == "profile" else equal[0]

    def _settled(self, pod, equal):
        """Gives the first of the nodes that the profile of kube-scheduler scores highest, or draws.

        The draw is made as ties are met: each new one replaces the last with a chance of 1 in all.
        """
        best, chosen, ties = -math.inf, None, 0
        for rank, slot in equal:
            node = self.nodes[rank]
            here, view = node.asked_here(pod), self.views[pod.name]
            if node.spec.gpu_count:
                view = view._replace(gpu_count=here.gpu_count, gpu_milli=here.gpu_milli)
            score = PACKING.score_pair(view, node.view(self.gpu_slots), -1, None)
            if score > best:
                best, chosen, ties = score, (rank, slot), 1
            elif score == best:
                ties += 1
                chosen = (rank, slot) if self.dice.index_below(ties) == 0 else chosen
        return chosen

    def _score(self, pod, node):
        """Gives the best (score, slot) on a node; the lowest slot among equal scores."""
        here = node.asked_here(pod)
        is_scored_by_slot = (
            self.policy.takes_gpu and here.gpu_count == 1 and 0 < here.gpu_milli < 1000
        )
        slots = node.fitting_slots(here) if is_scored_by_slot else [-1]
        view, shown = self.views[pod.name], node.view(self.gpu_slots)
        if node.spec.gpu_count:
            view = view._replace(gpu_count=here.gpu_count, gpu_milli=here.gpu_milli)
        scores = [self.policy.score_pair(view, shown, slot, self.table) for slot in slots]
        best = scores.index(max(scores))
        return scores[best], slots[best] if is_scored_by_slot else None

    def _choose(self, pod):
        feasible = np.array([self.fits(pod, node) for node in self.nodes])
        if not feasible.any():
            return NOWHERE
        rows = [tuple(node.view(self.gpu_slots)) for node in self.nodes]
        records = np.array(rows, NODE_16 if self.gpu_slots == 16 else NODE_8)
        choice = self.chooser.choose(self.views[pod.name], records, feasible)
        return HELD if choice == HOLD else int(choice)

    def _slots(self, pod, rank, scored_slot):
        if pod.gpu_count == 0:
            return []
        node = self.nodes[rank]
        pod = node.asked_here(pod)
        if 1 < pod.gpu_count == node.spec.gpu_count:
            return list(range(pod.gpu_count))
        slots = node.fitting_slots(pod)
        if pod.gpu_milli == 1000:
            return slots[: pod.gpu_count]
        if scored_slot is not None:
            return [scored_slot]
        if pod.gpu_count > 1:
            if self.policy.gpu_choice != "random":
                sign = -1 if self.policy.gpu_choice == "worst" else 1
                slots = sorted(slots, key=lambda slot: (sign * node.gpu_milli_left[slot], slot))
            return slots[: pod.gpu_count]
        if self.policy.gpu_choice == "random":
            return [slots[self.dice.index_below(len(slots))]]
        sign = -1 if self.policy.gpu_choice == "worst" else 1
        return [min(slots, key=lambda slot: (sign * node.gpu_milli_left[slot], slot))]
