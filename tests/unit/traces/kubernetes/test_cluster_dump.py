"""Reads the dump of a small cluster, and compares with everything that it should come to."""

from pathlib import Path

import pytest
import yaml

import support
from podium.errors import InputError
from podium.model.constraints import (
    Gang,
    HostPort,
    PodSelector,
    PodTerm,
    Requirement,
    Spread,
    Taint,
    Toleration,
)
from podium.traces import LoadOptions, load_trace, save_trace
from support.kubelike import gpu_pod, write_dump
from support.manifests import node, pod

DUMP = Path(support.__path__[0]) / "cluster_dump.yaml"
HOUR = 3600.0
GPU = Toleration("nvidia.com/gpu", "Exists", "", "NoSchedule")
DEFAULTS = (
    Toleration("node.kubernetes.io/not-ready", "Exists", "", "NoExecute"),
    Toleration("node.kubernetes.io/unreachable", "Exists", "", "NoExecute"),
)


def load(**options):
    return load_trace(str(DUMP), LoadOptions(**options))


def times(trace):
    return {
        name: (node, arrival_s, duration_s)
        for name, node, arrival_s, duration_s in zip(
            trace.workload.names,
            trace.workload.bound_to,
            trace.workload.arrival_s.tolist(),
            trace.workload.duration_s.tolist(),
            strict=True,
        )
    }


@pytest.fixture(scope="module")
def now():
    return load()


def test_nodes_have_their_taints_and_domains(now):
    assert [(s.name, s.gpu_count, s.rack, s.block, s.zone) for s in now.cluster.specs()] == [
        ("cpu-a", 0, "", "", "eu-west-1a"),
        ("gpu-a", 8, "nn-123", "nn-12", "eu-west-1a"),
        ("gpu-b", 8, "nn-124", "nn-12", "eu-west-1a"),
        ("gpu-c", 8, "nn-123", "nn-12", "eu-west-1a"),
        ("gpu-d", 8, "nn-124", "nn-12", "eu-west-1a"),
    ]
    assert now.cluster.taints == (
        (Taint("node-role.kubernetes.io/control-plane"),),
        (),
        (Taint("nvidia.com/gpu", "present"),),
        (Taint("node.kubernetes.io/unschedulable"),),
        (Taint("node.kubernetes.io/not-ready"),),
    )


def test_running_pods_are_where_they_are_and_pending_ones_wait_behind_them(now):
    # The llm has run for 10 h, longer than any finished pod; finetune-6 took 3 h, and its
    # successor has run for 1 h. The notebook is given 20 s more. Pods of nodes outlast the rest.
    forever = 10 * HOUR + HOUR / 2
    assert times(now) == {
        "kube-apiserver-cpu-a": ("cpu-a", 0.0, forever),
        "kube-proxy-7xk2p": ("gpu-a", 0.0, forever),
        "nvidia-device-plugin-q4mzt": ("gpu-b", 0.0, forever),
        "finetune-7-m8dkc": ("gpu-a", 0.0, 2 * HOUR),
        "llm-0": ("gpu-b", 0.0, 10 * HOUR),
        "notebook": ("gpu-b", 0.0, 20.0),
        "train-0": ("", 0.0, HOUR / 2),
        "train-1": ("", 0.0, HOUR / 2),
        "train-2": ("", 0.0, HOUR / 2),
        "train-3": ("", 0.0, HOUR / 2),
        "tokenize-28393-w5t8p": ("", 0.0, HOUR / 2),
    }
    assert list(times(now))[-1] == "tokenize-28393-w5t8p"  # created last


def test_the_gang_needs_four_pods_in_one_block(now):
    assert now.workload.gang_rules == (Gang("train", 4, "block"),)
    assert [spec.name for spec in now.workload.specs() if spec.gang] == [
        f"train-{index}" for index in range(4)
    ]


def test_constraints_are_those_of_the_pods(now):
    by_name = {spec.name: spec for spec in now.workload.specs()}
    llm = by_name["llm-0"].constraints
    own = PodSelector((Requirement("app", "In", ("llm",)),), frozenset({"serving"}))
    assert llm.anti_affinity == (PodTerm(own, "kubernetes.io/hostname"),)
    assert llm.host_ports == (HostPort(8000),)
    assert llm.tolerations == (GPU, *DEFAULTS)
    tokenize = by_name["tokenize-28393-w5t8p"].constraints
    alike = PodSelector((Requirement("app", "In", ("tokenize",)),), frozenset({"ml"}))
    assert tokenize.spread == (Spread(alike, "kubernetes.io/hostname"),)
    assert tokenize.node_labels == (("topology.kubernetes.io/zone", "eu-west-1a"),)
    assert by_name["kube-apiserver-cpu-a"].constraints.host_ports == (HostPort(6443),)
    assert by_name["kube-proxy-7xk2p"].priority == 2_000_001_000
    assert by_name["llm-0"].labels == {"app": "llm"}
    assert by_name["llm-0"].namespace == "serving"


def test_pending_pods_go_where_the_scheduler_would_let_them(now):
    by_name = {spec.name: spec for spec in now.workload.specs()}
    for name, expected in (
        ("train-0", {"gpu-a", "gpu-b"}),
        ("finetune-7-m8dkc", {"gpu-a", "gpu-b"}),
    ):
        constraints = by_name[name].constraints
        open_nodes = {
            node.name
            for node in now.cluster.specs()
            if constraints.selects_node(node.name, node.labels)
            and constraints.tolerates(node.taints)
        }
        assert open_nodes == expected


def test_everything_that_is_left_out_or_made_up_is_noted(now):
    assert now.notes == (
        "ResourceQuota is not honoured: 1 object",
        "not ready by condition alone, read as the taint node.kubernetes.io/not-ready: 1 node",
        "finished, so left out: 3 pods",
        "bound to nodes that the cluster does not have, so left out: 1 pod",
        "wait for their gates (spec.schedulingGates), so left out: 1 pod",
        "preferences of nodes are not honoured: preferred affinity, ScheduleAnyway: 1 pod",
        "volumes are not known, `kubectl get nodes,pods,pvc,pv,sc -A -o yaml` prints them as well: "
        "1 pod",
        "run times are drawn from 2 finished pods: 6 pods",
        "assumed to run as long again as they already have: 1 pod",
    )


def test_an_empty_cluster_keeps_the_pods_of_its_nodes_and_gets_the_others_as_arrivals():
    found = times(load(state="empty"))
    assert [name for name, (node, _, _) in found.items() if node] == [
        "kube-apiserver-cpu-a", "kube-proxy-7xk2p", "nvidia-device-plugin-q4mzt",
    ]  # fmt: skip
    assert "notebook" not in found  # it is being deleted
    assert found["orphan"][1] == 0.0  # created first
    assert found["finetune-7-m8dkc"] == ("", 51 * HOUR - 60, 3 * HOUR)
    assert found["llm-0"][2] == 20 * HOUR


def test_run_times_can_be_asked_for():
    trace = load(duration="2h")
    found = times(trace)
    assert found["train-0"][2] == found["tokenize-28393-w5t8p"][2] == 2 * HOUR
    assert found["finetune-7-m8dkc"][2] == HOUR
    assert found["llm-0"][2] == 10 * HOUR  # it has run for longer already
    assert found["kube-proxy-7xk2p"][2] == 12 * HOUR
    assert "run times are those asked for: 2h" in trace.notes


def test_draws_depend_on_the_seed_alone():
    draws = [times(load(duration="exponential:1h", seed=seed)) for seed in (1, 1, 2)]
    assert draws[0] == draws[1] != draws[2]
    assert len({draws[0][f"train-{index}"][2] for index in range(4)}) == 1  # a gang ends as one


def test_the_topology_can_be_chosen():
    trace = load(topology=("topology.kubernetes.io/zone", "", "nowhere"))
    assert {spec.rack for spec in trace.cluster.specs()} == {"eu-west-1a"}
    assert {spec.zone for spec in trace.cluster.specs()} == {""}
    assert "no node has the label nowhere of the chosen topology" in trace.notes


def test_pods_without_nodes_keep_their_places_only_if_asked_to(tmp_path):
    items = yaml.safe_load(DUMP.read_text())["items"]
    pods = [item for item in items if item["kind"] == "Pod"]
    (tmp_path / "pods.yaml").write_text(yaml.safe_dump_all(pods))
    as_arrivals = load_trace(str(tmp_path / "pods.yaml"))
    assert as_arrivals.workload.bound_to == ()
    assert "bound, but read as arrivals because the file has no nodes: 3 pods" in as_arrivals.notes
    bound = load_trace(str(tmp_path / "pods.yaml"), LoadOptions(state="now"))
    assert sum(map(bool, bound.workload.bound_to)) == 7


@pytest.mark.parametrize("name", ["again.yaml", "again.json.gz"])
def test_a_dump_survives_being_written(now, tmp_path, name):
    again = load_trace(str(save_trace(now, tmp_path / name)[0]))
    # The name of a gang that needs one block is no label of its pods any more.
    assert again.workload.specs() == now.workload.specs()
    assert again.workload.gang_rules == now.workload.gang_rules
    assert again.cluster.taints == now.cluster.taints
    assert (again.cluster.blocks, again.cluster.zones) == (now.cluster.blocks, now.cluster.zones)
    assert again.notes == ()


def models(name, numbers):
    """Writes a pod that takes GPUs of some models."""
    marks = {
        "gpu-count": "1",
        "gpu-milli": "500",
        "gpu-card-model": "|".join(f"M{n}" for n in numbers),
    }
    return gpu_pod(name, 0, {f"alibabacloud.com/{key}": text for key, text in marks.items()})


@pytest.mark.parametrize(
    "pods",
    [[models("bad", range(54))], [*(models(f"p{i}", [i]) for i in range(53)), models("bad", [53])]],
)
def test_a_pod_that_names_too_many_gpu_models_is_named(tmp_path, pods):
    file = write_dump(tmp_path, [node("a"), pod("good"), *pods])
    with pytest.raises(InputError, match=r'pod "bad": it names .* all pods may name 53 at most'):
        load_trace(str(file))
    left = load_trace(str(file), LoadOptions(is_skipping_bad=True))
    assert "bad" not in left.workload.names
    assert "good" in left.workload.names


@pytest.mark.parametrize("name", ["alibabacloud.com/gpu-count", "alibabacloud.com/gpu-milli"])
def test_what_only_annotations_mean_is_a_resource_like_others_in_a_container(tmp_path, name):
    listing = node("lists")
    listing["status"]["allocatable"] = {
        "cpu": "8",
        "memory": "8Gi",
        name: "2000" if "milli" in name else "2",
    }
    asking = pod("p", requests={"cpu": "1", name: "1"})
    found = load_trace(str(write_dump(tmp_path, [node("plain"), listing, asking])))
    (spec,) = found.workload.specs()
    assert spec.constraints.extended == ((name, 1),)
    assert [name in each.extended for each in found.cluster.specs()] == [False, True]
