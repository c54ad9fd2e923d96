"""The weights of a net as one vector, as training changes them, and as arrays, as they are kept."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from podium.policies.networks.demand import NUM_COUNTS
from podium.policies.networks.mlp import (
    BIN_MILLI,
    DEMAND_TERMS,
    FEATURES,
    NUM_BINS,
    shapes_of_arrays,
)
from podium.traces.openb.profile import openb_profile

Array = npt.NDArray[np.float64]
Arrays = Mapping[str, Array]

SMALL_GPU_MILLI = 200
"""Free parts of a GPU below this count as useless before anything is learned."""

CPUS_PER_GPU = (5.0, 8.0, 12.0)
"""Cores beside a GPU at which it counts as starved before anything is learned."""

FILLED = 3  # the term of a worth that is the part which pods of the demand would fill

_SCALES = {"worth": 0.05, "whole": 0.05, "levels": 0.1, "memory": 0.2, "steps": 0.1, "models": 0.3}
"""How far numbers that say what features mean are moved at a time."""

_PART = 0.15
"""How far the other weights are moved at a time, in parts of their usual size in an array."""

_LEAST = 0.05


def flat(arrays: Arrays) -> Array:
    """Joins arrays into one vector, in the order of their names in the network."""
    names = shapes_of_arrays(len(arrays["bias"]))
    return np.concatenate([np.asarray(arrays[name], np.float64).ravel() for name in names])


def arrays_of(vector: Array, hidden_units: int) -> dict[str, Array]:
    """Parts a vector into the arrays of a net."""
    arrays, at = {}, 0
    for name, shape in shapes_of_arrays(hidden_units).items():
        size = math.prod(shape)
        arrays[name] = vector[at : at + size].reshape(shape).copy()
        at += size
    return arrays


def scales(arrays: Arrays) -> Array:
    """Returns how far each weight is moved at a time, relative to the others."""
    moved = {}
    for name, each in arrays.items():
        usual = max(_LEAST, _PART * math.sqrt(float(np.square(each).mean())))
        moved[name] = np.full(each.shape, _SCALES.get(name, usual))
    return flat(moved)


def first_arrays(hidden_units: int, rng: np.random.Generator) -> dict[str, Array]:
    """Makes a net that has learned nothing: every score is 0, features are as people see them."""
    arrays = {name: np.zeros(shape) for name, shape in shapes_of_arrays(hidden_units).items()}
    arrays["hidden"] = rng.normal(0, 1 / math.sqrt(len(FEATURES)), arrays["hidden"].shape)
    lowest = BIN_MILLI * np.arange(NUM_BINS)
    arrays["worth"][0, DEMAND_TERMS:] = lowest >= SMALL_GPU_MILLI
    arrays["worth"][1, FILLED] = 1.0
    arrays["whole"][:NUM_COUNTS] = np.arange(NUM_COUNTS) / 8
    arrays["levels"][0] = np.log([*CPUS_PER_GPU, *CPUS_PER_GPU])
    arrays["memory"][0] = math.log(16384)
    arrays["steps"][:] = 8.0, 1.0, 0.5, 0.5
    arrays["models"][0] = 1.0
    return arrays


def typical_demand() -> npt.NDArray[np.int64]:
    """Lists the pods that nets are trained for, as a net keeps them for when it has seen few."""
    profile = openb_profile()
    names = ("cpu_milli", "memory_mib", "gpu_count", "gpu_milli")
    columns = [profile.pods[name].astype(np.int64) for name in names]
    return np.stack([*columns, profile.pod_counts.astype(np.int64)], axis=1)
