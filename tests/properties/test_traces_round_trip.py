import gzip
import json
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from podium.errors import PodiumError
from podium.model import Cluster, NodeSpec, PodSpec, Workload
from podium.model.constraints import PodSelector
from podium.model.disruption import DisruptionBudget
from podium.traces import LoadOptions, Trace, load_trace, save_trace
from podium.traces.check import findings
from podium.traces.info import describe
from podium.traces.kubernetes import keys
from podium.traces.kubernetes.topology import write_topology
from support.trace_strategies import clusters, constraints, selectors, traces, workloads
from support.traces import assert_same_cluster, assert_same_trace, assert_same_workload

MANIFESTS = ["t.yaml", "t.json", "t.yml.gz"]


def saved(trace, name):
    with tempfile.TemporaryDirectory() as folder:
        files = save_trace(trace, Path(folder) / name)
        return [load_trace(str(path)) for path in files]


def load_bytes(data, name, is_skipping):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(data)
        return load_trace(str(path), LoadOptions(is_skipping_bad=is_skipping))


def labelled(cluster):
    """Adds the labels in which a manifest carries the model and the rack."""
    specs = []
    for spec in cluster.specs():
        labels = dict(spec.labels)
        if spec.gpu_count:
            labels[keys.GPU_CARD_MODEL] = spec.gpu_model
        if spec.rack:
            labels["rack"] = spec.rack
        specs.append(replace(spec, labels=labels))
    return Cluster.of(specs)


@given(clusters())
def test_descriptions_of_nodes_give_the_same_cluster(cluster):
    assert_same_cluster(Cluster.of(cluster.specs()), cluster)


@given(workloads())
def test_descriptions_of_pods_give_the_same_workload(workload):
    assert_same_workload(Workload.of(workload.specs()), workload)


@given(traces(), st.sampled_from(["t.csv", "t.csv.gz"]))
@settings(deadline=None)
def test_csv_gives_back_what_was_written(trace, name):
    nodes, pods = saved(trace, name)
    assert_same_cluster(nodes.cluster, trace.cluster)
    assert_same_workload(pods.workload, trace.workload)
    assert nodes.notes == pods.notes == ()


# In one namespace of a cluster no two pods have the same name.
@given(traces(has_own_names=True), st.sampled_from(MANIFESTS))
@settings(deadline=None)
def test_manifests_give_back_what_was_written(trace, name):
    (again,) = saved(trace, name)
    assert_same_cluster(again.cluster, labelled(trace.cluster))
    assert_same_workload(again.workload, trace.workload)
    assert again.notes == ()


# In one namespace of a cluster no two pods have the same name.
@given(traces(has_own_names=True), st.sampled_from(MANIFESTS))
@settings(deadline=None)
def test_manifests_of_what_was_read_read_the_same(trace, name):
    (once,) = saved(trace, name)
    (twice,) = saved(once, name)
    assert_same_trace(twice, once)


@given(constraints, st.sampled_from(MANIFESTS))
@settings(deadline=None)
def test_constraints_give_back_what_was_written(wanted, name):
    pod = PodSpec("p", 1, 1, namespace="ml", constraints=wanted)
    (again,) = saved(Trace("t", None, Workload.of([pod])), name)
    (found,) = again.workload.specs()
    assert found.constraints == wanted
    assert again.notes == ()


budgets = st.builds(
    DisruptionBudget,
    st.sampled_from(["one", "two"]),
    selectors.map(lambda selector: PodSelector(selector.requirements)),
    st.sampled_from(["", "ml"]),
    st.sampled_from(["", "0", "3", "40%"]),
    st.sampled_from(["", "1", "100%"]),
    st.none() | st.integers(0, 5),
)


@given(
    st.lists(budgets, max_size=2, unique_by=lambda budget: budget.name),
    st.booleans(), st.sampled_from([0.0, 0.1, 1e9]), st.sampled_from(MANIFESTS),
)  # fmt: skip
@settings(deadline=None)
def test_what_preemption_looks_at_gives_back_what_was_written(listed, never, age_s, name):
    pods = [
        PodSpec("p", 1, 1, priority=3, never_preempts=never),
        PodSpec("q", 1, 1, node="n", age_s=age_s),
    ]
    cluster = Cluster.of([NodeSpec("n", 10, 10)])
    (again,) = saved(Trace("t", cluster, Workload.of(pods, budgets=listed)), name)
    assert again.workload.budgets == tuple(listed)
    found = {pod.name: (pod.never_preempts, pod.age_s) for pod in again.workload.specs()}
    assert found == {"p": (never, 0.0), "q": (False, age_s)}


@given(traces())
def test_any_trace_can_be_checked_and_described(trace):
    assert isinstance(findings(trace), list)
    assert describe(trace)["workload"]["pods"] == len(trace.workload)


@given(clusters(), st.integers(1, 4), st.sampled_from(["t.yaml", "t.json"]))
@settings(deadline=None)
def test_topology_labels_all_nodes_and_changes_nothing_else(cluster, servers, name):
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / name, Path(folder) / f"out-{name}"
        save_trace(Trace("t", cluster, None), source)
        assert write_topology(source, target, servers) == len(cluster)
        once = target.read_bytes()
        write_topology(target, target, servers)
        assert target.read_bytes() == once
        found = load_trace(str(target)).cluster
    before = labelled(cluster)
    marks = [
        {"rack": f"rack-{index // servers}", "server": f"srv-{index % servers}"}
        for index in range(len(cluster))
    ]
    expected = [
        replace(spec, rack=mark["rack"], labels={**spec.labels, **mark})
        for spec, mark in zip(before.specs(), marks, strict=True)
    ]
    assert found.specs() == expected


FILES = ["f.csv", "f.csv.gz", "f.yaml", "f.yaml.gz", "f.json", "f.json.gz"]


@pytest.mark.parametrize("name", FILES)
@given(data=st.binary(max_size=300), is_skipping=st.booleans())
@settings(deadline=None)
def test_any_bytes_give_a_trace_or_an_error_of_ours(name, data, is_skipping):
    expect_ours(data, name, is_skipping)


@pytest.mark.parametrize("name", FILES)
@given(data=st.binary(max_size=300), is_skipping=st.booleans())
@settings(deadline=None)
def test_any_bytes_in_a_whole_envelope_give_a_trace_or_an_error_of_ours(name, data, is_skipping):
    expect_ours(gzip.compress(data) if name.endswith(".gz") else data, name, is_skipping)


cells = st.one_of(
    st.sampled_from(["", "0", "1", "8", "1000", "-1", "nan", "1e999", "T4|G2", "x", '"', "9" * 30]),
    st.text(max_size=5),
)


@given(
    st.sampled_from(
        [
            "sn,cpu_milli,memory_mib,gpu,model,rack,labels",
            "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,creation_time,deletion_time",
        ]
    ),
    st.lists(st.lists(cells, max_size=9), max_size=4),
    st.booleans(),
)
def test_any_cells_give_a_trace_or_an_error_of_ours(header, rows, is_skipping):
    text = "\n".join([header, *(",".join(row) for row in rows)])
    expect_ours(text.encode("utf-8", "surrogatepass"), "f.csv", is_skipping)


scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**25), 10**25),
    st.floats(),
    st.sampled_from(
        [
            "Node",
            "Pod",
            "List",
            "Config",
            "1",
            "500m",
            "4Gi",
            "-1",
            "simon/v1alpha1",
            "In",
            "Exists",
            "NoSchedule",
            "True",
            "Ready",
            "Succeeded",
            "x",
            "Indexed",
            "2026-01-01T00:00:00Z",
        ]
    ),
    st.text(max_size=5),
)
WORDS = [
    "kind", "apiVersion", "metadata", "spec", "status", "items", "name", "labels", "annotations",
    "containers", "resources", "initContainers", "requests", "limits", "allocatable", "capacity",
    "cpu", "memory", "nvidia.com/gpu", "affinity", "overhead", "nodeAffinity",
    "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms", "matchExpressions",
    "key", "operator", "values", "nodeSelector", "taints", "unschedulable", "priority",
    "creationTimestamp", "phase", "alibabacloud.com/gpu-milli", "alibabacloud.com/gpu-count",
    "alibabacloud.com/creation-time", "alibabacloud.com/deletion-time", "podium/arrival-s",
    "podium/duration-s", "gpu-fraction", "cluster", "customConfig", "kubeConfig", "shufflePod",
    "workloadTuningConfig", "ratio", "seed", "typicalPodsConfig", "podPopularityThreshold",
    "tolerations", "effect", "podAffinity", "podAntiAffinity", "labelSelector", "matchLabels",
    "topologyKey", "namespaces", "namespaceSelector", "matchLabelKeys", "mismatchLabelKeys",
    "topologySpreadConstraints", "maxSkew", "minDomains", "whenUnsatisfiable", "nodeTaintsPolicy",
    "ports", "hostPort", "containerPort", "hostNetwork", "hostIP", "nodeName", "schedulingGates",
    "conditions", "type", "lastTransitionTime", "containerStatuses", "state", "terminated",
    "startedAt", "finishedAt", "startTime", "deletionTimestamp", "ownerReferences", "controller",
    "schedulingGroup", "podGroupName", "workloadRef", "schedulingPolicy", "gang", "minCount",
    "minMember", "scheduling.x-k8s.io/pod-group", "batch.kubernetes.io/job-name", "volumes",
    "completionMode", "parallelism", "completions", "networkTopology", "highestTierAllowed",
    "replicatedJobs", "leaderWorkerTemplate", "resourceClaims", "value", "namespace", "podGroups",
]  # fmt: skip
words = st.sampled_from(WORDS)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(words, inner, max_size=6)),
    max_leaves=25,
)
parts = st.dictionaries(words, values, max_size=6)
objects = st.builds(
    lambda kind, metadata, spec, status: {
        "kind": kind[1], "apiVersion": kind[0], "metadata": metadata, "spec": spec,
        "status": status,
    },
    st.sampled_from(
        [("v1", "Node"), ("v1", "Pod"), ("v1", "Namespace"), ("batch/v1", "Job"),
         ("scheduling.k8s.io/v1", "PriorityClass"), ("scheduling.k8s.io/v1beta1", "PodGroup"),
         ("scheduling.k8s.io/v1alpha1", "Workload"), ("scheduling.volcano.sh/v1beta1", "PodGroup"),
         ("scheduling.run.ai/v2alpha2", "PodGroup"), ("jobset.x-k8s.io/v1alpha2", "JobSet"),
         ("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet")]
    ),
    st.one_of(st.just({"name": "x"}), parts),
    parts,
    st.one_of(st.just({"allocatable": {"cpu": "1", "memory": "1Gi"}}), parts),
)  # fmt: skip


@given(
    st.one_of(objects, values, st.lists(objects, max_size=3)),
    st.sampled_from(["f.yaml", "f.json"]),
    st.booleans(),
)
@settings(deadline=None)
@example({"kind": "Node", "metadata": {"name": "x"}, "status": {"capacity": {"cpu": 1e300}}},
         "f.json", False)  # fmt: skip
def test_any_objects_give_a_trace_or_an_error_of_ours(value, name, is_skipping):
    # JSON is YAML too, and the other way round PyYAML writes every value.
    text = yaml.safe_dump(value, allow_unicode=True) if name == "f.yaml" else json.dumps(value)
    expect_ours(text.encode("utf-8", "surrogatepass"), name, is_skipping)


@pytest.mark.deep
@given(parts, parts)
@settings(deadline=None)
def test_any_simulator_config_gives_a_trace_or_an_error_of_ours(spec, custom):
    spec = {"cluster": {"customConfig": "f.yaml"}, "customConfig": custom} | spec
    value = {"apiVersion": "simon/v1alpha1", "kind": "Config", "spec": spec}
    expect_ours(yaml.safe_dump(value).encode(), "f.yaml", False)


@given(st.binary(max_size=200))
@settings(deadline=None)
def test_topology_of_any_bytes_gives_a_file_or_an_error_of_ours(data):
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "f.yaml"
        source.write_bytes(b"kind: Node\nmetadata:\n  name: n\n" + data)
        outcome = attempt(write_topology, source, Path(folder) / "out.yaml", 2)
    assert outcome == "refused" or outcome >= 1


def attempt(function, *arguments):
    """Calls a function; an error of ours becomes the word for it, any other one fails the test."""
    try:
        return function(*arguments)
    except PodiumError as error:
        return "refused" if error.message and (error.where or error.hint) else error


def expect_ours(data, name, is_skipping):
    trace = attempt(load_bytes, data, name, is_skipping)
    assert trace == "refused" or trace.cluster is not None or trace.workload is not None
