"""Describes pods and nodes in words, for whoever writes policies for them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from podium.evaluation.cases import Case, TrainingSet, planned
from podium.evaluation.waste import MedianPod, measure_losses
from podium.model import Cluster, Workload
from podium.model.records import ANY_MODEL, GPU_MILLI
from podium.model.workload import gpu_demand
from podium.policies import load
from podium.search.generators.llm.prompt import PromptWriter
from podium.search.generators.llm.templates import Templates
from podium.search.judging.diagnostics import CLASS_WORDS, LOSS_WORDS
from podium.search.judging.fitness import BASELINE
from podium.sim.execution import execute
from podium.sim.metrics import POD_CLASSES, class_of
from podium.sim.plan import Plan

MOST_CASES = 6
"""How many cases are described; of one trace and protocol, the first."""

MOST_KINDS = 10
"""How many kinds of nodes, shapes and models are listed."""

_MIB_A_GIB = 1024


def writer_for(training: TrainingSet, templates: Templates) -> PromptWriter:
    """Builds the writer of prompts for candidates that are judged on a training set."""
    cases = _different(training.cases)
    plans = list(planned(cases, load(BASELINE)))
    rows = list(zip(cases, plans, strict=True))
    workload = "\n\n".join(_described(case, plan) for case, plan in rows)
    losses = "\n".join(filter(None, (_lost(case, plan) for case, plan in rows)))
    return PromptWriter(templates, workload, losses)


def _different(cases: Sequence[Case]) -> list[Case]:
    """Takes one case of each trace and protocol, on a perturbed cluster if there is no other."""
    found: dict[tuple[str, str, str], Case] = {}
    for case in sorted(cases, key=lambda each: each.is_perturbed):
        found.setdefault((case.trace, case.cluster, case.protocol), case)
    return list(found.values())[:MOST_CASES]


def _described(case: Case, plan: Plan) -> str:
    pods, cluster = plan.trace, plan.cluster
    told = [f"{case.title}, {len(pods):,} pods:", *describe_pods(pods, cluster)]
    gpus = cluster.gpu_total
    told += [f"and {len(cluster):,} nodes with {gpus:,} GPUs:", *describe_nodes(cluster)]
    return "\n".join(told)


def describe_pods(workload: Workload, cluster: Cluster) -> Iterator[str]:
    """Describes pods: their classes, CPU and memory for each GPU, shares and GPU models."""
    pods = workload.pods
    demand = gpu_demand(pods)
    classes = class_of(pods)
    yield f"- of the pods: {_by_class(classes, np.ones(len(pods)))}"
    if not demand.any():
        return
    yield f"- of the GPU demand: {_by_class(classes, demand)}"
    with_gpu = pods[demand > 0]
    gpus = gpu_demand(with_gpu) / GPU_MILLI
    cores, gib = with_gpu["cpu_milli"] / 1000 / gpus, with_gpu["memory_mib"] / _MIB_A_GIB / gpus
    yield f"- GPU pods ask for {_spread(cores)} CPU cores and {_spread(gib)} GiB a GPU"
    parts = with_gpu["gpu_milli"][with_gpu["gpu_milli"] < GPU_MILLI]
    if len(parts):
        yield f"- shares of a GPU, in milli: {_most_common(parts.tolist())}"
    yield from _models(with_gpu, cluster)


def describe_nodes(cluster: Cluster) -> Iterator[str]:
    """Describes the kinds of nodes, the most frequent first."""
    counts = Counter(map(_kind, cluster.nodes))
    for (model, gpus, cpu_milli, memory_mib), count in counts.most_common(MOST_KINDS):
        cores, gib = cpu_milli / 1000, memory_mib / _MIB_A_GIB
        if not gpus:
            yield f"- {count:,} x no GPU, {cores:g} cores, {gib:.0f} GiB"
            continue
        name = f"{cluster.gpu_models[model] or 'unnamed'} (node.gpu_model {model})"
        each = f"{cores / gpus:.1f} cores and {gib / gpus:.0f} GiB a GPU"
        yield f"- {count:,} x {gpus} GPUs {name}, {cores:g} cores, {gib:.0f} GiB: {each}"
    if len(counts) > MOST_KINDS:
        rest = sum(count for _, count in counts.most_common()[MOST_KINDS:])
        yield f"- {rest:,} of other kinds"


def _kind(node: Any) -> tuple[int, int, int, int]:
    names = ("gpu_model", "gpu_count", "cpu_milli_total", "memory_mib_total")
    model, gpus, cpu_milli, memory_mib = (int(node[name]) for name in names)
    return model, gpus, cpu_milli, memory_mib


def _by_class(classes: npt.NDArray[np.int64], weights: npt.NDArray[Any]) -> str:
    shares = 100 * np.bincount(classes, weights, len(POD_CLASSES)) / weights.sum()
    rows = zip(POD_CLASSES, shares.tolist(), strict=True)
    return ", ".join(f"{CLASS_WORDS[name]} {share:.1f} %" for name, share in rows if share)


def _spread(values: npt.NDArray[np.float64]) -> str:
    low, middle, high = np.percentile(values, [10, 50, 90])
    return f"{middle:.3g} (a tenth less than {low:.3g}, a tenth more than {high:.3g})"


def _most_common(values: Sequence[int]) -> str:
    counts = Counter(values).most_common(MOST_KINDS)
    return ", ".join(f"{value} ({100 * count / len(values):.0f} %)" for value, count in counts)


def _models(pods: npt.NDArray[Any], cluster: Cluster) -> Iterator[str]:
    masks = pods["gpu_models"]
    bound = masks[masks != ANY_MODEL]
    if not len(bound):
        yield "- every GPU pod accepts any GPU model"
        return
    share = 100 * len(bound) / len(masks)
    named = [
        f"{model} (bit {bit}) {100 * float((bound >> bit & 1).mean()):.0f} %"
        for bit, model in enumerate(cluster.gpu_models)
        if (bound >> bit & 1).any()
    ]
    told = ", ".join(named[:MOST_KINDS]) or "none that is there"
    yield f"- {share:.1f} % of the GPU pods accept only some GPU models; of these, {told}"


def _lost(case: Case, plan: Plan) -> str:
    """Describes where fgd loses GPUs; nothing where another simulator judges."""
    if case.protocol == "funsearch":
        return ""
    result = execute(replace(plan, tier="scan"))
    lost = measure_losses(result, MedianPod.of(plan.trace.pods))
    parts = ", ".join(f"{words} {lost[key]:.1f} %" for key, words in LOSS_WORDS.items())
    placed = [f"{CLASS_WORDS[key]} {lost[key]:.1f} %" for key in POD_CLASSES if key in lost]
    return f"Under fgd on {case.name}: lost {parts} of all GPUs; placed {', '.join(placed)}"
