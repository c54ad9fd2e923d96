"""Where volumes let pods run; tests/cluster/test_volumes_agree.py asks a real kube-scheduler."""

import json

import pytest

import podium
from podium.errors import InputError
from podium.traces import load_trace
from podium.traces.save import save_trace
from support.manifests import bound, claim, claim_volumes, node, pod, storage_class, volume
from support.present import feasible_nodes

HOST = "kubernetes.io/hostname"
ON_A = [{"key": HOST, "operator": "In", "values": ["a"]}]
NODES = [node("a"), node("b")]
ASKING = pod("p", volumes=claim_volumes(["c"]))
BOUND = [claim("c", volumeName="v"), volume("v", affinity=ON_A)]
LOCAL = storage_class("local", "kubernetes.io/no-provisioner")


@pytest.fixture
def dumped(tmp_path):
    def write(*objects):
        file = tmp_path / "dump.json"
        file.write_text(json.dumps({"kind": "List", "items": [*NODES, *objects]}))
        return str(file)

    return write


def nodes_for(path, name="p"):
    return feasible_nodes(load_trace(path), name)


def test_a_pod_runs_where_its_volume_is(dumped):
    assert nodes_for(dumped(ASKING, *BOUND)) == {"a"}


def test_the_reason_is_that_of_kube_scheduler(dumped):
    found = podium.fit(dumped(ASKING, *BOUND, bound(pod("old", requests={"cpu": "8"}), "a")))
    assert found.pods[0].fits  # it asks for nothing
    asking = pod("p", requests={"cpu": "1"}, volumes=claim_volumes(["c"]))
    found = podium.fit(dumped(asking, *BOUND, bound(pod("old", requests={"cpu": "8"}), "a")))
    assert found.pods[0].reason == "cpu"
    assert "1 node(s) didn't match PersistentVolume's node affinity" in found.pods[0].message


def test_a_claim_that_nobody_binds_is_waited_for(dumped):
    found = podium.fit(dumped(ASKING, claim("c", storageClassName="x"), LOCAL))
    assert (found.pods[0].reason, found.is_yes) == ("volume", False)
    assert found.pods[0].message == (
        "0/2 nodes are available: pod has unbound immediate PersistentVolumeClaims"
    )


@pytest.mark.parametrize(
    "others",
    [
        [],
        [claim("c", volumeName="v")],
        [claim("c", storageClassName="local")],
    ],
)
def test_what_the_dump_lacks_is_not_known(dumped, others):
    with pytest.warns(UserWarning, match="volumes are not known"):
        found = podium.fit(dumped(ASKING, *others))
    assert (found.pods[0].reason, found.is_yes) == ("not known", False)
    assert found.gaps == (
        "1 pod uses volumes that the dump lacks: try kubectl get nodes,pods,pvc,pv,sc -A -o yaml",
    )


def test_pods_that_run_need_not_be_known(dumped):
    assert podium.fit(dumped(bound(ASKING, "a"))).is_yes


def test_a_missing_claim_is_named(dumped):
    found = podium.fit(dumped(ASKING, claim("other")))
    assert found.pods[0].message == ('0/2 nodes are available: persistentvolumeclaim "c" not found')


def test_local_volumes_are_where_nodes_have_enough_of_them(dumped):
    asking = pod("p", volumes=claim_volumes(["c", "d"]))
    claims = [claim(name, storageClassName="local") for name in ("c", "d")]
    volumes = [
        volume(name, affinity=[{"key": HOST, "operator": "In", "values": [name[0]]}],
               storageClassName="local") for name in ("a1", "a2", "b1")
    ]  # fmt: skip
    assert nodes_for(dumped(asking, *claims, *volumes, LOCAL)) == {"a"}


def test_an_open_claim_is_served_where_its_class_may_make_volumes(dumped):
    topology = {"matchLabelExpressions": [{"key": HOST, "values": ["b"]}]}
    made = storage_class("zonal", allowedTopologies=[topology])
    assert nodes_for(dumped(ASKING, claim("c", storageClassName="zonal"), made)) == {"b"}


def tracking(*, flag=True):
    spec = {"storageCapacity": flag}
    return {"kind": "CSIDriver", "metadata": {"name": "csi.example.com"}, "spec": spec}


def capacity(gib, at="a", kind="made", **fields):
    topology = {"matchLabels": {HOST: at}}
    return {
        "kind": "CSIStorageCapacity", "metadata": {"name": f"{kind}-{at}"},
        "storageClassName": kind, "nodeTopology": topology, "capacity": f"{gib}Gi", **fields,
    }  # fmt: skip


OPEN = [claim("c", gib=2, storageClassName="made"), storage_class("made")]


@pytest.mark.parametrize(
    ("objects", "nodes"),
    [
        ([tracking(), capacity(2)], {"a"}),
        ([tracking(), capacity(2), capacity(3, "b")], {"a", "b"}),
        ([tracking(), capacity(1)], set()),
        ([tracking(), capacity(9, maximumVolumeSize="1Gi")], set()),
        ([tracking(), capacity(9, kind="other")], set()),
        ([tracking(), capacity(2, nodeTopology=None)], set()),
        ([tracking(), capacity(2, nodeTopology={})], {"a", "b"}),
        ([tracking(flag=False), capacity(1)], {"a", "b"}),
    ],
)
def test_a_volume_is_made_where_its_driver_has_room(dumped, objects, nodes):
    path = dumped(ASKING, *OPEN, *objects)
    assert nodes_for(path) == nodes
    if not nodes:
        (found,) = podium.fit(path).pods
        assert "2 node(s) did not have enough free storage" in found.message


@pytest.mark.parametrize("objects", [[tracking()], [capacity(9)]])
def test_room_is_not_known_from_half_of_the_objects(dumped, objects):
    with pytest.warns(UserWarning, match="csidrivers and csistoragecapacities"):
        found = podium.fit(dumped(ASKING, *OPEN, *objects))
    assert not found.is_yes
    assert found.gaps == ("1 pod needs storage of which it is not known what is left",)


def test_room_of_a_driver_is_where_its_class_may_make_volumes(dumped):
    topology = {"matchLabelExpressions": [{"key": HOST, "values": ["b"]}]}
    made = storage_class("made", allowedTopologies=[topology])
    path = dumped(ASKING, OPEN[0], made, tracking(), capacity(2))
    assert nodes_for(path) == set()


@pytest.mark.filterwarnings("ignore:all pods are in the namespace default")
def test_the_claim_of_an_ephemeral_volume_comes_with_a_pod_that_is_yet_to_be_created(dumped):
    template = {"spec": claim("x", storageClassName="zonal")["spec"]}
    volumes = [{"name": "e", "ephemeral": {"volumeClaimTemplate": template}}]
    asking = pod("p", volumes=volumes)
    known = [storage_class("zonal"), claim("other")]
    assert podium.fit(dumped(asking, *known)).is_yes
    asking["metadata"]["uid"] = "1"
    assert "waiting for ephemeral" in podium.fit(dumped(asking, *known)).pods[0].message


def test_pods_of_a_stateful_set_have_claims_of_their_own(dumped, tmp_path):
    made = {"metadata": {"name": "c"}, "spec": claim("x", storageClassName="local")["spec"]}
    owner = {
        "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "db"},
        "spec": {"volumeClaimTemplates": [made], "template": {"spec": pod("p")["spec"]}},
    }  # fmt: skip
    (tmp_path / "owner.json").write_text(json.dumps(owner))
    there = [claim("c-db-0", volumeName="v"), volume("v", affinity=ON_A)]
    (found,) = podium.fit(dumped(*there, LOCAL), str(tmp_path / "owner.json")).pods
    assert found.node == "a"
    (found,) = podium.fit(dumped(claim("other"), LOCAL), str(tmp_path / "owner.json")).pods
    assert "didn't find available persistent volumes" in found.message


def test_one_pod_at_a_time_uses_a_claim_of_its_own(dumped):
    known = [claim("c", mode="ReadWriteOncePod", volumeName="v"), volume("v")]
    second = pod("q", volumes=claim_volumes(["c"]))
    found = podium.fit(dumped(ASKING, second, *known))
    assert [each.fits for each in found.pods] == [True, False]
    assert "already in-use by another pod" in found.pods[1].message


def test_volumes_survive_a_conversion(dumped, tmp_path):
    known = [claim("c", mode="ReadWriteOncePod", volumeName="v"), volume("v", affinity=ON_A)]
    trace = load_trace(dumped(ASKING, *known))
    save_trace(trace, tmp_path / "again.yaml")
    again = load_trace(str(tmp_path / "again.yaml"))
    assert again.workload.constraints == trace.workload.constraints
    assert nodes_for(str(tmp_path / "again.yaml")) == {"a"}


def test_an_annotation_that_podium_did_not_write_is_refused(dumped):
    asking = pod("p")
    asking["metadata"]["annotations"] = {"podium/volumes": "x"}
    with pytest.raises(InputError, match="JSON that Podium writes"):
        load_trace(dumped(asking))
