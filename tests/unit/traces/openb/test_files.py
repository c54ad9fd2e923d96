import hashlib

import pytest

from podium.traces.openb.files import find_file, found_traces, openb_index, summary
from support.traces import originals, write_originals


def test_the_index_lists_two_node_lists_and_24_pod_lists():
    files = openb_index().files
    assert [file.trace for file in files if file.is_nodes] == ["all_node", "gpu_node"]
    assert sum(not file.is_nodes for file in files) == 24
    assert {"default", "cpu050", "gpushare100", "gpuspec33"} <= {file.trace for file in files}


def test_files_are_found_plain_or_compressed(tmp_path):
    write_originals(tmp_path)
    (tmp_path / "openb_pod_list_mine.csv.gz").touch()
    assert find_file(tmp_path, "default").name == "openb_pod_list_default.csv"
    assert find_file(tmp_path, "gpu_node").name == "openb_node_list_gpu_node.csv"
    assert find_file(tmp_path, "mine").name == "openb_pod_list_mine.csv.gz"
    assert find_file(tmp_path, "cpu050") is None
    assert find_file(None, "default") is None
    assert found_traces(tmp_path) == ["all_node", "default", "gpu_node", "mine", "multigpu20"]


def test_a_name_cannot_leave_the_folder(tmp_path):
    assert find_file(tmp_path, "../default") is None


def test_a_folder_that_is_not_there_holds_nothing(tmp_path):
    assert found_traces(tmp_path / "none") == []
    assert found_traces(None) == []


@pytest.mark.parametrize(
    ("trace", "text"),
    [
        ("default", "the original pods"),
        ("cpu050", "CPU-only pods are 5.0 % of all"),
        ("cpu0", "CPU-only pods are 0.0 % of all"),
        ("gpushare40", "pods with a share of a GPU make up 40 % of GPU demand"),
        ("multigpu20", "pods with several GPUs make up 20 % of GPU demand; no times"),
        ("gpuspec05", "about 5 % of GPU pods name the GPU models they accept"),
        ("16_node", "16 of the GPU nodes, 64 GPUs"),
        ("mine", "a file of your own"),
    ],
)
def test_a_summary_says_what_a_trace_holds(trace, text):
    assert summary(trace) == text


@pytest.mark.openb
def test_sizes_and_checksums_are_those_of_the_original_files():
    for file in openb_index().files:
        data = (originals() / file.file_name).read_bytes()
        assert len(data) == file.size_bytes
        assert hashlib.sha256(data).hexdigest() == file.sha256
        assert data.count(b"\n") - 1 == file.rows
