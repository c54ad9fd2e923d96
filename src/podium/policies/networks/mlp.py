"""Scores a pod on a node by a small net over what would remain there, GPUs included.

The net has one hidden layer and a direct path from every feature to the score. All that it reads is
in one table: the weights, and what `prepare` derives from the demand of the workload, such as what
a free part of a GPU is worth. So one compiled function serves every set of weights, and the net
runs wherever a pair policy does.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from podium.errors import InputError
from podium.model.records import GPU_MILLI
from podium.model.workload import Shapes
from podium.policies.networks.demand import (
    MODELS,
    NUM_COUNTS,
    PARTS,
    TYPICAL,
    Demand,
    demand_of,
)
from podium.policies.policy import PairPolicy, from_trusted_function
from podium.policies.weights import Weights, net_array

Array = npt.NDArray[np.float64]

FEATURES = (
    "wasted_gpu", "wasted_gpu_by_demand",
    "starved_gpu_1", "starved_gpu_2", "starved_gpu_3",
    "starved_gpu_by_demand_1", "starved_gpu_by_demand_2", "starved_gpu_by_demand_3",
    "behind_on_gpu", "free_on_gpu", "opens_gpu", "whole_gpus_worth",
    "free_gpu_after", "usable_gpu_after", "usable_gpu_by_demand_after", "whole_gpus_after",
    "parts_after", "largest_part_after", "cpu_part_after", "cpu_after", "memory_part_after",
    "cpu_per_gpu_after", "cpu_per_gpu_before", "starved_of_memory",
    "pod_cpu", "pod_gpu", "pod_is_share", "pod_share", "pod_cpu_per_gpu", "pod_memory",
    "node_gpus", "node_cpu", "node_cpu_per_gpu", "model_wanted_by_pod_gpu", "model_wanted",
    "demand_of_shares", "demand_of_several", "demand_of_cpu_only",
    "fits_behind", "gpu_lost_in_steps",
)  # fmt: skip
"""What the net sees of a pod on a node, as it would be once the pod is there."""

NUM_FEATURES = len(FEATURES)
LANES = 8
"""Hidden units that are summed up side by side; their number is a multiple of it."""

BIN_MILLI = 50
NUM_BINS = GPU_MILLI // BIN_MILLI
DEMAND_TERMS = 5
NUM_LEVELS = 6  # of CPU beside a GPU: three for each of the two worths
MOST_WHOLE = 16  # whole free GPUs that are told apart

# Where things are in the table.
WORTH_1 = 0
WORTH_2 = WORTH_1 + PARTS
FITTING = WORTH_2 + PARTS
WHOLE = FITTING + PARTS
LEVELS = WHOLE + MOST_WHOLE + 1
MODEL = LEVELS + NUM_LEVELS
CONTEXT = MODEL + MODELS
MEMORY = CONTEXT + 3
STEPS = MEMORY + 1
UNITS = STEPS + 4
LINEAR = UNITS + 1
NET = LINEAR + NUM_FEATURES
"""Hidden units from here on: biases, weights feature by feature, what each adds to the score."""

CPUS_PER_GPU = 8.0  # cores beside a GPU that make a ratio one half
MEMORY_MIB = 32768.0
TWIN = -1e9
"""The score of a GPU whose twin in a lower slot scores the same, and wins."""


def shapes_of_arrays(hidden_units: int) -> dict[str, tuple[int, ...]]:
    """Lists the arrays of a net, by name, with their shapes."""
    return {
        "hidden": (NUM_FEATURES, hidden_units),
        "bias": (hidden_units,),
        "out": (hidden_units,),
        "linear": (NUM_FEATURES,),
        "worth": (2, DEMAND_TERMS + NUM_BINS),  # of a free part of a GPU: by demand, and by size
        "whole": (NUM_COUNTS + 1,),  # of whole free GPUs, and how demand counts in it
        "levels": (3, NUM_LEVELS),  # CPU per GPU: logarithm, and by demand of GPU and other pods
        "memory": (1,),  # the logarithm of MiB per GPU
        "steps": (4,),
        "models": (2,),
    }


def table_of(arrays: Mapping[str, Array], shapes: Shapes) -> Array:
    """Lays weights and demand out as the table that `score` reads."""
    demand = demand_of(shapes, arrays.get(TYPICAL))
    units = len(arrays["bias"])
    table = np.zeros(NET + units * (NUM_FEATURES + 2))
    table[WORTH_1:FITTING] = _worths(arrays["worth"], demand).ravel()
    table[FITTING:WHOLE] = demand.fitting
    whole = arrays["whole"][:NUM_COUNTS] + arrays["whole"][NUM_COUNTS] * demand.several
    table[WHOLE:LEVELS] = np.concatenate([whole, np.repeat(whole[-1], MOST_WHOLE + 1 - NUM_COUNTS)])
    by_demand = np.array([1.0, np.log1p(demand.cpu_per_gpu / 8), np.log1p(demand.cpu_only_per_gpu)])
    table[LEVELS:MODEL] = np.exp(-np.clip(by_demand @ arrays["levels"], -4, 8))
    wanted = arrays["models"][0] * demand.models + arrays["models"][1] * np.sqrt(demand.models)
    table[MODEL:CONTEXT] = wanted
    only = demand.cpu_only_per_gpu
    table[CONTEXT:MEMORY] = demand.shares, demand.multiple, only / (only + 4)
    table[MEMORY] = float(np.exp(-np.clip(arrays["memory"][0], 0, 20)))
    table[STEPS:UNITS] = arrays["steps"]
    table[UNITS] = units
    table[LINEAR:NET] = arrays["linear"]
    table[NET:] = np.concatenate([arrays["bias"], arrays["hidden"].ravel(), arrays["out"]])
    return table


def _worths(worth: Array, demand: Demand) -> Array:
    """Values every free part of a GPU, in GPUs, in two ways."""
    part = np.arange(PARTS) / GPU_MILLI
    bins = np.minimum(np.arange(PARTS) // BIN_MILLI, NUM_BINS - 1)
    terms = np.stack(
        [
            part,
            part * demand.counted,
            part * demand.fitting,
            demand.filled / GPU_MILLI,
            part * demand.exact,
        ]
    )
    found: Array = worth[:, :DEMAND_TERMS] @ terms + worth[:, DEMAND_TERMS + bins] * part
    return found


class Remains(NamedTuple):
    """What a node has before and after a pod: GPU in GPUs, CPU in cores, memory in MiB."""

    taken: float  # GPU that the pod asks for
    share: float  # 1 if it asks for a part of a GPU, else 0
    here_milli: int  # free on its GPU before
    behind_milli: int  # and after
    free: float
    free_after: float
    whole: int
    whole_after: int
    parts_after: int
    largest_after_milli: int
    worth_1: float
    worth_1_after: float
    worth_2: float
    worth_2_after: float
    cpu: float
    cpu_after: float
    memory: float
    memory_after: float


def remaining(pod: Any, node: Any, gpu: int, table: Any) -> Any:
    """Sums up what a node has before and after a pod."""
    is_share = 0 < pod.gpu_milli < GPU_MILLI
    count = pod.gpu_count if pod.gpu_milli > 0 else 0
    here = node.gpu_milli_left[gpu] if gpu >= 0 else GPU_MILLI
    behind = max(0, here - pod.gpu_milli)
    free, whole, parts, worth_1, worth_2 = free_gpus(node, table)
    if is_share:
        parts += (1 if behind > 0 else 0) - (0 if here == GPU_MILLI else 1)
    whole_after = max(0, whole - (count if here == GPU_MILLI else 0))
    taken = count * pod.gpu_milli / GPU_MILLI
    return Remains(
        taken, 1.0 if is_share else 0.0, here, behind,
        free / GPU_MILLI, free / GPU_MILLI - taken, whole, whole_after, parts,
        largest_part(node, gpu, behind, whole_after),
        worth_1, worth_1 - count * (table[WORTH_1 + here] - table[WORTH_1 + behind]),
        worth_2, worth_2 - count * (table[WORTH_2 + here] - table[WORTH_2 + behind]),
        node.cpu_milli_left / 1000, (node.cpu_milli_left - pod.cpu_milli) / 1000,
        float(node.memory_mib_left), float(node.memory_mib_left - pod.memory_mib),
    )  # fmt: skip


def free_gpus(node: Any, table: Any) -> Any:
    """Sums up what is free: GPU milli, whole GPUs, parts of GPUs, and what they are worth."""
    free = whole = parts = 0
    worth_1 = worth_2 = 0.0
    for slot in range(node.gpu_count):
        left = node.gpu_milli_left[slot]
        free += left
        whole += 1 if left == GPU_MILLI else 0
        parts += 1 if 0 < left < GPU_MILLI else 0
        worth_1 += table[WORTH_1 + left]
        worth_2 += table[WORTH_2 + left]
    return free, whole, parts, worth_1, worth_2


def largest_part(node: Any, gpu: int, behind_milli: int, whole_after: int) -> int:
    """Finds the most that is free on one GPU once the pod is there."""
    if whole_after > 0:
        return GPU_MILLI
    largest = 0
    for slot in range(node.gpu_count):
        left = behind_milli if slot == gpu else node.gpu_milli_left[slot]
        if left < GPU_MILLI:
            largest = max(largest, left)
    return largest


def starved_more(
    gpu: float, gpu_after: float, beside: float, beside_after: float, level: float
) -> float:
    """Returns the free GPU that loses what it needs beside it, at so many GPUs for one of that."""
    return max(0.0, gpu_after - beside_after * level) - max(0.0, gpu - beside * level)


def gpu_features(own: Any, table: Any) -> Any:
    """Describes GPU that is wasted, starved of CPU, left behind and left over."""
    wasted = (
        own.worth_1 - own.worth_1_after - own.taken,
        own.worth_2 - own.worth_2_after - own.taken,
    )
    starved_1 = starved_features(own, own.worth_1, own.worth_1_after, table, LEVELS)
    starved_2 = starved_features(own, own.worth_2, own.worth_2_after, table, LEVELS + 3)
    whole, whole_after = min(own.whole, MOST_WHOLE), min(own.whole_after, MOST_WHOLE)
    others = (
        own.share * own.behind_milli / GPU_MILLI,
        own.share * own.here_milli / GPU_MILLI,
        own.share if own.here_milli == GPU_MILLI else 0.0,
        table[WHOLE + whole] - table[WHOLE + whole_after],
        own.free_after / 8,
        own.worth_1_after / 8,
        own.worth_2_after / 8,
        own.whole_after / 8,
        own.parts_after / 8,
        own.largest_after_milli / GPU_MILLI,
    )
    return wasted + starved_1 + starved_2 + others


def starved_features(own: Any, worth: float, worth_after: float, table: Any, level: int) -> Any:
    """Describes GPU that loses the CPU beside it, at three levels."""
    return (
        starved_more(worth, worth_after, own.cpu, own.cpu_after, table[level]),
        starved_more(worth, worth_after, own.cpu, own.cpu_after, table[level + 1]),
        starved_more(worth, worth_after, own.cpu, own.cpu_after, table[level + 2]),
    )


def node_features(own: Any, pod: Any, node: Any, table: Any) -> Any:
    """Describes CPU and memory that are left, and the sizes of pod and node."""
    return (
        own.cpu_after / max(1.0, node.cpu_milli_total / 1000),
        own.cpu_after / 100,
        own.memory_after / max(1.0, float(node.memory_mib_total)),
        own.cpu_after / (own.cpu_after + CPUS_PER_GPU * own.free_after + 0.001),
        own.cpu / (own.cpu + CPUS_PER_GPU * own.free + 0.001),
        starved_more(own.worth_1, own.worth_1_after, own.memory, own.memory_after, table[MEMORY]),
        pod.cpu_milli / (pod.cpu_milli + 1000 * CPUS_PER_GPU),
        own.taken / 8,
        own.share,
        own.share * pod.gpu_milli / GPU_MILLI,
        pod.cpu_milli / (pod.cpu_milli + 1000 * CPUS_PER_GPU * own.taken + 1),
        pod.memory_mib / (pod.memory_mib + MEMORY_MIB),
        node.gpu_count / 8,
        node.cpu_milli_total / 100000,
        node.cpu_milli_total / (node.cpu_milli_total + 1000 * CPUS_PER_GPU * node.gpu_count + 1),
    )


def demand_features(own: Any, node: Any, table: Any, lost: float) -> Any:
    """Describes what others want of the node."""
    wanted = table[MODEL + max(0, node.gpu_model)]
    return (
        wanted * min(1.0, own.taken),
        wanted,
        table[CONTEXT],
        table[CONTEXT + 1],
        table[CONTEXT + 2],
        own.share * table[FITTING + own.behind_milli],
        float(int(table[STEPS] * lost)) / 8,
    )


def features(pod: Any, node: Any, gpu: int, table: Any) -> Any:
    """Describes what would remain of a node, in GPUs and in numbers about as large as 1."""
    own = remaining(pod, node, gpu, table)
    of_gpus = gpu_features(own, table)
    lost = (
        table[STEPS + 1] * of_gpus[0]
        + table[STEPS + 2] * of_gpus[2]
        + table[STEPS + 3] * of_gpus[3]
    )
    others = demand_features(own, node, table, lost)
    return of_gpus + node_features(own, pod, node, table) + others


def evaluate(seen: Any, table: Any) -> float:
    """Runs the net on features."""
    units = int(table[UNITS])
    weights = NET + units
    out = weights + NUM_FEATURES * units
    score = 0.0
    for index in range(NUM_FEATURES):
        score += table[LINEAR + index] * seen[index]
    for lane in range(0, units, LANES):
        # Side by side: a sum has an order, and one at a time would wait for the one before.
        at = NET + lane
        a, b, c, d = table[at], table[at + 1], table[at + 2], table[at + 3]
        e, f, g, h = table[at + 4], table[at + 5], table[at + 6], table[at + 7]
        for index in range(NUM_FEATURES):
            value, at = seen[index], weights + index * units + lane
            a += table[at] * value
            b += table[at + 1] * value
            c += table[at + 2] * value
            d += table[at + 3] * value
            e += table[at + 4] * value
            f += table[at + 5] * value
            g += table[at + 6] * value
            h += table[at + 7] * value
        at = out + lane
        score += table[at] * (a / (1.0 + abs(a)))
        score += table[at + 1] * (b / (1.0 + abs(b)))
        score += table[at + 2] * (c / (1.0 + abs(c)))
        score += table[at + 3] * (d / (1.0 + abs(d)))
        score += table[at + 4] * (e / (1.0 + abs(e)))
        score += table[at + 5] * (f / (1.0 + abs(f)))
        score += table[at + 6] * (g / (1.0 + abs(g)))
        score += table[at + 7] * (h / (1.0 + abs(h)))
    return score


def score(pod: Any, node: Any, gpu: int, table: Any) -> float:
    """Scores by a net what would remain of the node, with what the demand can use of it."""
    if len(table) < NET:
        raise ValueError("the net has no table: prepare(shapes) makes it")
    for lower in range(gpu):
        if node.gpu_milli_left[lower] == node.gpu_milli_left[gpu]:
            return TWIN
    return evaluate(features(pod, node, gpu, table), table)


def mlp_policy(name: str, arrays: Mapping[str, Array]) -> PairPolicy:
    """Builds the policy of a net; every net is the same machine code with another table."""
    return replace(
        _function(), name=name, origin="trained", prepare=functools.partial(table_of, arrays)
    )


@functools.cache
def _function() -> PairPolicy:
    return replace(from_trusted_function(score, "mlp"), is_kept=True, origin="trained")


def make(weights: Weights) -> PairPolicy:
    """Builds the policy of weights that were saved, once their shapes have been checked."""
    given = dict(weights.arrays)
    typical, bias = given.pop(TYPICAL, None), given.get("bias", np.zeros(0))
    wanted = shapes_of_arrays(len(bias) if bias.ndim == 1 else 0)
    is_whole = bias.ndim == 1 and len(bias) > 0 and len(bias) % LANES == 0
    if not is_whole or {name: each.shape for name, each in given.items()} != wanted:
        raise InputError(
            "the weights are not those of this net", where=weights.name,
            hint=f"it has {NUM_FEATURES} features; train it again with this release",
        )  # fmt: skip
    arrays = {name: net_array(weights, name, shape, np.float64) for name, shape in wanted.items()}
    text = described(arrays)
    if typical is not None:
        arrays[TYPICAL] = _checked(typical, weights.name)
    return replace(mlp_policy(weights.name, arrays), text=text)


def _checked(typical: npt.NDArray[Any], name: str) -> Array:
    """Refuses a typical demand of no pods, or of pods that cannot be."""
    is_table = typical.ndim == 2 and typical.shape[1:] == (5,) and typical.dtype.kind in "iu"
    if not is_table or len(typical) == 0 or typical.min() < 0 or typical[:, 4].sum() == 0:
        raise InputError("the typical demand is not a list of pods", where=name)
    if typical[:, 3].max() > GPU_MILLI or typical.max() >= 2**31:
        raise InputError("a pod of the typical demand is too large", where=name)
    return typical.astype(np.float64)


def described(arrays: Mapping[str, Array]) -> str:
    """Describes a net in words and numbers: what each feature adds, those first that add most."""
    through = arrays["hidden"] * arrays["out"]
    strength = np.abs(arrays["linear"]) + np.linalg.norm(through, axis=1)
    digest = hashlib.sha256(b"".join(arrays[name].tobytes() for name in sorted(arrays)))
    lines = [
        f"{sum(each.size for each in arrays.values())} weights ({digest.hexdigest()[:16]}): "
        f"{NUM_FEATURES} features, {len(arrays['bias'])} hidden units and a direct path",
        "",
        f"{'feature':28}{'direct':>8}{'hidden':>8}{'all':>8}",
    ]
    for at in np.argsort(-strength, kind="stable"):
        numbers = arrays["linear"][at], np.linalg.norm(through[at]), strength[at]
        lines.append(f"{FEATURES[at]:28}{numbers[0]:8.2f}{numbers[1]:8.2f}{numbers[2]:8.2f}")
    return "\n".join(lines) + "\n"
