"""Reads the original OpenB files from the folder named by PODIUM_TRACES, for golden tests."""

import csv
import os
from pathlib import Path

import pytest

from podium.model import Cluster, NodeSpec, PodSpec, Workload


def openb_rows(name):
    folder = os.environ.get("PODIUM_TRACES")
    if not folder:
        pytest.skip("PODIUM_TRACES does not name a folder with the original OpenB files")
    path = Path(folder) / name
    if not path.exists():
        pytest.skip(f"{name} is not in the folder named by PODIUM_TRACES")
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def openb_cluster(name):
    rows = openb_rows(f"openb_node_list_{name}.csv")
    return Cluster.of(
        (
            NodeSpec(
                name=row["sn"],
                cpu_milli=int(row["cpu_milli"]),
                memory_mib=int(row["memory_mib"]),
                gpu_count=int(row["gpu"]),
                gpu_model=row["model"],
            )
            for row in rows
        ),
        name=name,
    )


def openb_workload(name):
    rows = openb_rows(f"openb_pod_list_{name}.csv")
    return Workload.of(
        (
            PodSpec(
                name=row["name"],
                cpu_milli=int(row["cpu_milli"]),
                memory_mib=int(row["memory_mib"]),
                gpu_count=int(row["num_gpu"]),
                gpu_milli=int(row["gpu_milli"]),
                gpu_spec=row["gpu_spec"],
                arrival_s=float(row["creation_time"]),
                duration_s=float(row["deletion_time"]) - float(row["creation_time"]),
            )
            for row in rows
        ),
        name=name,
    )
