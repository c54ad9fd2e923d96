"""Reads states that earlier versions wrote.

In format 1 runs beside others were summed apart, without their features and the squares of their
times, and a missing feature counted as zero.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from podium.online.cell import Features, Sums, kind_of
from podium.online.failures import Failures
from podium.online.parameters import Parameters
from podium.online.runtime import RuntimeModel

FORMAT = 2
"""Of the exported state."""


def migrated(data: Mapping[str, Any], parameters: Parameters) -> Mapping[str, Any]:
    """Returns a state in the current format."""
    if data["format"] == FORMAT:
        return data
    model, failures = RuntimeModel(parameters), Failures()
    runtime = data["runtime"]
    for job_type, gpu_type in _order(runtime):
        cell = runtime["cells"][job_type][gpu_type]
        _put_alone(model, job_type, gpu_type, cell)
        failures.put(job_type, gpu_type, int(cell["observations"]))
    for job_type, co_runs in data["interference"].items():
        usual = _usual_features(runtime["cells"].get(job_type, {}), len(parameters.features))
        for gpu_type, runs in co_runs["runs"].items():
            made = _beside(co_runs["neighbours"], runs, usual, parameters.prior.noise)
            kind = kind_of(float(made.mean[0]), usual, is_beside=True)
            model.put(job_type, gpu_type, kind, made, co_runs["neighbours"])
            failures.put(job_type, gpu_type, made.observations)
    return {
        **data,
        "format": FORMAT,
        "runtime": model.as_object(),
        "failures": failures.as_object(),
        "floor": {},
    }


def _order(runtime: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Lists the pairs of a state; a state without an order is taken as it stands."""
    cells, gpus = runtime["cells"], runtime["gpu_types"]
    if "order" not in runtime:
        return [(job, gpu) for job, known in cells.items() for gpu in known]
    jobs = list(cells)
    return [(jobs[job], gpus[gpu]) for job, gpu in runtime["order"]]


def _put_alone(model: RuntimeModel, job_type: str, gpu_type: str, cell: Mapping[str, Any]) -> None:
    """Adds a cell; a feature that only some of its runs gave is dropped, for it was mixed up."""
    weight, given = float(cell["weight"]), list(cell["given"])
    sums = Sums.from_object([cell["observations"], weight, cell["mean"], cell["scatter"]])
    is_given = [each >= weight * (1.0 - 1e-9) > 0.0 for each in given]
    for at, is_kept in enumerate(is_given):
        if not is_kept:
            sums.mean[1 + at] = 0.0
            sums.scatter[1 + at, :] = sums.scatter[:, 1 + at] = 0.0
    features = tuple(0.0 if is_kept else None for is_kept in is_given)
    model.put(job_type, gpu_type, kind_of(float(sums.mean[0]), features, is_beside=False), sums)


def _usual_features(cells: Mapping[str, Any], count: int) -> Features:
    """Returns the mean features of a job type's runs alone, of those that all of them gave."""
    weight = sum(float(cell["weight"]) for cell in cells.values())
    found: list[float | None] = []
    for at in range(count):
        given = sum(float(cell["given"][at]) for cell in cells.values())
        total = sum(float(cell["weight"]) * float(cell["mean"][1 + at]) for cell in cells.values())
        found.append(total / weight if given >= weight * (1.0 - 1e-9) > 0.0 else None)
    return tuple(found)


def _beside(neighbours: list[str], runs: Mapping[str, Any], usual: Features, noise: float) -> Sums:
    """Reads runs beside others; features are taken to be usual, and times to vary as expected."""
    weight, own = float(runs["weight"]), 1 + len(usual)
    mean = np.zeros(own + len(neighbours))
    scatter = np.zeros((len(mean), len(mean)))
    if weight > 0.0:
        mean[0] = float(runs["total"]) / weight
        mean[1:own] = [each or 0.0 for each in usual]
        mean[own:] = np.array(runs["counts"]) / weight
        inner = np.array(runs["pairs"]) - weight * np.outer(mean[own:], mean[own:])
        cross = np.array(runs["products"]) - weight * mean[own:] * mean[0]
        scatter[own:, own:] = inner
        scatter[own:, 0] = scatter[0, own:] = cross
        explained = float(cross @ np.linalg.pinv(inner) @ cross)
        scatter[0, 0] = explained + max(weight - 1.0, 0.0) * noise**2
    return Sums(round(weight), weight, mean, scatter)
