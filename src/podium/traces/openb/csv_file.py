"""Reads node and pod lists in the CSV format of OpenB, told apart by their header."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from podium.errors import InputError
from podium.files.text_file import reading
from podium.model.cluster import Cluster, NodeSpec, node_problem
from podium.model.records import GPU_MILLI
from podium.model.workload import PodSpec, Workload, pod_problem
from podium.traces.fields import FieldError
from podium.traces.notes import exit_notes, time_notes
from podium.traces.openb.csv_table import LONGEST_ROW, Row, Table
from podium.traces.rejects import Rejects
from podium.traces.trace import Trace

NODE_COLUMNS = ("sn", "cpu_milli", "memory_mib", "gpu")
POD_COLUMNS = ("name", "cpu_milli", "memory_mib", "num_gpu")
"""Columns that a list must have."""

_NODE_OPTIONAL = frozenset({"model", "rack", "labels"})
_POD_OPTIONAL = frozenset(
    {"gpu_milli", "gpu_spec", "creation_time", "deletion_time", "duration_s", "priority", "gang",
     "job_type", "exit", "qos", "pod_phase", "scheduled_time"}
)  # fmt: skip
_NODE_COLUMN = {"gpu_count": "gpu", "gpu_model": "model", "name": "sn"}
_POD_COLUMN = {"gpu_count": "num_gpu"}
_HINT = f"a node list has {', '.join(NODE_COLUMNS)}; a pod list has {', '.join(POD_COLUMNS)}"


def read_csv(path: Path, rejects: Rejects) -> Trace:
    """Reads a node list as a cluster, or a pod list as a workload."""
    with reading(path, longest_line=LONGEST_ROW) as stream:
        table = Table.opened(stream, path, _HINT)
        is_nodes = "sn" in table.columns
        required = NODE_COLUMNS if is_nodes else POD_COLUMNS
        missing = [column for column in required if column not in table.columns]
        if missing:
            message = f"the header lacks {', '.join(missing)}"
            raise InputError.at(path, message, line=1, hint=_HINT)
        return _nodes(table, rejects) if is_nodes else _pods(table, rejects)


def _nodes(table: Table, rejects: Rejects) -> Trace:
    specs: dict[str, NodeSpec] = {}
    for line, row in table.rows(rejects):
        try:
            spec = _node(row)
            _refuse_twin(spec, specs)
        except FieldError as error:
            table.reject(line, error, rejects)
        else:
            specs[spec.name] = spec
    if not specs:
        raise InputError.at(table.path, "the list holds no nodes", hint="give at least one row")
    notes = [*rejects.notes(), *_strangers(table, NODE_COLUMNS, _NODE_OPTIONAL)]
    name = table.path.name
    return Trace(name, Cluster.of(specs.values(), name=name), None, notes=tuple(notes))


def _pods(table: Table, rejects: Rejects) -> Trace:
    specs: list[PodSpec] = []
    for line, row in table.rows(rejects):
        try:
            specs.append(_pod(row))
        except FieldError as error:
            table.reject(line, error, rejects)
    if not specs:
        raise InputError.at(table.path, "the list holds no pods", hint="give at least one row")
    strangers = _strangers(table, POD_COLUMNS, _POD_OPTIONAL)
    notes = [*rejects.notes(), *strangers, *time_notes(specs), *exit_notes(specs)]
    name = table.path.name
    return Trace(name, None, Workload.of(specs, name=name), notes=tuple(notes))


def _node(row: Row) -> NodeSpec:
    gpu_count = row.amount("gpu")
    spec = NodeSpec(
        name=row.text("sn"),
        cpu_milli=row.amount("cpu_milli"),
        memory_mib=row.amount("memory_mib"),
        gpu_count=gpu_count,
        gpu_model=row.text("model") if gpu_count else "",
        rack=row.text("rack"),
        labels=_labels(row.text("labels")),
    )
    _raise(node_problem(spec), _NODE_COLUMN)
    return spec


def _pod(row: Row) -> PodSpec:
    gpu_count = row.amount("num_gpu")
    arrival_s = row.time("creation_time")
    spec = PodSpec(
        name=row.text("name"),
        cpu_milli=row.amount("cpu_milli"),
        memory_mib=row.amount("memory_mib"),
        gpu_count=gpu_count,
        gpu_milli=row.amount("gpu_milli", GPU_MILLI if gpu_count else 0),
        gpu_spec=row.text("gpu_spec"),
        arrival_s=arrival_s,
        duration_s=_duration(row, arrival_s),
        priority=row.whole("priority", 0),
        gang=row.text("gang"),
        job_type=row.text("job_type"),
        exit=row.text("exit"),
    )
    if not spec.name:
        raise FieldError("name", "the pod has no name")
    _raise(pod_problem(spec), _POD_COLUMN)
    return spec


def _duration(row: Row, arrival_s: float | None) -> float | None:
    given = row.time("duration_s")
    deleted_s = row.time("deletion_time")
    if given is not None or deleted_s is None or arrival_s is None:
        return given
    if deleted_s < arrival_s:
        raise FieldError(
            "deletion_time", f"{deleted_s:g} is before the creation_time {arrival_s:g}"
        )
    return deleted_s - arrival_s


def _labels(text: str) -> dict[str, str]:
    try:
        labels = json.loads(text) if text else {}
    except (ValueError, RecursionError):
        labels = None
    if not isinstance(labels, dict) or not all(isinstance(v, str) for v in labels.values()):
        raise FieldError("labels", 'a JSON object of texts such as {"zone": "a"} is expected')
    return labels


def _raise(problem: str, column_of_field: dict[str, str]) -> None:
    if problem:
        field = problem.split(" ", 1)[0]
        raise FieldError(column_of_field.get(field, field), problem)


def _refuse_twin(spec: NodeSpec, specs: Mapping[str, NodeSpec]) -> None:
    if spec.name in specs:
        raise FieldError("sn", f'another node is named "{spec.name}"')


def _strangers(table: Table, required: tuple[str, ...], optional: frozenset[str]) -> list[str]:
    unknown = [c for c in table.columns if c not in optional and c not in required]
    return [f"column {column} is not used" for column in unknown]
