"""Pods that compete for volumes; tests/cluster/test_volume_contest_agrees.py asks a scheduler."""

import json

import pytest

import podium
from podium.experiments import volume_contest
from support.manifests import bound, claim, claim_volumes, node, pod, storage_class, volume

HOST = "kubernetes.io/hostname"
LOCAL = storage_class("local", "kubernetes.io/no-provisioner")
MADE = storage_class("made", "csi.example.com")
NODES = [node("a"), node("b")]


@pytest.fixture
def fitted(tmp_path):
    def fit(*objects, **options):
        file = tmp_path / "dump.json"
        file.write_text(json.dumps({"kind": "List", "items": [*NODES, LOCAL, MADE, *objects]}))
        return podium.fit(str(file), **options)

    return fit


def asking(name, *claims, cpu="1", **fields):
    return pod(name, requests={"cpu": cpu}, volumes=claim_volumes(claims), **fields)


def local(name, at="a", gib=1, **fields):
    on = [{"key": HOST, "operator": "In", "values": [*at]}]
    return volume(name, gib=gib, affinity=on, storageClassName="local", **fields)


def wanted(name, gib=1, kind="local", **fields):
    return claim(name, gib=gib, storageClassName=kind, **fields)


def attached(name):
    made = volume(name, csi={"driver": "csi.example.com", "volumeHandle": name})
    del made["spec"]["hostPath"]
    return [made, claim(name, volumeName=name)]


def limit(name, count):
    drivers = [{"name": "csi.example.com", "nodeID": name, "allocatable": {"count": count}}]
    return {"kind": "CSINode", "metadata": {"name": name}, "spec": {"drivers": drivers}}


def nodes_of(found):
    return [each.node for each in found.pods]


def test_one_volume_serves_one_claim(fitted):
    claims = [wanted("c"), wanted("d")]
    found = fitted(*claims, local("v"), asking("p", "c"), asking("q", "d"))
    assert nodes_of(found) == ["a", ""]
    assert (found.pods[1].reason, found.is_yes) == ("volume", False)
    assert "2 node(s) didn't find available persistent volumes" in found.pods[1].message
    assert not any("from each other" in note for note in found.notes)


def test_each_pod_goes_where_a_volume_is_left(fitted):
    claims = [wanted(name) for name in "cde"]
    volumes = [local("v"), local("w"), local("x", "b")]
    pods = [asking(name, each) for name, each in zip("pqr", "cde", strict=True)]
    assert sorted(nodes_of(fitted(*claims, *volumes, *pods))) == ["a", "a", "b"]


def test_the_smallest_volume_is_taken(fitted):
    claims, volumes = [wanted("c"), wanted("d", gib=3)], [local("v", gib=3), local("w", gib=2)]
    assert fitted(*claims, *volumes, asking("p", "c"), asking("q", "d")).is_yes
    large = fitted(*claims, local("v", gib=3), asking("p", "c"), asking("q", "d"))
    assert nodes_of(large) == ["a", ""]


def test_pods_that_share_a_claim_are_where_its_volume_is(fitted):
    shared = [asking(name, "c") for name in "pqr"]
    found = fitted(wanted("c"), local("v"), local("w", "b"), *shared)
    assert len(set(nodes_of(found))) == 1
    assert found.is_yes


def test_it_is_not_known_where_a_volume_will_be_that_is_yet_to_be_made(fitted):
    found = fitted(wanted("c", kind="made"), *(asking(each, "c", cpu="5") for each in "pq"))
    assert [each.fits for each in found.pods] == [True, False]
    assert found.pods[1].reason == "not known"
    assert "yet to be made" in found.pods[1].message


def test_volumes_of_one_size_that_differ_leave_it_open_which_is_left(fitted):
    claims = [wanted("c"), wanted("d", selector={"matchLabels": {"disk": "ssd"}})]
    volumes = [local("v", labels={"disk": "ssd"}), local("w")]
    found = fitted(*claims, *volumes, asking("p", "c"), asking("q", "d"))
    assert [each.reason for each in found.pods] == ["", "not known"]


def test_what_follows_too_many_runs_is_not_known(fitted, monkeypatch):
    monkeypatch.setattr(volume_contest, "MOST_RUNS", 1)
    claims = [wanted("c"), wanted("d")]
    found = fitted(*claims, local("v"), asking("p", "c"), asking("q", "d"), asking("r"))
    assert [each.reason for each in found.pods] == ["", "not known", "not known"]


def test_a_gang_that_takes_its_own_volumes_away_is_not_known(fitted):
    marks = {"scheduling.x-k8s.io/pod-group": "g"}
    group = {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup",
        "metadata": {"name": "g", "namespace": "default"}, "spec": {"minMember": 2},
    }  # fmt: skip
    pods = [asking(name, each, labels=marks) for name, each in (("p", "c"), ("q", "d"))]
    found = fitted(group, wanted("c"), wanted("d"), local("v"), *pods)
    assert [each.reason for each in found.pods] == ["not known", "not known"]


def test_a_driver_attaches_so_many_volumes_to_a_node(fitted):
    disks = [each for name in "cde" for each in attached(name)]
    limits = [limit("a", 1), limit("b", 1)]
    pods = [asking(name, each) for name, each in zip("pqr", "cde", strict=True)]
    found = fitted(*disks, *limits, *pods)
    assert sorted(nodes_of(found)) == ["", "a", "b"]
    assert "2 node(s) exceed max volume count" in found.pods[2].message
    assert fitted(*disks, limit("a", 2), limit("b", 1), *pods).is_yes


def test_one_volume_of_two_pods_is_attached_once(fitted):
    found = fitted(*attached("c"), limit("a", 1), limit("b", 0), asking("p", "c"), asking("q", "c"))
    assert nodes_of(found) == ["a", "a"]


def test_pods_that_run_have_their_volumes_attached(fitted):
    running = bound(asking("old", "c"), "a")
    limits = [limit("a", 1), limit("b", 0)]
    disks = [*attached("c"), *attached("d")]
    assert nodes_of(fitted(*disks, *limits, running, asking("p", "d"))) == [""]
    assert nodes_of(fitted(*disks, *limits, running, asking("p", "c"))) == ["a"]
    other = {
        "kind": "VolumeAttachment", "metadata": {"name": "x"},
        "spec": {"attacher": "csi.example.com", "nodeName": "a",
                 "source": {"persistentVolumeName": "c"}},
    }  # fmt: skip
    assert nodes_of(fitted(*disks, *limits, other, asking("p", "d"))) == [""]


def test_eviction_may_leave_room_to_attach(fitted):
    running = bound(asking("old", "c"), "a")
    disks = [*attached("c"), *attached("d")]
    new = asking("p", "d", priority=5)
    found = fitted(*disks, limit("a", 1), limit("b", 0), running, new, preemption=True)
    assert found.pods[0].reason == "not known"


def test_other_verbs_say_that_they_do_not_keep_pods_apart(fitted, tmp_path):
    fitted(wanted("c"), wanted("d"), local("v"), asking("p", "c"), asking("q", "d"))
    notes = podium.load_trace(str(tmp_path / "dump.json")).notes
    assert "may take volumes from each other, and only `podium fit` keeps them apart: 2 pods" in (
        notes
    )
