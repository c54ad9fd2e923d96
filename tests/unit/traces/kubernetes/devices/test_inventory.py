"""What one object means depends on the others of the dump: classes, claims, slices, nodes."""

from pathlib import Path

import pytest
import yaml

from podium.policies import load
from podium.sim import Rounds, simulate
from podium.sim.feasible import feasible_nodes
from podium.traces.kubernetes.devices.inventory import Inventory
from podium.traces.kubernetes.manifest import read_manifests
from podium.traces.kubernetes.pile import Reading
from podium.traces.rejects import Rejects

DUMPS = Path(__file__).parent / "dumps"


@pytest.fixture
def read(tmp_path):
    def read_objects(*objects):
        path = tmp_path / "dump.yaml"
        path.write_text(yaml.safe_dump({"kind": "List", "items": list(objects)}))
        return read_manifests(path, Rejects())

    return read_objects


def node(name, labels=None, annotations=None, **resources):
    return {
        "kind": "Node",
        "metadata": {"name": name, "labels": labels or {}, "annotations": annotations or {}},
        "status": {"allocatable": {"cpu": "64", "memory": "256Gi", **resources}},
    }


def pod(name, annotations=None, limits=None, **more):
    spec = {"containers": [{"name": "main", "resources": {"limits": limits or {}}}]}
    metadata = {"name": name, "annotations": annotations or {}, "labels": more.pop("labels", {})}
    return {"kind": "Pod", "metadata": metadata, "spec": spec | more}


def claim(name, *requests):
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"devices": {"requests": list(requests)}},
    }


def exactly(device_class="gpu.nvidia.com", **more):
    return {"name": "r", "exactly": {"deviceClassName": device_class, **more}}


def resource_slice(node_name, *names, **spec):
    devices = [{"name": name, "attributes": {"type": {"string": "gpu"}}} for name in names]
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": f"slice-of-{node_name}"},
        "spec": {
            "driver": "gpu.nvidia.com",
            "pool": {"name": node_name},
            "devices": devices,
        }
        | ({"nodeName": node_name} if node_name else {})
        | spec,
    }


def claiming(name, *claims, **more):
    references = [{"name": each, "resourceClaimName": each} for each in claims]
    return pod(name, resourceClaims=references, **more)


def test_memory_of_known_products_is_filled_in_where_pods_ask_for_it(read):
    t4 = node("t4", {"nvidia.com/gpu.product": "Tesla-T4"}, **{"nvidia.com/gpu": "4"})
    odd = node("odd", {"nvidia.com/gpu.product": "Prototype"}, **{"nvidia.com/gpu": "4"})
    quiet = read(t4, odd, pod("p", {"gpu-fraction": "0.5"}))
    assert [spec.gpu_memory_mib for spec in quiet.cluster.specs()] == [0, 0]
    assert quiet.notes == ()
    asking = read(t4, odd, pod("p", {"gpu-memory": "2000"}))
    assert [spec.gpu_memory_mib for spec in asking.cluster.specs()] == [15360, 0]
    assert asking.notes == (
        "the GPU memory that a node does not say is taken from a list of known products: 1 node",
        "a node does not say how much memory its GPUs have, and some pods ask in MiB: 1 node",
    )


def test_devices_are_bounds_where_nodes_list_different_ones(read):
    amd = node("amd", **{"amd.com/gpu": "8"})
    nvidia = node("nvidia", **{"nvidia.com/gpu": "8"})
    asking = pod("p", limits={"amd.com/gpu": "1"})
    both = read(amd, nvidia, asking)
    assert [dict(spec.extended) for spec in both.cluster.specs()] == [
        {"amd.com/gpu": 8},
        {"nvidia.com/gpu": 8},
    ]
    assert both.workload.specs()[0].constraints.extended == (("amd.com/gpu", 1),)
    alone = read(amd, asking)
    assert alone.workload.specs()[0].constraints.extended == ()
    assert dict(alone.cluster.specs()[0].extended) == {}


@pytest.mark.parametrize(
    ("listed", "asked", "amount"),
    [
        ("nvidia.com/gpu", "amd.com/gpu", 1),
        ("gpu.intel.com/i915", "gpu.intel.com/xe", 1),
        ("nvidia.com/gpu", "volcano.sh/vgpu-number", 1),
        ("nvidia.com/gpu", "nvidia.com/gpu.shared", 1),
        ("nvidia.com/gpu", "koordinator.sh/gpu-core", 50),
        ("nvidia.com/gpu", "koordinator.sh/gpu", 100),
        ("nvidia.com/gpu", "aliyun.com/gpu-mem", 3),
        ("nvidia.com/gpu", "volcano.sh/gpu-number", 1),
    ],
)
def test_devices_are_bounds_where_a_pod_asks_for_others(read, listed, asked, amount):
    found = read(node("a", **{listed: "4"}), pod("p", limits={asked: str(amount)}))
    assert dict(found.cluster.specs()[0].extended).get(asked, 0) == 0
    assert found.workload.specs()[0].constraints.extended == ((asked, amount),)


def test_both_devices_are_bounds_where_one_pod_asks_for_others(read):
    own = pod("own", limits={"nvidia.com/gpu": "3"})
    other = pod("other", limits={"amd.com/gpu": "1"})
    found = read(node("a", **{"nvidia.com/gpu": "4"}), own, other)
    assert dict(found.cluster.specs()[0].extended) == {"nvidia.com/gpu": 4}
    assert [spec.constraints.extended for spec in found.workload.specs()] == [
        (("nvidia.com/gpu", 3),),
        (("amd.com/gpu", 1),),
    ]


@pytest.mark.parametrize("resource", ["gpu-core", "gpu"])
def test_resources_that_all_gpu_nodes_offer_are_no_bounds(read, resource):
    offering = node("a", **{"koordinator.sh/gpu-core": "200"})
    found = read(offering, pod("p", limits={f"koordinator.sh/{resource}": "50"}))
    assert dict(found.cluster.specs()[0].extended) == {}
    spec = found.workload.specs()[0]
    assert (spec.gpu_count, spec.gpu_milli, spec.constraints.extended) == (1, 500, ())


def test_percent_are_bounds_where_some_gpu_nodes_list_none(read):
    offering = node("a", **{"koordinator.sh/gpu-core": "200"})
    plain = node("b", **{"nvidia.com/gpu": "4"})
    found = read(offering, plain, pod("p", limits={"koordinator.sh/gpu-core": "50"}))
    assert [dict(spec.extended) for spec in found.cluster.specs()] == [
        {"koordinator.sh/gpu-core": 200},
        {"nvidia.com/gpu": 4},
    ]
    assert found.workload.specs()[0].constraints.extended == (("koordinator.sh/gpu-core", 50),)


def test_a_pod_takes_its_true_number_of_devices_where_it_asks_for_many(read):
    product = {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb"}
    mig = node("a", product, **{"nvidia.com/gpu": "56"})
    running = pod("p", limits={"nvidia.com/gpu": "50"}, nodeName="a")
    found = read(mig, running, pod("q", limits={"nvidia.com/gpu": "7"}))
    assert found.notes == ()
    assert dict(found.cluster.specs()[0].extended) == {"nvidia.com/gpu": 56}
    asked = [spec.constraints.extended for spec in found.workload.specs()]
    assert asked == [(("nvidia.com/gpu", 50),), (("nvidia.com/gpu", 7),)]


def test_devices_with_media_extensions_are_there_once_a_card(read):
    product = {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb.me"}
    (found,) = read(node("a", product, **{"nvidia.com/gpu": "8"})).cluster.specs()
    assert (found.gpu_count, found.gpu_replicas) == (8, 1)


@pytest.mark.parametrize(
    ("resource", "on_node", "asked"),
    [
        ("nvidia.com/gpu", 16, 17),
        ("amd.com/gpu", 8, 10**15),
        ("koordinator.sh/gpu-core", 1600, 1700),
        ("aliyun.com/gpu-count", 16, 17),
    ],
)
def test_a_pod_that_asks_for_more_gpus_than_any_node_has_stays(read, resource, on_node, asked):
    found = read(node("a", **{resource: str(on_node)}), pod("p", limits={resource: str(asked)}))
    assert dict(found.cluster.specs()[0].extended) == {resource: on_node}
    spec = found.workload.specs()[0]
    assert (spec.gpu_count, spec.constraints.extended) == (16, ((resource, asked),))


def test_annotations_of_open_gpu_share_need_no_listed_device(read):
    marks = {"alibabacloud.com/gpu-count": "1"}
    asking = pod("p", marks, {"nvidia.com/gpu": "1"})
    found = read(node("a", **{"alibabacloud.com/gpu-count": "2"}), asking)
    assert found.workload.specs()[0].constraints.extended == ()


def test_a_node_whose_devices_are_claimed_offers_what_its_class_names(read):
    sliced = node("sliced", {"nvidia.com/gpu.replicas": "4"}, **{"nvidia.com/gpu": "8"})
    gpu_class = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": "gpu.nvidia.com"},
        "spec": {"extendedResourceName": "nvidia.com/gpu"},
    }
    found = read(
        pod("p", limits={"nvidia.com/gpu": "1"}), sliced, node("claimed"),
        resource_slice("claimed", "gpu-0", "gpu-1"), gpu_class,
    )  # fmt: skip
    specs = found.cluster.specs()
    assert [(spec.gpu_count, dict(spec.extended)) for spec in specs] == [
        (2, {"nvidia.com/gpu": 8}),
        (2, {"nvidia.com/gpu": 2}),
    ]
    assert found.notes == ()


@pytest.mark.parametrize("version", ["v1", "v1beta2"])
def test_versions_of_the_api_read_alike(tmp_path, version):
    text = (
        (DUMPS / "dra.yaml")
        .read_text()
        .replace("resource.k8s.io/v1\n", f"resource.k8s.io/{version}\n")
    )
    (tmp_path / "dump.yaml").write_text(text)
    found = read_manifests(tmp_path / "dump.yaml", Rejects())
    assert found.cluster.gpu_total == 2
    assert found.workload.gpu_milli_total == 8001


def test_devices_may_name_their_nodes_one_by_one(read):
    spread = resource_slice("", "gpu-0", "gpu-1", perDeviceNodeSelection=True)
    for device, name in zip(spread["spec"]["devices"], ("a", "b"), strict=True):
        device["nodeName"] = name
    assert [spec.gpu_count for spec in read(node("a"), node("b"), spread).cluster.specs()] == [1, 1]


def test_gpus_of_no_single_node_are_left_out_with_a_note(read):
    (note,) = read(node("a"), resource_slice("", "gpu-0", allNodes=True)).notes
    assert note.endswith("GPUs that belong to no single node are not read")


def test_all_devices_are_those_of_the_smallest_node(read):
    found = read(
        node("a"), node("b"), resource_slice("a", "gpu-0", "gpu-1"),
        resource_slice("b", "gpu-0", "gpu-1", "gpu-2"),
        claim("all", exactly(allocationMode="All")), claiming("p", "all"),
    )  # fmt: skip
    assert found.workload.specs()[0].gpu_count == 2
    assert "allocationMode All is read as" in found.notes[0]


@pytest.mark.parametrize(
    ("request_", "note"),
    [
        (exactly("nic.example.com"), "resource claims of the device class nic.example.com are"),
        (
            exactly(selectors=[{"cel": {"expression": "device.capacity['x'].memory > 5"}}]),
            "selectors of resource claims beyond product and MIG profile are not honoured",
        ),
    ],
)
def test_what_a_claim_asks_for_in_vain_is_noted(read, request_, note):
    found = read(node("a"), claim("c", request_), claiming("p", "c"))
    assert found.notes[0].startswith(note)
    assert found.gaps == ("1 pod asks for devices in a way that is not read",)
    assert found.doubts["default", "p"].text.startswith(note)
    assert found.doubts["default", "p"].is_of_yes


def test_a_pod_that_tolerates_a_gpu_might_get_it(read):
    listed = resource_slice("a", "gpu-0")
    listed["spec"]["devices"][0]["taints"] = [{"key": "bad", "effect": "NoSchedule"}]
    tolerating = exactly(tolerations=[{"key": "bad", "operator": "Exists"}])
    found = read(node("a"), listed, claim("c", tolerating), claiming("p", "c"))
    assert not found.doubts["default", "p"].is_of_yes


def test_a_claim_that_a_finished_pod_names_is_free_for_others(read):
    finished = claiming("done", "c") | {"status": {"phase": "Succeeded"}}
    found = read(node("a"), claim("c", exactly()), finished, claiming("p", "c"))
    assert found.workload.specs()[-1].gpu_count == 1
    assert not any("first of them alone" in note for note in found.notes)


def test_amounts_that_no_record_holds_cost_one_object(read):
    huge = {"koordinator.sh/gpu-core": "100", "koordinator.sh/gpu-memory": "99999999999Mi"}
    odd = node("odd", **huge)
    found = read(node("a"), odd, pod("p"), pod("q", {"gpu-memory": "99999999999"}))
    assert (found.cluster.names, found.workload.names) == (("a",), ("p",))
    assert len(found.notes) == 2
    assert all("gpu_memory_mib is 99999999999" in note for note in found.notes)


def test_whole_gpus_and_slices_of_one_pod_count_as_whole(read):
    profile = {"cel": {"expression": "device.attributes['gpu.nvidia.com'].profile == '1g.5gb'"}}
    mig = exactly("mig.nvidia.com", selectors=[profile])
    spec = read(node("a"), claim("c", exactly(), mig), claiming("p", "c")).workload.specs()[0]
    assert (spec.gpu_count, spec.gpu_milli) == (2, 1000)


def test_pods_of_one_group_share_a_card(read):
    def sharing(name, *groups):
        labels = {f"runai-gpu-group/{each}": each for each in groups}
        marks = {"gpu-fraction": "0.5", "gpu-fraction-num-devices": str(len(groups))}
        return pod(name, marks, labels=labels, nodeName="a")

    found = read(
        node("a", **{"nvidia.com/gpu": "4"}),
        sharing("p", "x"), sharing("q", "y"), sharing("r", "x"), sharing("s", "y", "z"),
    )  # fmt: skip
    assert [spec.gpu_slots for spec in found.workload.specs()] == [(0,), (1,), (0,), (1, 2)]


def test_slots_that_the_node_does_not_have_are_not_known(read):
    marks = {"ALIYUN_COM_GPU_MEM_IDX": "3"}
    resources = {"aliyun.com/gpu-count": "2", "aliyun.com/gpu-mem": "30"}
    running = pod("p", marks, {"aliyun.com/gpu-mem": "3"}, nodeName="a")
    assert read(node("a", **resources), running).workload.specs()[0].gpu_slots == ()


def test_memory_in_mib_is_told_from_gib_by_the_size_of_the_card(read):
    resources = {"aliyun.com/gpu-count": "2", "aliyun.com/gpu-mem": "30218"}
    found = read(node("a", **resources), pod("p", limits={"aliyun.com/gpu-mem": "400"}))
    assert found.cluster.specs()[0].gpu_memory_mib == 15109
    assert found.workload.specs()[0].gpu_memory_mib == 400


@pytest.mark.parametrize(
    ("marks", "models"),
    [
        ({"nvidia.com/use-gputype": "A100"}, "NVIDIA-A100-SXM4-40GB"),
        ({"nvidia.com/nouse-gputype": "a100"}, "Tesla-T4"),
        ({"nvidia.com/use-gputype": "H100"}, "h100"),
    ],
)
def test_models_that_hami_admits_constrain_the_pod(read, marks, models):
    nodes = [
        node(name, {"nvidia.com/gpu.product": product}, **{"nvidia.com/gpu": "1"})
        for name, product in (("a", "NVIDIA-A100-SXM4-40GB"), ("t", "Tesla-T4"))
    ]
    for limits in ({"nvidia.com/gpu": "1"}, {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "1000"}):
        spec = read(*nodes, pod("p", marks, limits)).workload.specs()[0]
        assert (spec.gpu_count, spec.gpu_spec) == (1, models)


def test_annotations_that_narrow_the_choice_further_are_noted(read):
    marks = {"nvidia.com/use-gpuuuid": "GPU-a"}
    found = read(node("a", **{"nvidia.com/gpu": "1"}), pod("p", marks, {"nvidia.com/gpu": "1"}))
    assert found.notes == ("nvidia.com/use-gpuuuid is not honoured: 1 pod",)


def test_a_register_that_hami_left_behind_is_not_believed(read):
    register = {
        "hami.io/node-handshake": "Deleted_2024.05.14 07:07:33",
        "hami.io/node-nvidia-register": "GPU-a,10,15360,100,NVIDIA-Tesla T4,0,true:",
    }
    found = read(node("a", None, register, **{"nvidia.com/gpu": "8"}))
    assert found.cluster.specs()[0].gpu_count == 8


def test_too_many_devices_are_left_out_with_what_could_explain_them(read):
    (note,) = read(node("a"), node("b", **{"amd.com/gpu": "64"})).notes
    assert 'node "b": 0 to 16 whole GPUs are expected, not 64' in note
    assert "partitions), no label says so" in note


def allocated(found, *devices, pool="a", **more):
    results = [
        {"driver": "gpu.nvidia.com", "pool": pool, "device": name, "request": "r", **more}
        for name in devices
    ]
    return found | {"status": {"allocation": {"devices": {"results": results}}}}


def hosts(*names):
    return [node(name, {"kubernetes.io/hostname": name}) for name in names]


def placed_on(found):
    """Offers the pods in their order, and gives the nodes that take them, empty for none."""
    result = simulate(found.cluster, found.workload, load("first-fit"), Rounds())
    by_name = dict(zip(result.plan.arrivals.names, result.node.tolist(), strict=True))
    nodes = (by_name[name] for name in found.workload.names)
    return [found.cluster.names[index] if index >= 0 else "" for index in nodes]


def test_a_pod_runs_where_the_devices_of_its_claim_are(read):
    found = read(
        *hosts("a", "b"), resource_slice("a", "gpu-0"), resource_slice("b", "gpu-0"),
        allocated(claim("c", exactly()), "gpu-0", pool="b"), claiming("p", "c"),
    )  # fmt: skip
    spec = found.workload.specs()[0]
    assert (spec.gpu_count, spec.gpu_milli) == (1, 1000)
    assert feasible_nodes(found.cluster, found.workload, "p") == ["b"]
    assert found.notes == ()


def test_the_second_pod_of_a_claim_runs_beside_the_first(read):
    shared = claim("c", exactly(count=2))
    found = read(
        *hosts("a", "b"), resource_slice("a", "gpu-0"), resource_slice("b", "gpu-0", "gpu-1"),
        shared, claiming("p", "c"), claiming("q", "c"), claiming("r", "c"),
    )  # fmt: skip
    assert [spec.gpu_count for spec in found.workload.specs()] == [2, 0, 0]
    assert placed_on(found) == ["b", "b", "b"]


def test_a_pod_follows_one_that_runs_with_its_claim(read):
    shared = allocated(claim("c", exactly()), "gpu-0", pool="b")
    found = read(
        *hosts("a", "b"), resource_slice("a", "gpu-0"), resource_slice("b", "gpu-0"), shared,
        claiming("first-in-the-dump", "c"), claiming("runs", "c", nodeName="b"),
    )  # fmt: skip
    running, pending = found.workload.specs()
    assert (pending.gpu_count, running.gpu_count, running.gpu_slots) == (0, 1, (0,))
    assert feasible_nodes(found.cluster, found.workload, "first-in-the-dump") == ["b"]


def test_pods_of_a_claim_stay_together_on_an_empty_cluster(tmp_path):
    shared = allocated(claim("c", exactly()), "gpu-0", pool="a")
    objects = [
        *hosts("a", "b"), resource_slice("a", "gpu-0"), resource_slice("b", "gpu-0"), shared,
        claiming("runs", "c", nodeName="a"), claiming("waits", "c"),
    ]  # fmt: skip
    path = tmp_path / "dump.yaml"
    path.write_text(yaml.safe_dump({"kind": "List", "items": objects}))
    found = read_manifests(path, Rejects(), Reading(state="empty"))
    assert feasible_nodes(found.cluster, found.workload, "runs") == ["a", "b"]
    first, second = placed_on(found)
    assert first == second


def test_pods_of_a_claim_may_part_where_nodes_have_no_host_names(read):
    found = read(
        node("a"), resource_slice("a", "gpu-0"), claim("c", exactly()), claiming("p", "c"),
        claiming("q", "c"),
    )  # fmt: skip
    assert "nodes do not have the label kubernetes.io/hostname: 1 pod" in found.notes[1]
    assert placed_on(found) == ["a", "a"]


def test_claims_hold_gpus_for_nobody_too(read):
    idle = allocated(claim("c", exactly()), "gpu-0")
    admin = allocated(claim("monitor", exactly()), "gpu-1", adminAccess=True)
    gpus = resource_slice("a", "gpu-0", "gpu-1")
    found = read(node("a"), gpus, idle, admin, claim("two", exactly(count=2)), claiming("p", "two"))
    assert found.cluster.specs()[0].gpu_count == 1
    assert placed_on(found) == [""]
    assert found.notes == (
        "GPUs that were given to a resource claim, but to no pod of the dump, are left out: 1 node",
    )


def test_claims_that_hold_unknown_gpus_for_nobody_are_noted(read):
    idle = allocated(claim("c", exactly()), "gpu-7")
    found = read(node("a"), resource_slice("a", "gpu-0"), idle, pod("p"))
    assert found.cluster.specs()[0].gpu_count == 1
    assert found.notes == (
        "parts of GPUs, or unknown ones, of resource claims without a pod count as free: 1 claim",
    )


def test_more_devices_than_any_node_has_are_asked_for_in_vain(read):
    found = read(
        *hosts("a"), resource_slice("a", "gpu-0", "gpu-1"), claim("c", exactly(count=20)),
        claiming("p", "c"), claim("d", exactly()), claiming("q", "d"),
    )  # fmt: skip
    resource = "deviceclass.resource.kubernetes.io/gpu.nvidia.com"
    many, one = found.workload.specs()
    assert (many.gpu_count, many.constraints.extended) == (16, ((resource, 20),))
    assert one.constraints.extended == ()
    assert dict(found.cluster.specs()[0].extended) == {resource: 2}
    assert placed_on(found) == ["", "a"]


def test_many_slices_are_few_cards(read):
    profile = {"cel": {"expression": "device.attributes['gpu.nvidia.com'].profile == '1g.5gb'"}}
    mig = exactly("mig.nvidia.com", selectors=[profile], count=20)
    spec = read(node("a"), claim("c", mig), claiming("p", "c")).workload.specs()[0]
    assert (spec.gpu_count, spec.gpu_milli, spec.constraints.extended) == (3, 947, ())


def test_of_alternatives_the_first_that_a_node_can_serve_is_read(read):
    def alternatives(*counts):
        listed = [
            {"name": f"r{n}", "deviceClassName": "gpu.nvidia.com", "count": n} for n in counts
        ]
        return {"name": "r", "firstAvailable": listed}

    nodes = [*hosts("a"), resource_slice("a", "gpu-0", "gpu-1")]
    for counts, asked, what in (((8, 2, 1), 2, "first that a node can serve"), ((1, 2), 1, "first"),
                                ((9, 8), 9, "first")):  # fmt: skip
        found = read(*nodes, claim("c", alternatives(*counts)), claiming("p", "c"))
        assert found.workload.specs()[0].gpu_count == asked
        note = f"of the alternatives of a resource claim the {what} is read: 1 pod"
        assert found.notes == (note,)


@pytest.mark.parametrize("resource", ["nvidia.com/gpu", "rdma/hca", "nvidia.com/mig-1g.5gb"])
def test_a_part_of_a_device_costs_one_object_that_is_named(read, resource):
    halves = pod("halves", limits={resource: "500m"})
    halves["spec"]["containers"] *= 2  # one in all, and still two halves
    odd = node("odd", **{resource: "1500m"})
    found = read(node("a", **{resource: "2"}), odd, pod("p"), halves)
    assert (found.cluster.names, found.workload.names) == (("a",), ("p",))
    assert found.gaps == ("1 pod could not be read",)
    assert 'node "odd"' in found.notes[0]
    assert 'pod "halves"' in found.notes[1]
    assert all("a whole number" in note and resource in note for note in found.notes)


def hami_pod(name, cores, percent, **more):
    limits = {"nvidia.com/gpu": "1", "nvidia.com/gpucores": str(cores),
              "nvidia.com/gpumem-percentage": str(percent)}  # fmt: skip
    return pod(name, limits=limits, **more)


FOLDED = "the larger part of a GPU, by cores or by memory, counts for both"


@pytest.mark.parametrize(
    ("pods", "count"),
    [
        ([hami_pod("p", 30, 70), hami_pod("q", 70, 30)], 2),
        ([hami_pod("p", 30, 70), hami_pod("q", 70, 30), hami_pod("r", 50, 50)], 2),
        ([hami_pod("p", 30, 70), hami_pod("q", 20, 30)], 0),
        ([hami_pod("p", 70, 30), hami_pod("q", 30, 20)], 0),
        ([hami_pod("p", 100, 30), hami_pod("q", 20, 100)], 0),  # a card each, in fact as well
        ([hami_pod("p", 30, 70), hami_pod("q", 70, 30) | {"status": {"phase": "Failed"}}], 0),
    ],
)
def test_cores_and_memory_are_noted_where_either_may_be_the_larger(read, pods, count):
    found = [note for note in read(node("a"), *pods).notes if note.startswith(FOLDED)]
    assert [note.rpartition(": ")[2] for note in found] == ([f"{count} pods"] if count else [])


@pytest.mark.parametrize(("cores", "mib", "is_noted"), [(60, 4000, True), (20, 4000, False)])
def test_memory_in_mib_is_compared_with_cores_on_the_cards_of_the_dump(read, cores, mib, is_noted):
    register = {"hami.io/node-nvidia-register": "GPU-a,10,16000,100,NVIDIA-T4,0,true:"}
    asking = {
        "nvidia.com/gpu": "1",
        "nvidia.com/gpucores": str(cores),
        "nvidia.com/gpumem": str(mib),
    }
    found = read(
        node("a", annotations=register, **{"nvidia.com/gpu": "10"}),
        pod("p", limits=asking), hami_pod("q", 10, 20),
    )  # fmt: skip
    assert any(note.startswith(FOLDED) for note in found.notes) is is_noted


def test_nobody_gets_a_gpu_with_a_taint(read):
    listed = resource_slice("a", "gpu-0", "gpu-1", "gpu-2")
    taint = {"key": "gpu.nvidia.com/xid", "value": "79", "effect": "NoSchedule"}
    listed["spec"]["devices"][0]["taints"] = [taint]
    listed["spec"]["devices"][1]["taints"] = [taint | {"effect": "None"}]
    found = read(
        *hosts("a"), listed, allocated(claim("c", exactly()), "gpu-0"),
        allocated(claim("d", exactly()), "gpu-2"), claiming("p", "c", nodeName="a"),
        claiming("q", "d", nodeName="a"),
    )  # fmt: skip
    assert found.cluster.specs()[0].gpu_count == 2
    assert [(spec.gpu_count, spec.gpu_slots) for spec in found.workload.specs()] == [
        (0, ()),
        (1, (1,)),
    ]
    assert found.notes[0].startswith("GPUs with a taint are left out")


def test_pods_of_a_claim_that_run_are_left_as_they_are(read):
    shared = allocated(claim("c", exactly()), "gpu-0")
    pods = [claiming("p", "c", nodeName="a"), claiming("q", "c", nodeName="a")]
    found = read(*hosts("a"), resource_slice("a", "gpu-0"), shared, *pods)
    assert found.workload.labels == found.workload.constraints == ()


def test_a_claim_ties_no_pod_to_a_node_that_the_file_does_not_have(read):
    found = read(
        resource_slice("a", "gpu-0"), allocated(claim("c", exactly()), "gpu-0"), claiming("p", "c")
    )
    assert found.workload.constraints == ()


def test_devices_that_nobody_lists_are_not_looked_for_node_by_node(read, monkeypatch):
    looks, cards = [], Inventory.cards

    def counted(self, node_name):
        looks.append(node_name)
        return cards(self, node_name)

    monkeypatch.setattr(Inventory, "cards", counted)
    nodes = [f"n{i}" for i in range(20)]
    devices = [f"gpu-{i}" for i in range(8)]
    claims = [allocated(claim(f"c{i}", exactly()), *devices, pool="gone") for i in range(20)]
    pods = [claiming(f"p{i}", f"c{i}") for i in range(20)]
    found = read(*hosts(*nodes), *(resource_slice(each, "gpu-0") for each in nodes), *claims, *pods)
    assert len(found.workload) == 20
    # Once or twice for a node and for a pod; not for each node of each device of each pod.
    assert len(looks) <= 5 * (len(nodes) + len(pods))


def test_a_claim_is_where_the_first_of_its_known_devices_is(read):
    strayed = allocated(claim("c", exactly()), "gpu-9", "gpu-0", pool="b")
    found = read(
        *hosts("a", "b"), resource_slice("a", "gpu-9"), resource_slice("b", "gpu-0"),
        strayed, claiming("p", "c"),
    )  # fmt: skip
    assert feasible_nodes(found.cluster, found.workload, "p") == ["b"]


def device_class(name, driver):
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": name},
        "spec": {"selectors": [{"cel": {"expression": f"device.driver == '{driver}'"}}]},
    }


def test_claims_are_served_by_the_slices_of_their_driver(read):
    found = read(
        node("plug", **{"nvidia.com/gpu": "2"}),
        *hosts("nv", "amd"),
        resource_slice("nv", "gpu-0"),
        resource_slice("amd", "gpu-0", driver="gpu.amd.com"),
        device_class("gpu.nvidia.com", "gpu.nvidia.com"),
        device_class("gpu.amd.com", "gpu.amd.com"),
        claim("a", exactly("gpu.amd.com")),
        claim("n", exactly()),
        claim("any", exactly("some-gpu")),
        claiming("on-amd", "a"),
        claiming("on-nv", "n"),
        claiming("on-either", "any"),
    )
    asked = {name: feasible_nodes(found.cluster, found.workload, name) for name in
             ("on-amd", "on-nv", "on-either")}  # fmt: skip
    assert asked == {"on-amd": ["amd"], "on-nv": ["nv"], "on-either": ["nv", "amd"]}


def test_conventions_bound_nobody_where_all_nodes_share_one_or_none_is_known(read):
    hami = {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "1000"}
    whole = {"nvidia.com/gpu.memory": "16384"}
    unregistered = read(node("a", whole, **{"nvidia.com/gpu": "1"}), pod("p", limits=hami))
    claimed = read(
        *hosts("d"), resource_slice("d", "gpu-0"), claim("c", exactly()), claiming("p", "c")
    )
    for found in (unregistered, claimed):
        assert not any(spec.extended for spec in found.cluster.specs())
        assert not found.workload.specs()[0].constraints.extended


def test_a_pod_that_runs_on_a_node_of_another_convention_stays_there(read):
    register = {"hami.io/node-nvidia-register": "GPU-a,10,32768,100,NVIDIA-V100,0,true:"}
    asked = {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "20000"}
    found = read(
        node("hami", None, register, **{"nvidia.com/gpu": "10"}),
        node("whole", {"nvidia.com/gpu.memory": "40960"}, **{"nvidia.com/gpu": "1"}),
        pod("runs", limits=asked, nodeName="whole"),
        pod("waits", limits=asked),
    )
    runs, waits = found.workload.specs()
    assert (runs.node, dict(runs.constraints.extended)) == ("whole", {"nvidia.com/gpu": 1})
    assert feasible_nodes(found.cluster, found.workload, waits.name) == ["hami"]


@pytest.mark.parametrize(
    ("marks", "told"),
    [
        ({}, "volcano.sh/vgpu-number without the annotation volcano.sh/node-vgpu-register is"),
        (
            {"volcano.sh/node-vgpu-register": "GPU-a,10,32768,100,NVIDIA-V100,0,true:"},
            "the annotation volcano.sh/node-vgpu-register lists no healthy GPU in a form that is",
        ),
    ],
)
def test_a_register_of_another_form_is_told_from_none(read, marks, told):
    found = read(node("a", None, marks, **{"volcano.sh/vgpu-number": "20"}))
    (note,) = found.notes
    assert note.startswith(told)
    assert found.cluster.specs()[0].gpu_count == 2
