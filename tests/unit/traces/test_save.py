import pytest

from podium.errors import MissingError, UsageError
from podium.model.cluster import Cluster, NodeSpec
from podium.model.workload import PodSpec, Workload
from podium.traces import Trace, load_trace, save_trace
from podium.traces.save import losses
from support.traces import assert_same_cluster, assert_same_workload, small_trace


def test_a_csv_file_holds_nodes_or_pods(tmp_path):
    trace = small_trace()
    files = save_trace(trace, tmp_path / "t.csv")
    assert [path.name for path in files] == ["t-nodes.csv", "t-pods.csv"]
    assert_same_cluster(load_trace(str(files[0])).cluster, trace.cluster)
    assert_same_workload(load_trace(str(files[1])).workload, trace.workload)


def test_one_part_alone_keeps_the_name(tmp_path):
    trace = small_trace()
    path = tmp_path / "t.CSV.gz"
    assert save_trace(Trace("t", trace.cluster, None), path) == [path]
    assert_same_cluster(load_trace(str(path)).cluster, trace.cluster)
    assert [p.name for p in save_trace(trace, path)] == ["t-nodes.CSV.gz", "t-pods.CSV.gz"]


def test_manifests_hold_both(tmp_path):
    assert save_trace(small_trace(), tmp_path / "t.yml") == [tmp_path / "t.yml"]


@pytest.mark.parametrize("name", ["t.txt", "t", "t.parquet"])
def test_other_formats_are_refused(tmp_path, name):
    with pytest.raises(UsageError, match="are not written"):
        save_trace(small_trace(), tmp_path / name)


def test_a_list_that_has_no_room_leaves_no_half_of_a_trace(tmp_path):
    (tmp_path / "t-pods.csv").symlink_to("/dev/full")
    with pytest.raises(MissingError, match="no space left"):
        save_trace(small_trace(), tmp_path / "t.csv")
    assert [path.name for path in tmp_path.iterdir()] == ["t-pods.csv"]


def shared_trace():
    nodes = [
        NodeSpec("sliced", 64000, 262144, 2, "T4", gpu_memory_mib=16384, gpu_replicas=4),
        NodeSpec("whole", 64000, 262144, 1, "V100", gpu_memory_mib=32768),
    ]
    pods = [
        PodSpec("part", 1000, 1024, 1, 1, gpu_memory_mib=4096),
        PodSpec("large", 1000, 1024, 1, 1, gpu_memory_mib=65536),
        PodSpec("device", 1000, 1024, 1, 1000, "T4"),
        PodSpec("gpu", 1000, 1024, 1, 1000, "V100"),
    ]
    return Trace("t", Cluster.of(nodes), Workload.of(pods))


def test_a_csv_file_holds_the_parts_of_gpus_that_requests_come_to(tmp_path):
    trace = shared_trace()
    _, pods = save_trace(trace, tmp_path / "t.csv")
    asked = [(spec.gpu_count, spec.gpu_milli) for spec in load_trace(str(pods)).workload.specs()]
    assert asked == [(1, 250), (1, 1000), (1, 250), (1, 1000)]
    assert losses(trace, tmp_path / "t.csv") == [
        "CSV has no place for several devices on a GPU: 1 node",
        "CSV has no place for GPU memory in MiB, written as the part that it is of most GPUs: "
        "2 pods",
    ]


def test_gpu_memory_without_gpus_is_not_written_as_csv(tmp_path):
    trace = Trace("t", None, shared_trace().workload)
    with pytest.raises(UsageError, match="GPU memory in MiB: 2 pods"):
        save_trace(trace, tmp_path / "t.csv")
    assert not list(tmp_path.iterdir())
