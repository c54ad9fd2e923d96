import gzip
import json

import numpy as np
import pytest
import yaml

from podium.model import Cluster, NodeSpec, PodSpec, Workload
from podium.traces import LoadOptions, Trace, load_trace
from podium.traces.kubernetes.manifest import read_manifests
from podium.traces.kubernetes.writer import write_manifests
from podium.traces.rejects import Rejects
from support.traces import assert_same_trace, originals, small_trace


def written(trace, path):
    write_manifests(trace, path)
    return read_manifests(path, Rejects())


def pods_of(path):
    return [item for item in yaml.safe_load_all(path.read_text()) if item["kind"] == "Pod"]


def test_a_node_is_written_as_the_hkust_simulator_reads_it(tmp_path):
    cluster = Cluster.of([NodeSpec("n", 64000, 262144, 2, "P100")])
    write_manifests(Trace("t", cluster, None), tmp_path / "m.yaml")
    resources = {
        "cpu": "64000m", "memory": "262144Mi", "pods": "1001",
        "alibabacloud.com/gpu-count": "2", "alibabacloud.com/gpu-milli": "2000",
    }  # fmt: skip
    assert yaml.safe_load((tmp_path / "m.yaml").read_text()) == {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "n", "labels": {"alibabacloud.com/gpu-card-model": "P100"}},
        "status": {"allocatable": resources, "capacity": resources},
    }


def test_a_pod_is_written_as_the_hkust_simulator_reads_it(tmp_path):
    pod = PodSpec("p", 6000, 1024, 1, 460, "T4|G2", arrival_s=0.0, duration_s=90.0)
    write_manifests(Trace("t", None, Workload.of([pod])), tmp_path / "m.yaml")
    (item,) = pods_of(tmp_path / "m.yaml")
    assert item["metadata"]["annotations"] == {
        "alibabacloud.com/gpu-count": "1",
        "alibabacloud.com/gpu-milli": "460",
        "alibabacloud.com/gpu-card-model": "T4|G2",
        "alibabacloud.com/creation-time": "1970-01-01T00:00:00Z",
        "alibabacloud.com/deletion-time": "1970-01-01T00:01:30Z",
    }
    resources = item["spec"]["containers"][0]["resources"]
    assert resources["requests"] == resources["limits"] == {"cpu": "6000m", "memory": "1024Mi"}


@pytest.mark.parametrize("name", ["m.yaml", "m.json", "m.yaml.gz", "m.json.gz"])
def test_reading_gives_back_what_was_written(tmp_path, name):
    trace = written(small_trace(), tmp_path / name)
    labels = [dict(found) for found in trace.cluster.labels]
    assert labels[0] == {"rack": "rack-0", "zone": "z", "alibabacloud.com/gpu-card-model": "G2"}
    again = written(trace, tmp_path / name)
    assert_same_trace(again, trace)
    assert trace.notes == ()


def test_the_same_trace_gives_the_same_bytes(tmp_path):
    for name in ("a.yaml.gz", "b.yaml.gz"):
        write_manifests(small_trace(), tmp_path / name)
    assert (tmp_path / "a.yaml.gz").read_bytes() == (tmp_path / "b.yaml.gz").read_bytes()
    assert gzip.decompress((tmp_path / "a.yaml.gz").read_bytes()).startswith(b"---\n")


def test_json_is_one_list(tmp_path):
    write_manifests(small_trace(), tmp_path / "m.json")
    value = json.loads((tmp_path / "m.json").read_text())
    assert value["kind"] == "List"
    assert len(value["items"]) == 6


@pytest.mark.parametrize(
    ("arrival_s", "duration_s"),
    [(5.0, 1.0), (0.0, 0.1), (0.0, 1e300), (1e12, 5.0), (0.0, None), (None, 3.5), (1 / 3, 2 / 3)],
)
def test_times_that_dates_cannot_hold_come_back_exactly(tmp_path, arrival_s, duration_s):
    pod = PodSpec("p", 1, 2, arrival_s=arrival_s, duration_s=duration_s)
    trace = Trace("t", None, Workload.of([pod]))
    assert_same_trace(written(trace, tmp_path / "m.yaml"), trace)


@pytest.mark.openb
def test_the_original_trace_survives_a_round_trip(tmp_path):
    trace = load_trace("openb:default", LoadOptions(folder=originals()))
    again = written(trace, tmp_path / "m.json.gz")
    assert np.array_equal(again.cluster.nodes, trace.cluster.nodes)
    assert again.workload.specs() == trace.workload.specs()


def test_a_pod_that_is_being_deleted_is_read_back_as_one(tmp_path):
    pods = [
        PodSpec("old", 1000, 64, node="n", arrival_s=0.0, duration_s=30.0, is_terminating=True),
        PodSpec("new", 1000, 64, arrival_s=0.0, duration_s=30.0),
    ]
    trace = Trace("t", Cluster.of([NodeSpec("n", 64000, 262144)]), Workload.of(pods))
    back = written(trace, tmp_path / "m.yaml").workload
    assert (back.is_terminating, back.duration_s.tolist()) == ((True, False), [30.0, 30.0])
