"""Reads what the cluster file of the hkust scheduler simulator names: manifests, an experiment."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from podium.errors import InputError
from podium.model.cluster import Cluster
from podium.model.workload import Workload
from podium.traces.fields import FieldError
from podium.traces.kubernetes.documents import Document
from podium.traces.kubernetes.manifest import read_manifests
from podium.traces.kubernetes.pile import AS_IT_IS, Reading
from podium.traces.rejects import Rejects
from podium.traces.simon.config import SimonConfig, parse_simon
from podium.traces.trace import Experiment, Trace

API_VERSION = "simon/v1alpha1"

_SHUFFLED = "spec.customConfig.shufflePod is false, but pods drawn up to a ratio are shuffled here"
_NOT_SHUFFLED = (
    "spec.customConfig.shufflePod is not honoured without a ratio: pods keep their order"
)
_OWN_ORDER = "the seed draws Podium's own order of pods, not that of the Go program"


def is_simon_config(document: Document) -> bool:
    """Tells whether an object is such a Config."""
    return document.kind == "Config" and document.value.get("apiVersion") == API_VERSION


def read_simon(
    document: Document, path: Path, rejects: Rejects, reading: Reading = AS_IT_IS
) -> Trace:
    """Reads the manifests that a Config names, and the experiment that it describes."""
    try:
        config = parse_simon(document.value)
    except FieldError as error:
        column = error.field
        raise InputError.at(path, str(error), line=document.line, column=column) from error
    source = _find(config.folder, path, "spec.cluster.customConfig")
    trace = read_manifests(source, rejects, reading)
    workload, notes = trace.workload, [*config.notes, *trace.notes]
    if config.more_pods:
        more = _find(config.more_pods, path, "spec.customConfig.newWorkloadConfig")
        added = read_manifests(more, Rejects(rejects.is_skipping), reading)
        workload = _joined(workload, added.workload, more)
        count = 0 if added.workload is None else len(added.workload)
        notes += [f"newWorkloadConfig: its {count} pods follow those of the cluster", *added.notes]
    if workload is not None:
        workload = replace(workload, typical=config.typical, name=path.name)
    experiment = _experiment(config, trace.cluster, workload)
    if experiment.is_shuffled == (experiment.ratio is None):
        notes.append(_SHUFFLED if experiment.ratio is not None else _NOT_SHUFFLED)
    if experiment.seed is not None and (experiment.is_shuffled or experiment.ratio is not None):
        notes.append(_OWN_ORDER)
    of_nodes = trace.of_nodes
    return Trace(path.name, trace.cluster, workload, experiment, tuple(notes), of_nodes=of_nodes)


def _experiment(
    config: SimonConfig, cluster: Cluster | None, workload: Workload | None
) -> Experiment:
    tuning, inflation = config.tuning, config.inflation
    if tuning.ratio > 0:
        return Experiment(tuning.ratio, tuning.seed, config.is_shuffled)
    seed = inflation.seed if tuning.seed is None else tuning.seed
    if inflation.ratio <= 1 or cluster is None or workload is None or not cluster.gpu_total:
        return Experiment(None, seed, config.is_shuffled)
    # The simulator clones pods until there are so many times as many, or until their demand
    # reaches the capacity of the cluster.
    demand = workload.gpu_milli_total / cluster.gpu_milli_total
    return Experiment(max(demand, min(1.0, inflation.ratio * demand)), seed, config.is_shuffled)


def _find(written: str, config: Path, field: str) -> Path:
    for folder in (config.parent, Path()):
        found = folder / written
        if found.exists():
            return found
    raise InputError.at(
        config,
        f'there is no file or folder "{written}"',
        column=field,
        hint=f"paths count from {config.parent} or from the current folder",
    )


def _joined(first: Workload | None, second: Workload | None, source: Path) -> Workload:
    if second is None:
        raise InputError.at(source, "no Pod was found", hint="newWorkloadConfig names more pods")
    if first is None:
        return second
    gangs = (*first.gang_rules, *second.gang_rules)
    return Workload.of([*first.specs(), *second.specs()], name=first.name, gangs=gangs)
