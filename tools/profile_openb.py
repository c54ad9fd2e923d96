"""Writes the embedded statistical profile of OpenB from the original CSV files.

    python tools/profile_openb.py FOLDER [TARGET]

FOLDER holds `openb_node_list_gpu_node.csv`, `openb_node_list_16_node.csv`,
`openb_pod_list_default.csv` and `openb_pod_list_gpuspec33.csv`. The same files give the same bytes.
"""

from __future__ import annotations

import csv
import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

TARGET = Path(__file__).parent.parent / "src/podium/traces/data/openb.json"
TAIL = 100
"""Largest values that are kept one by one: they carry most of the mean."""

Row = dict[str, str]


def main(folder: Path, target: Path = TARGET) -> None:
    """Writes the profile, beside the code that reads it unless told otherwise."""
    nodes = read(folder / "openb_node_list_gpu_node.csv")
    small = read(folder / "openb_node_list_16_node.csv")
    pods = read(folder / "openb_pod_list_default.csv")
    bound = read(folder / "openb_pod_list_gpuspec33.csv")
    node_types = Counter(node_type(row) for row in nodes)
    ordered = sorted(node_types, key=lambda kind: (-node_types[kind], kind))
    profile = {
        "source": "alibaba/clusterdata cluster-trace-gpu-v2023, "
        "openb_node_list_gpu_node.csv, openb_pod_list_default.csv and, for GPU models, "
        "openb_pod_list_gpuspec33.csv",
        "node_types": {
            "columns": ["gpu_model", "gpu_count", "cpu_milli", "memory_mib", "nodes"],
            "rows": [[*kind, node_types[kind]] for kind in ordered],
        },
        "sixteen_nodes": {
            "columns": ["name", "node_type"],
            "rows": [[row["sn"], ordered.index(node_type(row))] for row in small],
        },
        "pod_shapes": {
            "columns": ["cpu_milli", "memory_mib", "gpu_count", "gpu_milli", "pods"],
            "rows": shapes(pods),
        },
        "accepted_models": {
            "columns": ["gpu_count", "is_share", "gpu_models", "pods"],
            "rows": accepted(bound),
        },
        "inter_arrival_s": quantiles(gaps(column(pods, "creation_time"))),
        "duration_s": quantiles(column(pods, "deletion_time") - column(pods, "creation_time")),
    }
    target.write_text(compact(profile), encoding="utf-8")


def read(path: Path) -> list[Row]:
    """Reads the rows of a CSV file."""
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def column(rows: list[Row], name: str) -> npt.NDArray[np.int64]:
    """Gives a column of whole numbers."""
    return np.array([int(row[name]) for row in rows], np.int64)


def node_type(row: Row) -> tuple[str, int, int, int]:
    """Gives what makes two nodes alike."""
    return row["model"], int(row["gpu"]), int(row["cpu_milli"]), int(row["memory_mib"])


def shapes(pods: list[Row]) -> list[list[int]]:
    """Counts the distinct requests, the commonest first."""
    names = ("cpu_milli", "memory_mib", "num_gpu", "gpu_milli")
    counts = Counter(tuple(int(row[name]) for name in names) for row in pods)
    ordered = sorted(counts, key=lambda shape: (-counts[shape], shape))
    return [[*shape, counts[shape]] for shape in ordered]


def accepted(pods: list[Row]) -> list[list[Any]]:
    """Counts the GPU models that pods of each class accept; an empty text is any model."""
    with_gpu = [row for row in pods if int(row["num_gpu"])]
    counts = Counter(
        (int(row["num_gpu"]), int(row["gpu_milli"]) < 1000, models(row["gpu_spec"]))
        for row in with_gpu
    )
    return [
        [*kind, counts[kind]]
        for kind in sorted(counts, key=lambda kind: (*kind[:2], -counts[kind], kind))
    ]


def models(written: str) -> str:
    """Names each model once."""
    return "|".join(sorted({each for each in written.split("|") if each}))


def gaps(times: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Gives the time from each arrival to the next."""
    ranked = np.sort(times)
    return ranked[1:] - ranked[:-1]


def quantiles(values: npt.NDArray[np.int64]) -> dict[str, Any]:
    """Gives the percentiles, and every one of the largest values."""
    ranked = np.sort(values)
    last = len(ranked) - 1
    ranks = {round(last * percent / 100) for percent in range(101)}
    ranks |= set(range(last - TAIL, last + 1))
    kept = sorted(ranks)
    return {"last_rank": last, "ranks": kept, "values": ranked[kept].tolist()}


def compact(profile: dict[str, Any]) -> str:
    """Writes JSON with one row a line, so that changes can be read."""
    parts = [f"{json.dumps(name)}: {_part(part)}" for name, part in profile.items()]
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _part(part: Any) -> str:
    if not isinstance(part, dict):
        return json.dumps(part)
    members = [f" {json.dumps(name)}: {_rows(value)}" for name, value in part.items()]
    return "{\n" + ",\n".join(members) + "\n}"


def _rows(value: Any) -> str:
    if not isinstance(value, list) or not isinstance(value[0], list):
        return json.dumps(value)
    return "[\n" + ",\n".join(f"  {json.dumps(row)}" for row in value) + "\n ]"


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit("usage: python tools/profile_openb.py FOLDER [TARGET]")
    main(*map(Path, sys.argv[1:]))
