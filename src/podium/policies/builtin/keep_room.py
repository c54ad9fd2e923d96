"""Keeps room for the pods to come: places where the fewest of them lose a place.

For every usual shape of GPU pod, a node has so many places: as many such pods as its CPU, memory
and GPUs could still take. A pod costs the places that it takes from each shape, weighted by the
shape's share of the GPU demand. Nobody knows what comes next, or which nodes it may use, so two
more things cost a little: places of pods that ask for 1, 2, 4 or more GPUs with three quarters of
the node's own CPU and memory for each, since agents run on every node, and what stays free of the
node, as in best-fit. Nodes that cost about as much are alike, and kube-scheduler's own packing
decides among them.
"""

import numpy as np

CPU_MILLI, MEMORY_MIB, GPU_COUNT, GPU_MILLI, LOW_MODELS, HIGH_MODELS, SHARE = range(7)
HALF = 32
MODEL_BITS = 2 * HALF
# Shapes with the largest demand that count; more change little and take longer.
MAX_SHAPES = 32
# Costs within a fiftieth of a place are alike.
STEPS = 50
WHOLE = 1000
# What a place of a pod that was never seen costs for each of its GPUs: the first GPU of 8 costs as
# much as a place that everybody wants, 15 GPUs (1 + 2 + 4 + 8), since large pods may come last.
UNSEEN = 1 / 15
# What a GPU and a core cost that stay free: so little that they decide where places say nothing,
# as they do of pods that may not use the node. A core weighs a sixteenth of a GPU, as in best-fit.
FREE_GPU, FREE_CORE = 1 / 32, 1 / 512


def prepare(shapes):
    """Lists the GPU pods of the largest demand, and the share of it that each has."""
    demand: dict[tuple[int, ...], float] = {}
    for pod, count in zip(shapes.pods, shapes.weights, strict=True):
        gpus, milli = int(pod["gpu_count"]), int(pod["gpu_milli"])
        models = int(pod["gpu_models"]) % (1 << MODEL_BITS)
        key = (int(pod["cpu_milli"]), int(pod["memory_mib"]), gpus, milli, models)
        if gpus:
            demand[key] = demand.get(key, 0.0) + float(count) * gpus * milli
    largest = sorted(demand, key=lambda key: (-demand[key], key))[:MAX_SHAPES]
    total = sum(demand[key] for key in largest)
    rows = [
        (*key[:4], key[4] % (1 << HALF), key[4] >> HALF, demand[key] / total) for key in largest
    ]
    return np.array(rows, np.float64).reshape(len(rows), SHARE + 1)


def parts_free(node, milli):
    """Counts the parts of so many milli that the free GPUs have."""
    found = 0
    for slot in range(node.gpu_count):
        found += node.gpu_milli_left[slot] // milli
    return found


def parts_taken(pod, node, gpu, milli):
    """Counts the parts that the pod takes."""
    if gpu < 0:
        return pod.gpu_count * (WHOLE // milli)
    left = node.gpu_milli_left[gpu]
    return left // milli - (left - pod.gpu_milli) // milli


def places(other, parts, cpu_milli, memory_mib):
    """Counts the pods like another one that fit into parts of GPUs, CPU and memory."""
    gpus, _milli, cpu_each, memory_each = other
    found = parts // gpus
    if cpu_each > 0:
        found = min(found, max(0, cpu_milli) // cpu_each)
    if memory_each > 0:
        found = min(found, max(0, memory_mib) // memory_each)
    return found


def lost(pod, node, gpu, other):
    """Counts the places that the pod takes from pods like another one."""
    cpu_milli, memory_mib = node.cpu_milli_left, node.memory_mib_left
    parts = parts_free(node, other[1])
    before = places(other, parts, cpu_milli, memory_mib)
    parts -= parts_taken(pod, node, gpu, other[1])
    after = places(other, parts, cpu_milli - pod.cpu_milli, memory_mib - pod.memory_mib)
    return before - after


def usual(pod, node, gpu, table):
    """Adds up the places that the pod takes from the usual shapes."""
    models = LOW_MODELS if node.gpu_model < HALF else HIGH_MODELS
    model = 1 << (node.gpu_model % HALF)
    cost = 0.0
    for row in range(len(table) if node.gpu_count > 0 else 0):
        if int(table[row, models]) & model:
            gpus, milli = int(table[row, GPU_COUNT]), int(table[row, GPU_MILLI])
            other = (gpus, milli, int(table[row, CPU_MILLI]), int(table[row, MEMORY_MIB]))
            cost += table[row, SHARE] * lost(pod, node, gpu, other)
    return cost


def unseen(pod, node, gpu):
    """Adds up the GPUs of the places that the pod takes from pods of 1, 2, 4 and more GPUs."""
    cost, gpus = 0, 1
    while gpus <= node.gpu_count:
        # Agents run on every node: of all its CPU, no pod of all GPUs would ever have a place.
        cpu_milli = node.cpu_milli_total * gpus * 3 // (4 * node.gpu_count)
        memory_mib = node.memory_mib_total * gpus * 3 // (4 * node.gpu_count)
        cost += gpus * lost(pod, node, gpu, (gpus, WHOLE, cpu_milli, memory_mib))
        gpus *= 2
    return cost


def left_free(pod, node):
    """Weighs the GPUs and cores that stay free of the node."""
    gpu_milli = -pod.gpu_count * pod.gpu_milli
    for slot in range(node.gpu_count):
        gpu_milli += node.gpu_milli_left[slot]
    return (FREE_GPU * gpu_milli + FREE_CORE * (node.cpu_milli_left - pod.cpu_milli)) / 1000


def score(pod, node, gpu, table):
    """Adds up what the pod costs, in whole steps."""
    cost = usual(pod, node, gpu, table) + UNSEEN * unseen(pod, node, gpu) + left_free(pod, node)
    return -int(STEPS * cost)
