"""Holds policies that together use every part of the contract between policy and core."""
# ruff: noqa: ARG001, ARG002 - the signature of a policy is fixed

from dataclasses import replace

import numpy as np

from podium.policies import HOLD, ClusterPolicy, from_function


def first(pod, node):
    return 0


def tightest(pod, node):
    free = 0
    for slot in range(node.gpu_count):
        free += node.gpu_milli_left[slot]
    return -((free + node.cpu_milli_left // 4) // 700)


def roomiest(pod, node):
    return node.memory_mib_left / (1.0 + node.memory_mib_total) - 0.25 * pod.gpu_count


def by_record(pod, node):
    own = 1 << pod.gpu_count if pod.gpu_milli == 1000 else 1
    likes = 3.5 if node.gpu_classes & own else 0.0
    if pod.gpu_models >= 0:
        likes += node.gpu_model
    return likes - node.rack * (1 + pod.gang) - 0.5 * (node.gpu_classes == 0) * pod.priority


def by_slot(pod, node, gpu):
    if gpu < 0:
        return node.cpu_milli_left % 3000
    return -abs(node.gpu_milli_left[gpu] - 2 * pod.gpu_milli) // 200


def by_table(pod, node, table):
    total = 0.0
    for kind in range(len(table)):
        total += table[kind] * (node.cpu_milli_left // (1 + kind))
    return total


def by_slot_and_table(pod, node, gpu, table):
    total = 0.0
    for row in range(len(table)):
        if node.cpu_milli_left - pod.cpu_milli >= table[row, 0]:
            total += table[row, 2]
        if gpu >= 0 and node.gpu_milli_left[gpu] - pod.gpu_milli >= table[row, 1]:
            total -= table[row, 2]
    return total


def holding(pod, node):
    """Keeps GPU nodes for GPU pods, and untouched nodes for pods of many GPUs."""
    if pod.gpu_count == 0 and node.gpu_count > 0:
        return HOLD
    if pod.gpu_count < 2 and node.gpu_count > 3 and node.gpu_classes == 0:
        return HOLD
    return node.cpu_milli_left // 1000


def holding_slots(pod, node, gpu):
    """Refuses untouched GPUs to share pods."""
    if gpu >= 0 and node.gpu_milli_left[gpu] == 1000 and node.cpu_milli_left > 3000:
        return HOLD
    return node.memory_mib_left - (node.gpu_milli_left[gpu] if gpu >= 0 else 0)


def refusing(pod, node):
    return HOLD


def shape_weights(shapes):
    return shapes.weights


def shape_rows(shapes):
    pods = shapes.pods
    written = [len(spec) for spec in shapes.gpu_specs]
    return np.column_stack([pods["cpu_milli"], pods["gpu_milli"], shapes.weights + written])


class Wanderer:
    """Chooses by what it remembers, by chance and by the whole cluster; holds now and then."""

    def __init__(self, seed):
        self.random = np.random.default_rng(seed)
        self.calls = 0

    def choose(self, pod, nodes, feasible):
        self.calls += 1
        if self.calls % 5 == 0 or nodes["cpu_milli_left"].sum() % 7 == 0:
            return HOLD
        candidates = np.flatnonzero(feasible)
        fullest = candidates[np.argmin(nodes["gpu_milli_left"][candidates].sum(axis=1))]
        return fullest if pod.gpu_count else self.random.choice(candidates)


class Last:
    """Takes the last node that fits."""

    def __init__(self, seed):
        self.seed = seed

    def choose(self, pod, nodes, feasible):
        return int(np.flatnonzero(feasible)[-1])


class Learner:
    """Takes the nodes by turns, as many apart as there are shapes among the pods seen so far."""

    def __init__(self, seed):
        self.step, self.at = 1, seed % 5

    def refresh(self, shapes):
        self.step = len(shapes) + int(shapes.weights[0])

    def choose(self, pod, nodes, feasible):
        self.at += self.step
        candidates = np.flatnonzero(feasible)
        return int(candidates[self.at % len(candidates)])


FIRST = from_function(first)
TIGHTEST = from_function(tightest)
ROOMIEST = from_function(roomiest)
BY_SLOT = from_function(by_slot, "by-slot")
HOLDING = from_function(holding)

# A variant shares its original's machine code.
PAIR_PROBES = {
    policy.name: policy
    for policy in [
        FIRST,
        TIGHTEST,
        ROOMIEST,
        BY_SLOT,
        HOLDING,
        from_function(by_record, "by-record"),
        replace(from_function(by_table, "by-table"), prepare=shape_weights),
        replace(from_function(by_slot_and_table, "by-slot-and-table"), prepare=shape_rows),
        replace(
            from_function(by_table, "any-by-table"),
            prepare=shape_weights,
            ties="random",
            gpu_choice="random",
        ),
        from_function(holding_slots, "holding-slots"),
        from_function(refusing),
        replace(FIRST, name="first-any", ties="random", gpu_choice="random"),
        replace(TIGHTEST, name="tightest-any", ties="random", gpu_choice="worst"),
        replace(TIGHTEST, name="tightest-worst-gpu", gpu_choice="worst"),
        replace(ROOMIEST, name="roomiest-random-gpu", gpu_choice="random"),
        replace(BY_SLOT, name="by-slot-any", ties="random"),
        replace(HOLDING, name="holding-any", ties="random", gpu_choice="random"),
    ]
}

CLUSTER_PROBES = {
    policy.name: policy
    for policy in [
        ClusterPolicy("wanderer", Wanderer),
        ClusterPolicy("learner", Learner),
        ClusterPolicy("last", Last, gpu_choice="worst"),
        ClusterPolicy("last-random-gpu", Last, gpu_choice="random"),
    ]
}

PROBES = PAIR_PROBES | CLUSTER_PROBES

TABLE_PROBES = ["by-table", "by-slot-and-table", "any-by-table", "learner"]
"""Those that go by the pods that come."""
