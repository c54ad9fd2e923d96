import gzip
import json
import os

import pytest

from podium.errors import InputError, MissingError, UnknownName, UsageError
from podium.traces import LoadOptions, list_traces, load_trace, save_trace
from podium.traces.openb.families import FAMILIES
from support.traces import assert_same_cluster, originals, small_trace, write_originals


@pytest.fixture
def options(tmp_path):
    return LoadOptions(folder=write_originals(tmp_path))


def test_the_embedded_trace_has_the_size_of_openb():
    trace = load_trace("openb")
    assert (len(trace.cluster), len(trace.workload)) == (1213, 8152)
    assert trace.name == "openb"
    assert trace.notes == ()


def test_the_embedded_trace_has_any_size():
    trace = load_trace("openb", LoadOptions(seed=1000, nodes=10, pods=20))
    assert (len(trace.cluster), len(trace.workload)) == (10, 20)


def test_more_pods_leave_the_nodes_as_they_are():
    few, many = (load_trace("openb", LoadOptions(seed=1000, nodes=50, pods=n)) for n in (5, 500))
    assert_same_cluster(few.cluster, many.cluster)


def test_sixteen_nodes_take_any_number_of_pods():
    trace = load_trace("openb:16", LoadOptions(pods=7))
    assert (len(trace.cluster), trace.cluster.gpu_total, len(trace.workload)) == (16, 64, 7)


def test_an_original_pod_list_runs_on_the_gpu_nodes(options):
    trace = load_trace("openb:default", options)
    assert trace.cluster.names == ("n0", "n1")
    assert trace.workload.names == ("p0", "p1")
    assert trace.workload.duration_s.tolist() == [60.0, 60.0]


def test_an_original_node_list_is_a_cluster_alone(options):
    trace = load_trace("openb:all_node", options)
    assert len(trace.cluster) == 3
    assert trace.workload is None


def test_a_list_of_ones_own_in_the_folder_has_a_name(options):
    text = "name,cpu_milli,memory_mib,num_gpu\np,1,2,0\n"
    (options.folder / "openb_pod_list_mine.csv.gz").write_bytes(gzip.compress(text.encode()))
    assert len(load_trace("openb:mine", options).workload) == 1


@pytest.mark.parametrize("name", ["t.yaml", "t.json.gz"])
def test_manifest_files_are_loaded(tmp_path, name):
    save_trace(small_trace(), tmp_path / name)
    trace = load_trace(str(tmp_path / name))
    assert (len(trace.cluster), len(trace.workload)) == (3, 3)
    assert trace.name == str(tmp_path / name)


def test_a_folder_of_manifests_is_loaded(tmp_path):
    save_trace(small_trace(), tmp_path / "t.yaml")
    assert len(load_trace(str(tmp_path)).cluster) == 3


def test_csv_files_are_loaded(tmp_path):
    for path in save_trace(small_trace(), tmp_path / "t.csv"):
        trace = load_trace(str(path))
        assert (trace.cluster is None) != (trace.workload is None)


def test_bad_rows_are_skipped_when_asked_for(options):
    with (options.folder / "openb_pod_list_default.csv").open("a") as stream:
        stream.write("bad,row\n")
    with pytest.raises(InputError):
        load_trace("openb:default", options)
    trace = load_trace("openb:default", LoadOptions(folder=options.folder, is_skipping_bad=True))
    assert len(trace.workload) == 2
    assert trace.notes[0].startswith("left out: ")


@pytest.mark.parametrize(
    ("reference", "suggestion"),
    [("openbb", "openb"), ("openb:defualt", "openb:default"), ("openb:gpushare41", "gpushare40")],
)
def test_an_unknown_name_gets_suggestions(options, reference, suggestion):
    with pytest.raises(UnknownName, match="unknown trace") as caught:
        load_trace(reference, options)
    assert suggestion in caught.value.hint


@pytest.mark.parametrize("folder", [None, "empty"])
def test_an_original_that_is_not_there_is_missing(tmp_path, folder):
    options = LoadOptions(folder=None if folder is None else tmp_path)
    for reference in ("openb:cpu050", "openb:gpu_node"):
        with pytest.raises(MissingError) as caught:
            load_trace(reference, options)
        assert caught.value.exit_code == 3
        assert "PODIUM_TRACES" in caught.value.hint
        assert "podium traces fetch openb" in caught.value.hint


def test_the_node_list_is_missed_with_the_pods_there(options):
    (options.folder / "openb_node_list_gpu_node.csv").unlink()
    with pytest.raises(MissingError, match="openb:gpu_node"):
        load_trace("openb:default", options)


def test_the_sixteen_node_list_points_to_the_embedded_one(options):
    with pytest.raises(MissingError) as caught:
        load_trace("openb:16_node", options)
    assert "openb:16" in caught.value.hint


@pytest.mark.parametrize("reference", ["no/such/file", "none.csv", "none.yaml"])
def test_a_file_that_is_not_there_is_a_usage_error(reference):
    with pytest.raises(UsageError, match="there is no file or folder"):
        load_trace(reference)


def test_a_file_of_another_kind_is_an_input_error(tmp_path):
    (tmp_path / "t.toml").touch()
    with pytest.raises(InputError, match=r'files that end in ".toml"') as caught:
        load_trace(str(tmp_path / "t.toml"))
    assert ".csv" in caught.value.hint


@pytest.mark.parametrize(
    ("reference", "sizes"),
    [("openb:16", {"nodes": 5}), ("openb:default", {"pods": 5}), ("openb:default", {"nodes": 5})],
)
def test_sizes_can_be_chosen_for_generated_parts_only(options, reference, sizes):
    with pytest.raises(UsageError, match="cannot be chosen"):
        load_trace(reference, LoadOptions(folder=options.folder, **sizes))


@pytest.mark.parametrize("sizes", [{"nodes": 0}, {"pods": -1}, {"seed": -1}])
def test_impossible_numbers_are_usage_errors(sizes):
    with pytest.raises(UsageError):
        load_trace("openb", LoadOptions(**sizes))


def test_the_list_starts_with_what_is_always_there():
    listed = list_traces(None)
    assert [info.name for info in listed[:8]] == ["openb", "openb:16", *FAMILIES]
    assert all(info.origin == "embedded" and info.is_present for info in listed[:8])
    assert len(listed) == 34
    assert not any(info.is_present for info in listed[8:])
    assert all(info.summary for info in listed)


def test_the_list_says_what_is_in_the_folder(options):
    (options.folder / "openb_pod_list_mine.csv").touch()
    by_name = {info.name: info for info in list_traces(options.folder)}
    assert by_name["openb:default"].is_present
    assert (by_name["openb:default"].nodes, by_name["openb:default"].pods) == (1213, 8152)
    assert (by_name["openb:gpu_node"].nodes, by_name["openb:gpu_node"].pods) == (1213, None)
    assert not by_name["openb:cpu050"].is_present
    assert by_name["openb:mine"].summary == "a file of your own"


@pytest.mark.openb
def test_every_listed_trace_can_be_loaded():
    options = LoadOptions(folder=originals())
    for info in list_traces(options.folder):
        trace = load_trace(info.name, options)
        if info.nodes is not None:
            assert len(trace.cluster) == info.nodes
        if info.pods is not None:
            assert len(trace.workload) == info.pods


def test_json_that_holds_no_objects_is_an_input_error(tmp_path):
    (tmp_path / "t.json").write_text(json.dumps({"a": 1}))
    with pytest.raises(InputError, match="has no kind"):
        load_trace(str(tmp_path / "t.json"))


def test_a_pipe_is_refused_though_somebody_holds_it_open(tmp_path):
    os.mkfifo(tmp_path / "nodes.yaml")
    held = os.open(tmp_path / "nodes.yaml", os.O_RDWR)
    try:
        with pytest.raises(InputError, match="pipes and devices") as caught:
            load_trace(str(tmp_path / "nodes.yaml"))
    finally:
        os.close(held)
    assert "into a file first" in caught.value.hint


def test_options_that_speak_of_a_dump_are_noted_where_there_is_none(options):
    asked = LoadOptions(options.folder, state="now", duration="2h", topology=("aws",))
    for reference in ("openb:16", "openb:default"):
        notes = load_trace(reference, asked).notes
        assert notes == tuple(
            f"{name} is not honoured, this is not the dump of a cluster"
            for name in ("state", "duration", "topology")
        )
