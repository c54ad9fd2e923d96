"""Draws workloads that differ from OpenB's as the traces of the FGD experiment do.

Each family is a recipe over the pod shapes of the embedded profile: other shares of the pods, or of
GPU demand, and GPU models that pods accept. No original file is needed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from podium.errors import UsageError
from podium.model.records import GPU_MILLI
from podium.model.workload import Workload, gpu_demand, model_mask, models_of
from podium.traces.openb.profile import Profile, workload_of

Weights = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Family:
    """Says how a workload differs from that of OpenB; what is not said is as it is there."""

    name: str
    original: str  # the trace of the FGD experiment that it is like
    pods: int  # as many as the original has
    summary: str
    cpu_only: float | None = None  # part of the pods that ask for no GPU
    shared: float | None = None  # part of GPU demand of pods that ask for a part of one GPU
    several: float | None = None  # part of GPU demand of pods that ask for several GPUs
    names_models: bool = False  # a third of the GPU pods name the GPU models that they accept


_ALL = (
    Family(
        "openb-cpu-heavy", "cpu250", 9420,
        "more CPU-only pods: a quarter of all, in place of 13 %", cpu_only=0.25,
    ),
    Family(
        "openb-share-heavy", "gpushare60", 8152,
        "pods with a share of a GPU make up 60 % of GPU demand", shared=0.6,
    ),
    Family(
        "openb-share-only", "gpushare100", 8152,
        "every GPU pod asks for a share of one", shared=1.0,
    ),
    Family(
        "openb-multi-gpu", "multigpu20", 8324,
        "pods with several GPUs make up 20 % of GPU demand", several=0.2,
    ),
    Family(
        "openb-multi-heavy", "multigpu50", 9061,
        "pods with several GPUs make up 50 % of GPU demand", cpu_only=0.12,
        several=0.5,
    ),
    Family(
        "openb-model-bound", "gpuspec33", 8152,
        "a third of the GPU pods name the models they accept", names_models=True,
    ),
)  # fmt: skip
FAMILIES = {family.name: family for family in _ALL}
"""The families beside `openb` itself, by the name of their trace."""


def generate_family(
    profile: Profile, family: Family, count: int, rng: np.random.Generator
) -> Workload:
    """Generates pods of a family, with the arrivals and run times of the profile."""
    if count < 1:
        raise UsageError(f"{count} pods cannot be generated", hint="ask for at least 1")
    order = np.lexsort([profile.pods[name] for name in ("cpu_milli", "gpu_milli", "gpu_count")])
    shapes, weights = profile.pods[order], weights_of(profile, family)[order]
    pods = shapes[rng.permutation(np.repeat(np.arange(len(shapes)), _even(weights, count, rng)))]
    workload = replace(workload_of(profile, pods, rng), name=family.name)
    return _naming_models(profile, workload, rng) if family.names_models else workload


def weights_of(profile: Profile, family: Family) -> Weights:
    """Returns how often each pod shape occurs in a family, relative to the others."""
    weights = profile.pod_counts.astype(np.float64)
    demand = gpu_demand(profile.pods)
    has_gpu = demand > 0
    is_share = has_gpu & (demand < GPU_MILLI)
    for part, chosen in ((family.shared, is_share), (family.several, demand > GPU_MILLI)):
        if part is not None:
            weights = _with_part(weights, demand, chosen, part)
    usual = float(profile.pod_counts[~has_gpu].sum()) / profile.pod_total
    cpu_only = usual if family.cpu_only is None else family.cpu_only
    return _with_part(weights, np.ones_like(demand), ~has_gpu, cpu_only)


def pods_asking(profile: Profile, name: str, gpus: float) -> int:
    """Returns how many pods of a trace, by its name, ask for so many GPUs on average."""
    counts: Weights = profile.pod_counts.astype(np.float64)
    weights = weights_of(profile, FAMILIES[name]) if name in FAMILIES else counts
    asked = float(weights @ gpu_demand(profile.pods)) / float(weights.sum())
    return round(gpus * GPU_MILLI / asked)


def _with_part(
    weights: Weights, amounts: npt.NDArray[np.int64], chosen: npt.NDArray[np.bool_], part: float
) -> Weights:
    """Scales the chosen shapes and the others so that the chosen make up a part of the amounts."""
    total = weights * amounts
    own, rest = float(total[chosen].sum()), float(total[~chosen].sum())
    # What asks for nothing of an amount is on neither side of it.
    others = np.where(amounts > 0, (1 - part) / rest, 1 / (own + rest))
    return np.asarray(weights * np.where(chosen, part / own, others))


def _even(weights: Weights, count: int, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """Draws how often each shape occurs: its expected number, rounded down or up.

    Systematic sampling, so that a small workload has the proportions of a large one.
    """
    ends = np.floor(np.cumsum(weights) * (count / weights.sum()) + rng.random())
    ends[-1] = count
    counts: npt.NDArray[np.int64] = np.diff(ends, prepend=0.0).astype(np.int64)
    return counts


def _naming_models(profile: Profile, workload: Workload, rng: np.random.Generator) -> Workload:
    """Lets pods name the models they accept, as often as pods of their class do."""
    pods: Any = workload.pods.copy()
    specs = np.full(len(pods), "", object)
    is_share = gpu_demand(pods) < GPU_MILLI
    for (gpu_count, of_share), choices in profile.accepted_models.items():
        own = np.flatnonzero((pods["gpu_count"] == gpu_count) & (is_share == of_share))
        weights = np.array([number for _, number in choices], np.float64)
        drawn = np.repeat(np.arange(len(choices)), _even(weights, len(own), rng))
        specs[own] = [choices[index][0] for index in rng.permutation(drawn).tolist()]
    known = tuple(sorted({model for spec in set(specs.tolist()) for model in models_of(spec)}))
    pods["gpu_models"] = [model_mask(spec, known) for spec in specs.tolist()]
    return replace(workload, pods=pods, gpu_specs=tuple(specs.tolist()), gpu_models=known)
