import pytest

from podium.model import NodeSpec
from podium.model.constraints import UNCONSTRAINED, Constraints, Gang, NodeTerm, Requirement
from podium.traces.fields import FieldError
from podium.traces.kubernetes.gangs import (
    Groups,
    Marks,
    Member,
    Membership,
    on_labelled_nodes,
    read_membership,
    resolve_gangs,
)

LWS = "leaderworkerset.sigs.k8s.io"
LEAF = "example.com/leaf"
NODES = [
    NodeSpec("a", 1, 1, rack="r1", block="b", labels={LEAF: "1"}),
    NodeSpec("b", 1, 1, rack="r2", block="b", labels={LEAF: "2"}),
]


def membership(labels=None, annotations=None, spec=None, owner=""):
    return read_membership(Marks(labels or {}, annotations or {}, spec or {}, owner))


@pytest.mark.parametrize(
    ("marks", "expected"),
    [
        ({}, None),
        ({"spec": {"schedulingGroup": {"podGroupName": "g"}}}, ("scheduling.k8s.io", "g")),
        ({"spec": {"workloadRef": {"name": "w", "podGroup": "p", "podGroupReplicaKey": "0"}}},
         ("workload p", "w/p/0")),
        ({"labels": {"scheduling.x-k8s.io/pod-group": "g"}}, ("coscheduling", "g")),
        ({"labels": {"pod-group.scheduling.sigs.k8s.io/name": "g",
                     "pod-group.scheduling.sigs.k8s.io/min-available": "3"}},
         ("coscheduling", "g", 3)),
        ({"annotations": {"scheduling.k8s.io/group-name": "g"}}, ("volcano", "g")),
        ({"annotations": {"scheduling.volcano.sh/group-name": "g"}}, ("volcano", "g")),
        ({"annotations": {"pod-group-name": "g",
                          "kai.scheduler/topology-required-placement": "rack"}},
         ("kai", "g", None, "rack")),
        ({"labels": {"kueue.x-k8s.io/pod-group-name": "g"},
          "annotations": {"kueue.x-k8s.io/pod-group-total-count": "4",
                          "kueue.x-k8s.io/podset-required-topology": LEAF}},
         ("kueue", "g", 4, LEAF)),
        ({"labels": {"kueue.x-k8s.io/podset": "main"}, "owner": "job-1",
          "annotations": {"kueue.x-k8s.io/podset-required-topology": LEAF,
                          "kueue.x-k8s.io/workload": "job-job-1-ab12"}},
         ("podset", "job-job-1-ab12/main", None, LEAF)),
        ({"labels": {f"{LWS}/name": "llm", f"{LWS}/group-index": "1"},
          "annotations": {f"{LWS}/size": "4"}}, ("LeaderWorkerSet", "llm/1", 4)),
        ({"labels": {"jobset.sigs.k8s.io/jobset-name": "js",
                     "batch.kubernetes.io/job-name": "js-workers-0"}}, ("JobSet", "js")),
        ({"labels": {"batch.kubernetes.io/job-name": "j",
                     "batch.kubernetes.io/job-completion-index": "0"}},
         ("Job", "j", None, "", True)),
        ({"labels": {"batch.kubernetes.io/job-name": "j"}}, None),
    ],
)  # fmt: skip
def test_the_group_of_a_pod_is_read(marks, expected):
    assert membership(**marks) == (expected and Membership(*expected))


def test_a_minimum_that_is_no_number_is_a_field_error():
    labels = {"kueue.x-k8s.io/pod-group-name": "g", "kueue.x-k8s.io/pod-group-total-count": "many"}
    with pytest.raises(FieldError):
        membership(labels)


def group(version, kind="PodGroup", name="g", **spec):
    metadata = {"name": name, "namespace": "ml"}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec}


def resolve(source, *objects, pods=4, done=0, name="g", is_pending=True, **more):
    groups = Groups()
    for item in objects:
        assert groups.takes(item)
        groups.add(item)
    who = Membership(source, name, **more)
    waiting = [Member(who, "ml", is_pending, is_live=True, is_succeeded=False)] * pods
    finished = [Member(who, "ml", False, is_live=True, is_succeeded=True)] * done
    return resolve_gangs([*waiting, *finished], groups, NODES)


NATIVE = "scheduling.k8s.io/v1alpha2"
GANG = {"schedulingPolicy": {"gang": {"minCount": 3}}}
TOPOLOGY = {"schedulingConstraints": {"topology": [{"key": LEAF}]}}
JOBS = [{"name": "w", "replicas": 2, "template": {"spec": {"parallelism": 3}}}, {"name": "l"}]


@pytest.mark.parametrize(
    ("source", "item", "expected"),
    [
        ("scheduling.k8s.io", group(NATIVE, **GANG), (3, "")),
        ("scheduling.k8s.io", group("scheduling.k8s.io/v1beta1", **GANG, **TOPOLOGY), (3, "rack")),
        ("scheduling.k8s.io", group(NATIVE, schedulingPolicy={"basic": {}}), None),
        ("coscheduling", group("scheduling.x-k8s.io/v1alpha1", minMember=2), (2, "")),
        ("coscheduling", group("scheduling.x-k8s.io/v1alpha1", minMember=1), None),
        ("volcano", group("scheduling.volcano.sh/v1beta1", minMember=2,
                          networkTopology={"mode": "hard", "highestTierAllowed": 2}),
         (2, "block")),
        ("volcano", group("scheduling.volcano.sh/v1beta1", minMember=2,
                          networkTopology={"mode": "soft", "highestTierAllowed": 1}), (2, "")),
        ("kai", group("scheduling.run.ai/v2alpha2", minMember=2,
                      topologyConstraint={"requiredTopologyLevel": LEAF}), (2, "rack")),
        ("Job", group("batch/v1", "Job", completionMode="Indexed", parallelism=4, completions=4),
         (4, "")),
        ("Job", group("batch/v1", "Job", completionMode="Indexed", parallelism=2, completions=4),
         None),
        ("Job", group("batch/v1", "Job", parallelism=4, completions=4), None),
        ("JobSet", group("jobset.x-k8s.io/v1alpha2", "JobSet", replicatedJobs=JOBS), (7, "")),
        ("JobSet", group("jobset.x-k8s.io/v1alpha2", "JobSet", replicatedJobs=JOBS,
                         startupPolicy={"startupPolicyOrder": "InOrder"}), None),
        ("LeaderWorkerSet", group("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet",
                                  leaderWorkerTemplate={"size": 4}), (4, "")),
        ("LeaderWorkerSet", group("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet",
                                  startupPolicy="LeaderReady"), None),
    ],
)  # fmt: skip
def test_the_object_of_a_group_says_how_many_pods_it_needs_and_where(source, item, expected):
    found = resolve(source, item)
    assert found.rules == ((Gang("g", *expected),) if expected else ())
    assert set(found.names) == {"g" if expected else ""}


def test_a_workload_of_kubernetes_1_35_describes_groups_inside_it():
    parts = [{"name": "p", "policy": {"gang": {"minCount": 2}}}, {"name": "q"}]
    item = group("scheduling.k8s.io/v1alpha1", "Workload", "w", podGroups=parts)
    assert resolve("workload p", item, name="w/p/0").rules == (Gang("w/p/0", 2),)
    assert resolve("workload q", item, name="w/q").rules == ()


def test_other_objects_describe_no_groups():
    assert not Groups().takes(group("kueue.x-k8s.io/v1beta1", "Workload"))
    assert not Groups().takes(group("batch.volcano.sh/v1alpha1", "Job"))


def test_a_gang_without_its_object_needs_all_its_pods_and_says_so():
    found = resolve("coscheduling")
    assert found.rules == (Gang("g", 4),)
    assert found.notes == ("gangs whose PodGroup is not in the file need all their pods: g",)


def test_an_indexed_job_without_its_object_is_no_gang_and_says_so():
    found = resolve("Job", needs_object=True)
    assert found.rules == ()
    assert found.notes == ("Indexed Jobs whose Job is not in the file start pod by pod: g",)


def test_pods_that_succeeded_are_no_longer_needed():
    item = group("batch/v1", "Job", completionMode="Indexed", parallelism=4, completions=4)
    found = resolve("Job", item, pods=3, done=1)
    assert found.rules == (Gang("g", 3),)
    assert found.notes == ()


def test_a_gang_that_lacks_pods_waits_and_says_so():
    found = resolve("scheduling.k8s.io", group(NATIVE, **GANG), pods=1)
    assert found.rules == (Gang("g", 3),)
    assert found.notes == ("gangs that wait for pods which are not there: g (2 pods)",)
    running = resolve("scheduling.k8s.io", group(NATIVE, **GANG), pods=1, is_pending=False)
    assert running.notes == ()


def test_a_required_topology_that_no_level_is_like_is_noted():
    found = resolve("kueue", pods=2, minimum=2, topology="kubernetes.io/hostname")
    assert found.rules == (Gang("g", 2),)
    assert "kubernetes.io/hostname is not honoured" in found.notes[0]
    deep = resolve("volcano", group("scheduling.volcano.sh/v1beta1", minMember=2,
                                    networkTopology={"highestTierAllowed": 3}))  # fmt: skip
    assert deep.notes == ("tier 3 of the network topology is not honoured: g",)


def test_nodes_without_the_label_of_the_domain_are_out():
    groups = Groups()
    who = Membership("kueue", "g", 2, LEAF)
    members = [Member(who, "ml", True, is_live=True, is_succeeded=False)] * 2
    found = resolve_gangs(members, groups, [*NODES, NodeSpec("c", 1, 1, rack="r2")])
    assert found.rules == (Gang("g", 2, "rack"),)
    assert found.exists == {"g": LEAF}
    exists = Requirement(LEAF, "Exists")
    assert on_labelled_nodes(UNCONSTRAINED, LEAF).node_terms == (NodeTerm((exists,)),)
    other = Requirement("x", "Exists")
    twice = Constraints(node_terms=(NodeTerm((other,)), NodeTerm()))
    assert on_labelled_nodes(twice, LEAF).node_terms == (NodeTerm((other, exists)),)


def test_gangs_of_one_name_in_two_namespaces_are_told_apart():
    members = [
        Member(Membership("coscheduling", name), space, True, is_live=False, is_succeeded=False)
        for name, space in (("g", "a"), ("g", ""), ("h", "a"), ("g", "a"))
    ]
    found = resolve_gangs([None, *members], Groups(), [])
    assert found.names == ("", "a/g", "default/g", "h", "a/g")
    assert found.rules == (Gang("a/g", 2), Gang("default/g", 1), Gang("h", 1))


def test_groups_inside_a_group_are_noted():
    item = group("scheduling.run.ai/v2alpha2", minMember=2, subGroups=[{"name": "x"}])
    assert resolve("kai", item).notes == ("groups inside a group are not honoured: g",)
