import pytest

from podium.errors import MissingError, UsageError
from podium.traces import Trace, load_trace, save_trace
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
