"""What every source of traces must do, whatever it reads."""

import numpy as np
import pytest
import yaml

from podium.model import ANY_MODEL, GPU_MILLI, NODE_8, NODE_16, POD, Cluster, Workload
from podium.model.cluster import node_problem
from podium.model.workload import pod_problem
from podium.rl import Placement, World
from podium.traces import LoadOptions, Trace, load_trace, save_trace
from podium.traces.check import findings
from podium.traces.info import describe
from support.traces import (
    assert_same_cluster,
    assert_same_trace,
    assert_same_workload,
    small_trace,
    write_originals,
)

CONFIG = {
    "apiVersion": "simon/v1alpha1",
    "kind": "Config",
    "spec": {
        "cluster": {"customConfig": "manifests"},
        "customConfig": {"workloadTuningConfig": {"ratio": 1.3, "seed": 1000}},
    },
}


def embedded(_folder):
    return "openb", LoadOptions(seed=1000, nodes=121, pods=815)


def embedded_16(_folder):
    return "openb:16", LoadOptions(seed=1000, pods=50)


def generated_small(_folder):
    return "openb", LoadOptions(seed=1000, nodes=12, pods=30)


def generated_and_saved(folder):
    path = folder / "generated.json.gz"
    save_trace(load_trace(*generated_small(folder)), path)
    return str(path), LoadOptions()


def original_pods(folder):
    return "openb:default", LoadOptions(folder=write_originals(folder))


def original_short_pods(folder):
    return "openb:multigpu20", LoadOptions(folder=write_originals(folder))


def original_nodes(folder):
    return "openb:all_node", LoadOptions(folder=write_originals(folder))


def csv_nodes(folder):
    return str(save_trace(small_trace(), folder / "small.csv.gz")[0]), LoadOptions()


def csv_pods(folder):
    return str(save_trace(small_trace(), folder / "small.csv")[1]), LoadOptions()


def yaml_file(folder):
    return str(save_trace(small_trace(), folder / "small.yaml")[0]), LoadOptions()


def json_file(folder):
    return str(save_trace(small_trace(), folder / "small.json")[0]), LoadOptions()


def manifest_folder(folder):
    whole = small_trace()
    (folder / "manifests").mkdir()
    save_trace(Trace("nodes", whole.cluster, None), folder / "manifests" / "nodes.yaml.gz")
    save_trace(Trace("pods", None, whole.workload), folder / "manifests" / "pods.json")
    return str(folder / "manifests"), LoadOptions()


def simon_config(folder):
    manifest_folder(folder)
    (folder / "config.yaml").write_text(yaml.safe_dump(CONFIG))
    return str(folder / "config.yaml"), LoadOptions()


SOURCES = [
    embedded, embedded_16, generated_small, generated_and_saved, original_pods,
    original_short_pods, original_nodes, csv_nodes, csv_pods, yaml_file, json_file,
    manifest_folder, simon_config,
]  # fmt: skip


@pytest.fixture(params=SOURCES, ids=lambda source: source.__name__.replace("_", "-"))
def source(request, tmp_path):
    return request.param(tmp_path)


@pytest.fixture
def trace(source):
    return load_trace(*source)


def test_the_same_reference_and_seed_give_equal_records(source, trace):
    again = load_trace(*source)
    assert_same_trace(again, trace)
    assert again.notes == trace.notes
    assert again.experiment == trace.experiment


def test_a_source_gives_nodes_or_pods(source, trace):
    assert trace.name == source[0]
    assert trace.cluster is not None or trace.workload is not None


def test_nodes_are_valid_and_empty(trace):
    if trace.cluster is None:
        pytest.skip("the source gives no nodes")
    nodes = trace.cluster.nodes
    assert nodes.dtype in (NODE_8, NODE_16)
    assert len(set(trace.cluster.names)) == len(trace.cluster) == len(nodes) > 0
    assert np.array_equal(nodes["cpu_milli_left"], nodes["cpu_milli_total"])
    assert np.array_equal(nodes["memory_mib_left"], nodes["memory_mib_total"])
    slots = np.arange(nodes["gpu_milli_left"].shape[1])
    has_slot = slots < nodes["gpu_count"][:, None]
    assert np.array_equal(nodes["gpu_milli_left"], np.where(has_slot, GPU_MILLI, 0))
    assert np.array_equal(nodes["gpu_model"] >= 0, nodes["gpu_count"] > 0)
    assert (nodes["gpu_model"] < len(trace.cluster.gpu_models)).all()
    assert (nodes["rack"] < len(trace.cluster.racks)).all()
    assert not any(node_problem(spec) for spec in trace.cluster.specs())


def test_pods_are_valid(trace):
    if trace.workload is None:
        pytest.skip("the source gives no pods")
    workload = trace.workload
    assert workload.pods.dtype == POD
    assert len(workload.names) == len(workload.gpu_specs) == len(workload.pods) > 0
    free = workload.pods["gpu_models"] == ANY_MODEL
    assert free.tolist() == [not spec for spec in workload.gpu_specs]
    for times in (workload.arrival_s, workload.duration_s):
        assert times is None or (len(times) == len(workload) and (times >= 0).all())
    assert not any(pod_problem(spec) for spec in workload.specs())


def test_descriptions_build_the_same_records_again(trace):
    if trace.cluster is not None:
        assert_same_cluster(Cluster.of(trace.cluster.specs()), trace.cluster)
    if trace.workload is not None:
        assert_same_workload(Workload.of(trace.workload.specs()), trace.workload)


def test_a_trace_survives_csv(trace, tmp_path):
    parts = [load_trace(str(path)) for path in save_trace(trace, tmp_path / "again.csv")]
    nodes = next((part.cluster for part in parts if part.cluster is not None), None)
    pods = next((part.workload for part in parts if part.workload is not None), None)
    assert_same_trace(Trace("again", nodes, pods), trace)


@pytest.mark.parametrize("name", ["again.json", "again.yaml.gz"])
def test_a_trace_survives_manifests(trace, tmp_path, name):
    once = load_trace(str(save_trace(trace, tmp_path / name)[0]))
    twice = load_trace(str(save_trace(once, tmp_path / name)[0]))
    assert_same_trace(twice, once)
    if trace.cluster is not None:
        assert np.array_equal(once.cluster.nodes, trace.cluster.nodes)
        assert once.cluster.names == trace.cluster.names
        assert once.cluster.gpu_models == trace.cluster.gpu_models
    if trace.workload is not None:
        assert_same_workload(once.workload, trace.workload)


def test_a_trace_can_be_checked_and_described(trace):
    assert all(isinstance(finding, str) for finding in findings(trace))
    assert describe(trace)["name"] == trace.name


def test_pods_can_be_aligned_with_the_nodes_beside_them(trace):
    if trace.cluster is None or trace.workload is None:
        pytest.skip("the source does not give both")
    aligned = trace.workload.aligned(trace.cluster.gpu_models)
    assert aligned.gpu_models == trace.cluster.gpu_models
    assert len(aligned) == len(trace.workload)


def test_nodes_and_pods_are_a_world_to_learn_on(source, trace):
    if trace.cluster is None or trace.workload is None:
        pytest.skip("the source does not give both")
    reference, options = source
    sizes = {"nodes": options.nodes, "pods": options.pods}
    world = World.of_trace(reference, folder=str(options.folder or ""), **sizes)
    environment = Placement(world, 2)
    assert environment.num_nodes == len(trace.cluster)
    while not environment.is_done.any():
        environment.step(environment.mask.argmax(axis=1))
    assert environment.finished()[0].is_placed.any()
