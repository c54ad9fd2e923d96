"""Breeds programs by the hundred, and states to score them on."""

import functools

import numpy as np

from podium.model.records import GPU_MILLI, NODE_8, POD, node_view, pod_view
from podium.policies import policy_of
from podium.policies.source import read_source
from podium.search.generators.genetic.breeding import breed, random_program
from podium.search.generators.genetic.seeds import seeds
from podium.search.program.writer import write

ANY_SEED = 20_261


@functools.cache
def brood(count, seed=ANY_SEED):
    """Breeds from the seeds for some generations; the young replace the old by chance."""
    rng = np.random.default_rng(seed)
    people = [*seeds().values(), *(random_program(rng) for _ in range(10))]
    young = []
    for _ in range(count):
        parents = [people[int(rng.integers(len(people)))] for _ in range(2)]
        young.append(breed(rng, parents).program)
        people[int(rng.integers(len(people)))] = young[-1]
    return tuple(young)


def policy(program):
    """Loads the written program as a policy."""
    return policy_of(read_source(write(program), "bred.py"), "bred")


@functools.cache
def states(count, seed=ANY_SEED):
    """Draws (pod, node, gpu) such that the pod fits; gpu is a slot for share pods, else -1."""
    rng = np.random.default_rng(seed)
    found = []
    while len(found) < count:
        pod, node = _pod(rng), _node(rng)
        free = node["gpu_milli_left"][: node["gpu_count"]]
        slots = np.flatnonzero(free >= pod["gpu_milli"])
        if pod["gpu_count"] and len(slots) < pod["gpu_count"]:
            continue
        if pod["cpu_milli"] <= node["cpu_milli_left"] and (
            pod["memory_mib"] <= node["memory_mib_left"]
        ):
            is_share = 0 < pod["gpu_milli"] < GPU_MILLI
            found.append((pod, node, int(slots[0]) if is_share else -1))
    return tuple(found)


def views(count, seed=ANY_SEED):
    """Gives states as plain Python policies see them."""
    return [(pod_view(pod), node_view(node), gpu) for pod, node, gpu in states(count, seed)]


def score(policy, pod, node, gpu):
    """Scores one state with the plain function."""
    return policy.score_pair(pod, node, gpu, np.zeros(0))


def _pod(rng):
    kind = rng.integers(4)
    count = (0, 1, 1, int(rng.choice([2, 4, 8])))[kind]
    milli = (0, int(rng.choice([50, 230, 320, 470, 500, 810, 999])), 1000, 1000)[kind]
    cpu, memory = int(rng.choice([0, 1, 3152, 11300])), int(rng.choice([0, 5600, 49152]))
    return np.array([(cpu, memory, count, milli, -1, 0, -1)], POD)[0]


def _node(rng):
    count = int(rng.choice([0, 1, 2, 4, 8]))
    choices = [0, 1, 190, 320, 500, 530, 810, 999, 1000, 1000, 1000]
    free = [int(rng.choice(choices)) for _ in range(count)] + [0] * (8 - count)
    cpu, memory = int(rng.choice([1, 8000, 96000])), int(rng.choice([1, 61440, 393216]))
    left = (int(cpu * rng.random()), int(memory * rng.random()))
    if rng.random() < 0.3:
        left = (cpu, memory)
    return np.array([(left[0], cpu, left[1], memory, count, 0, -1, 0, free)], NODE_8)[0]
