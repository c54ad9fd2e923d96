"""Compares clusters and workloads, and builds small ones."""

import os
from pathlib import Path

import numpy as np
import pytest

from podium.model import Cluster, NodeSpec, PodSpec, Workload
from podium.traces import Trace


def assert_same_cluster(first, second):
    assert first.nodes.dtype == second.nodes.dtype
    assert np.array_equal(first.nodes, second.nodes)
    assert first.names == second.names
    assert first.gpu_models == second.gpu_models
    assert first.racks == second.racks
    assert [dict(labels) for labels in first.labels] == [dict(labels) for labels in second.labels]


def assert_same_workload(first, second):
    assert np.array_equal(first.pods, second.pods)
    assert first.names == second.names
    assert first.gpu_specs == second.gpu_specs
    assert first.gpu_models == second.gpu_models
    assert first.gangs == second.gangs
    assert first.job_types == second.job_types
    assert first.exits == second.exits
    assert_same_times(first.arrival_s, second.arrival_s)
    assert_same_times(first.duration_s, second.duration_s)


def assert_same_times(first, second):
    assert (first is None) == (second is None)
    assert first is None or np.array_equal(first, second)


def assert_same_trace(first, second):
    assert (first.cluster is None) == (second.cluster is None)
    assert (first.workload is None) == (second.workload is None)
    if first.cluster is not None:
        assert_same_cluster(first.cluster, second.cluster)
    if first.workload is not None:
        assert_same_workload(first.workload, second.workload)


def small_nodes():
    """Three nodes that differ in everything; labels say what the fields say."""
    return [
        NodeSpec("a", 96000, 393216, 8, "G2", "rack-0", {"rack": "rack-0", "zone": "z"}),
        NodeSpec("b", 64000, 262144, 2, "P100", "rack-1", {"rack": "rack-1"}),
        NodeSpec("c", 32000, 131072),
    ]


def small_pods():
    return [
        PodSpec("p0", 4000, 8192, 1, 500, "", 0.0, 100.0),
        PodSpec("p1", 8000, 0, 2, 1000, "G2|P100|P100", 5.0, 60.0, 7, "g", "train"),
        PodSpec("p2", 1000, 100, arrival_s=9.0, duration_s=1.0),
    ]


def small_trace():
    return Trace("small", Cluster.of(small_nodes()), Workload.of(small_pods()))


def originals():
    """Finds the folder with the original files, or skips the test."""
    folder = os.environ.get("PODIUM_TRACES")
    if not folder:
        pytest.skip("PODIUM_TRACES does not name a folder with the original OpenB files")
    return Path(folder)


def write_originals(folder):
    """Makes a folder that looks like the original one, with very few rows."""
    nodes = "sn,cpu_milli,memory_mib,gpu,model\nn0,96000,393216,8,G2\nn1,104000,524288,2,T4\n"
    pods = (
        "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,"
        "creation_time,deletion_time,scheduled_time\n"
        "p0,12000,16384,1,1000,,LS,Running,0,60,1\n"
        "p1,6000,12288,1,460,T4|G2,BE,Pending,10,70,\n"
    )
    short = "name,cpu_milli,memory_mib,num_gpu,gpu_milli\np0,12000,16384,8,1000\n"
    (folder / "openb_node_list_gpu_node.csv").write_text(nodes)
    (folder / "openb_node_list_all_node.csv").write_text(nodes + "n2,64000,262144,0,\n")
    (folder / "openb_pod_list_default.csv").write_text(pods)
    (folder / "openb_pod_list_multigpu20.csv").write_text(short)
    return folder
