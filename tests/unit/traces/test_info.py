import json
from dataclasses import replace
from pathlib import Path

import pytest

import support
from podium.model import Cluster, NodeSpec, PodSpec, Workload
from podium.model.constraints import Constraints
from podium.traces import Experiment, LoadOptions, Trace, load_trace
from podium.traces.check import findings
from podium.traces.info import describe
from support.traces import originals, small_pods, small_trace

DUMP = str(Path(support.__path__[0]) / "cluster_dump.yaml")


def test_counts_and_demand_are_given_as_shares_of_the_cluster():
    described = describe(small_trace())
    assert described["cluster"]["nodes"] == 3
    assert described["cluster"]["gpus"] == 10
    assert described["cluster"]["racks"] == 2
    assert described["workload"]["pods"] == 3
    assert described["demand"]["total"] == {
        "gpu": 2500 / 10_000, "cpu": 13_000 / 192_000, "memory": 8292 / 786_432,
    }  # fmt: skip
    assert described["demand"]["peak"]["gpu"] == 2500 / 10_000


def test_node_types_and_classes_are_counted():
    described = describe(small_trace())
    assert described["cluster"]["node_types"][0]["nodes"] == 1
    assert {kind["gpu_model"] for kind in described["cluster"]["node_types"]} == {"", "G2", "P100"}
    assert described["workload"]["classes"] == {
        "cpu-only": {"pods": 1, "gpu_share": 0.0},
        "share": {"pods": 1, "gpu_share": 0.2},
        "2-gpu": {"pods": 1, "gpu_share": 0.8},
    }
    assert described["workload"]["constrained_pods"] == 1
    assert described["workload"]["gangs"] == 1


def test_shapes_are_listed_by_how_often_they_occur():
    twins = [replace(small_pods()[2], name=name) for name in "abc"]
    workload = Workload.of([small_pods()[0], *twins])
    described = describe(Trace("t", None, workload))["workload"]
    assert described["shapes"] == 2
    assert [shape["pods"] for shape in described["top_shapes"]] == [3, 1]


def test_times_are_described_by_quantiles():
    described = describe(small_trace())["workload"]
    assert described["duration_s"]["p50"] == 60.0
    assert described["duration_s"]["mean"] == pytest.approx(161 / 3)
    assert described["inter_arrival_s"]["p100"] == 5.0


def test_what_is_unknown_is_left_out():
    described = describe(Trace("t", None, Workload.of([PodSpec("p", 1, 1)])))
    assert "duration_s" not in described["workload"]
    assert "cluster" not in described
    assert "demand" not in described
    assert described["workload"]["classes"]["cpu-only"]["gpu_share"] == 0.0
    assert (
        "peak"
        not in describe(replace(small_trace(), workload=Workload.of([PodSpec("p", 1, 1)])))[
            "demand"
        ]
    )


def test_one_pod_has_no_gap_before_the_next():
    one = Workload.of([PodSpec("p", 1, 1, arrival_s=0.0, duration_s=1.0)])
    assert describe(Trace("t", None, one))["workload"]["inter_arrival_s"] is None


def test_the_experiment_and_the_notes_are_shown():
    trace = replace(small_trace(), experiment=Experiment(1.3, 7, True), notes=("a note",))
    described = describe(trace)
    assert described["experiment"] == {"ratio": 1.3, "seed": 7, "is_shuffled": True}
    assert described["notes"] == ["a note"]


def test_the_description_is_ready_for_json():
    for trace in (small_trace(), load_trace("openb", LoadOptions(nodes=5, pods=5))):
        assert json.loads(json.dumps(describe(trace)))["name"] == trace.name


def test_the_dump_of_a_cluster_tells_who_runs_who_waits_and_what_pods_demand():
    described = describe(load_trace(DUMP))
    workload = described["workload"]
    assert workload["states"] == {
        "bound": 6, "pending": 5, "finished": 3, "gated": 1, "deleted": 0, "elsewhere": 1,
    }  # fmt: skip
    assert workload["gang_rules"] == [
        {"name": "train", "pods": 4, "minimum": 4, "domain": "block"},
    ]
    assert workload["constraints"] == {
        "node_selector": 1, "node_affinity": 2, "tolerations": 11, "pod_affinity": 0,
        "pod_anti_affinity": 1, "topology_spread": 1, "host_ports": 2, "volumes": 0,
            "extended_resources": 0,
    }  # fmt: skip
    assert (described["cluster"]["tainted_nodes"], described["cluster"]["cordoned_nodes"]) == (3, 1)
    empty = describe(load_trace(DUMP, LoadOptions(state="empty")))["workload"]["states"]
    assert (empty["bound"], empty["pending"]) == (3, 8)


def test_gpus_that_are_advertised_as_several_devices_are_told():
    nodes = [NodeSpec("a", 1, 1, 2, "A", gpu_replicas=4), NodeSpec("b", 1, 1, 2, "A")]
    described = describe(Trace("t", Cluster.of([*nodes, NodeSpec("c", 1, 1)]), None))
    found = {kind["gpu_replicas"] for kind in described["cluster"]["node_types"]}
    assert found == {4, 1}


def test_other_traces_are_described_without_constraints():
    described = describe(load_trace("openb", LoadOptions(nodes=5, pods=5)))
    assert not {"states", "gang_rules", "constraints"} & described["workload"].keys()
    assert not {"tainted_nodes", "cordoned_nodes"} & described["cluster"].keys()
    assert all("gpu_replicas" not in kind for kind in described["cluster"]["node_types"])


@pytest.mark.openb
def test_the_original_default_is_described_as_published():
    described = describe(load_trace("openb:default", LoadOptions(folder=originals())))
    assert described["demand"]["total"]["gpu"] == pytest.approx(0.9798, abs=5e-5)
    assert described["demand"]["total"]["cpu"] == pytest.approx(0.798, abs=5e-4)
    assert described["demand"]["peak"]["gpu"] == pytest.approx(65.6 / 6212, abs=1e-4)
    assert described["workload"]["duration_s"]["p50"] == 540
    classes = described["workload"]["classes"]
    assert [entry["pods"] for entry in classes.values()] == [1088, 3078, 3911, 16, 15, 44]


def test_demand_on_shared_cards_is_the_part_of_a_card_that_a_device_is():
    nodes = [
        NodeSpec("whole", 64_000, 262_144, 2, "A100", gpu_memory_mib=40_960),
        NodeSpec("sliced", 64_000, 262_144, 2, "T4", gpu_memory_mib=16_384, gpu_replicas=4,
                 labels={"pool": "sliced"}),
    ]  # fmt: skip
    on_sliced = Constraints(node_labels=(("pool", "sliced"),))
    times = {"arrival_s": 0.0, "duration_s": 10.0}
    pods = [
        *(PodSpec(f"p{i}", 0, 0, 1, 1000, constraints=on_sliced, **times) for i in range(4)),
        PodSpec("mib", 0, 0, 1, 1, gpu_memory_mib=4096, constraints=on_sliced, **times),
    ]
    trace = Trace("t", Cluster.of(nodes), Workload.of(pods))
    described = describe(trace)
    assert described["demand"]["total"]["gpu"] == 1250 / 4000
    assert described["workload"]["gpus_asked"] == 1.25
    assert described["workload"]["classes"]["share"]["pods"] == 5
    assert findings(trace) == []


def test_demand_is_measured_on_nodes_that_list_what_pods_ask_for():
    nodes = [
        NodeSpec("amd", 64_000, 262_144, 8, "MI300X", extended={"amd.com/gpu": 8}),
        NodeSpec("sliced", 64_000, 262_144, 2, "T4", gpu_replicas=4,
                 extended={"nvidia.com/gpu": 8}),
    ]  # fmt: skip
    asking = Constraints(extended=(("nvidia.com/gpu", 1),))
    pods = [PodSpec(f"p{i}", 0, 0, 1, 1000, constraints=asking) for i in range(8)]
    described = describe(Trace("t", Cluster.of(nodes), Workload.of(pods)))
    assert described["demand"]["total"]["gpu"] == 2000 / 10_000
