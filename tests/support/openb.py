"""Reads the original OpenB files from the folder named by PODIUM_TRACES, for golden tests."""

import os
from pathlib import Path

import pytest

from podium.traces.catalogue import LoadOptions, load_trace


def openb_trace(name, file_name):
    folder = os.environ.get("PODIUM_TRACES")
    if not folder:
        pytest.skip("PODIUM_TRACES does not name a folder with the original OpenB files")
    if not (Path(folder) / file_name).exists():
        pytest.skip(f"{file_name} is not in the folder named by PODIUM_TRACES")
    return load_trace(f"openb:{name}", LoadOptions(folder=Path(folder)))


def openb_cluster(name):
    return openb_trace(name, f"openb_node_list_{name}.csv").cluster


def openb_workload(name):
    return openb_trace(name, f"openb_pod_list_{name}.csv").workload
