"""Keeps room for the pods to come: places where the fewest of them lose a place.

For every usual shape of GPU pod, a node has so many places: as many such pods as its CPU, memory
and GPUs could still take. A pod costs the places that it takes from each shape, weighted by the
shape's share of the GPU demand. Taking the first GPU of a node that has several costs a place more:
pods may come that are larger than any seen so far. Nodes that cost about as much are alike, and
kube-scheduler's own packing decides among them.
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
# Places that the first GPU of a node costs: what packing saves when large pods come last.
FIRST_GPU = 1.0


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


def parts(node, need, gpu, gpu_milli):
    """Counts the parts of so many milli that free GPUs have; one of them is in use by more."""
    found = 0
    for slot in range(node.gpu_count):
        left = node.gpu_milli_left[slot] - (gpu_milli if slot == gpu else 0)
        found += left // need
    return found


def places(table, row, found_parts, cpu_milli, memory_mib):
    """Counts the pods of a shape that fit into parts of GPUs, CPU and memory."""
    found = found_parts // int(table[row, GPU_COUNT])
    if table[row, CPU_MILLI] > 0:
        found = min(found, max(0, cpu_milli) // int(table[row, CPU_MILLI]))
    if table[row, MEMORY_MIB] > 0:
        found = min(found, max(0, memory_mib) // int(table[row, MEMORY_MIB]))
    return found


def is_untouched(node):
    """Tells whether all GPUs of a node are free, and they are several."""
    used = 0
    for slot in range(node.gpu_count):
        used += WHOLE - node.gpu_milli_left[slot]
    return node.gpu_count > 1 and used == 0


def score(pod, node, gpu, table):
    """Adds up the places that the pod takes from other pods, in whole steps."""
    models = LOW_MODELS if node.gpu_model < HALF else HIGH_MODELS
    model = 1 << (node.gpu_model % HALF)
    gpu_milli, gpu_count = (pod.gpu_milli, 0) if gpu >= 0 else (0, pod.gpu_count)
    cpu_milli, memory_mib = node.cpu_milli_left, node.memory_mib_left
    cost = FIRST_GPU if pod.gpu_count > 0 and is_untouched(node) else 0.0
    for row in range(len(table) if node.gpu_count > 0 else 0):
        if int(table[row, models]) & model:
            need = int(table[row, GPU_MILLI])
            before = places(table, row, parts(node, need, gpu, 0), cpu_milli, memory_mib)
            left = parts(node, need, gpu, gpu_milli) - gpu_count * (WHOLE // need)
            after = places(table, row, left, cpu_milli - pod.cpu_milli, memory_mib - pod.memory_mib)
            cost += table[row, SHARE] * (before - after)
    return -int(STEPS * cost)
