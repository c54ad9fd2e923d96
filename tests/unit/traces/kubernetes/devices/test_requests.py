"""Amounts that pods ask for and nodes list, convention by convention."""

from fractions import Fraction

import pytest

from podium.traces.fields import FieldError
from podium.traces.kubernetes.devices import DeviceError, Inventory, node_devices, pod_devices
from podium.traces.kubernetes.devices.values import NodeFacts, PodFacts

ALI = "alibabacloud.com/gpu-"


def amounts(resources):
    return {name: Fraction(amount) for name, amount in resources.items()}


def asked(annotations, resources, **facts):
    named = {"name": "p", "namespace": "ns", "labels": {}, "node": "", "claims": (),
             "claim_names": {}, "containers": (), "is_finished": False}  # fmt: skip
    found = PodFacts(
        annotations=annotations, resources=amounts(resources), inventory=Inventory(),
        **named | facts,
    )  # fmt: skip
    return pod_devices(found)


def listed(resources, labels=None, annotations=None):
    facts = NodeFacts("n", labels or {}, annotations or {}, amounts(resources), Inventory())
    return node_devices(facts)


@pytest.mark.parametrize(
    ("annotations", "resources", "expected"),
    [
        ({}, {}, (0, 0)),
        ({ALI + "count": "2", ALI + "milli": "1000"}, {}, (2, 1000)),
        ({ALI + "count": "1", ALI + "milli": "460"}, {}, (1, 460)),
        ({ALI + "milli": "460"}, {}, (1, 460)),
        ({ALI + "count": "4"}, {}, (4, 1000)),
        ({ALI + "count": "0", ALI + "milli": "0"}, {}, (0, 0)),
        ({ALI + "count": "1"}, {"nvidia.com/gpu": 8}, (1, 1000)),
        ({}, {"nvidia.com/gpu": 8}, (8, 1000)),
        ({}, {"nvidia.com/gpu": 2, "amd.com/gpu": 1}, (2, 1000)),
        ({"gpu-fraction": "0.5"}, {}, (1, 500)),
        ({"gpu-fraction": "0.5", "gpu-fraction-num-devices": "2"}, {}, (2, 500)),
        ({}, {"nvidia.com/gpu": 1, "nvidia.com/gpumem-percentage": 10, "nvidia.com/gpucores": 30},
         (1, 300)),
        # Without an amount of memory, HAMi and Volcano hand out all of it.
        ({}, {"nvidia.com/gpu": 1, "nvidia.com/gpucores": 30}, (1, 1000)),
        ({}, {"nvidia.com/gpu": 2, "nvidia.com/gpucores": 100}, (2, 1000)),
        ({}, {"nvidia.com/gpu": 2, "nvidia.com/gpucores": 0}, (2, 1000)),
        ({}, {"koordinator.sh/gpu-core": 50}, (1, 500)),
        ({}, {"koordinator.sh/gpu-core": 200}, (2, 1000)),
        ({}, {"kubernetes.io/gpu": 100}, (1, 1000)),
        ({}, {"volcano.sh/vgpu-number": 1, "volcano.sh/vgpu-cores": 25,
              "volcano.sh/vgpu-memory-percentage": 10}, (1, 250)),
        ({}, {"volcano.sh/vgpu-number": 3}, (3, 1000)),
        ({}, {"nvidia.com/mig-7g.40gb": 1}, (1, 1000)),
        ({}, {"nvidia.com/mig-1g.5gb": 7}, (1, 994)),
        ({}, {"nvidia.com/mig-1g.10gb.me": 1}, (1, 142)),
        ({}, {"nvidia.com/mig-1g.6gb": 1}, (1, 250)),  # A30 has four slices
        ({}, {"nvidia.com/gpu": 1, "nvidia.com/mig-1g.5gb": 1}, (2, 1000)),
    ],
)  # fmt: skip
def test_every_convention_becomes_a_count_and_a_share(annotations, resources, expected):
    found = asked(annotations, resources)
    assert (found.count, found.milli) == expected


def test_three_thirds_of_a_gpu_fit_one():
    assert asked({"gpu-fraction": "0.33333"}, {}).milli == 333
    assert asked({"gpu-fraction": "0.3333"}, {}).milli == 333
    thirds = {"koordinator.sh/gpu-core": 100, "koordinator.sh/gpu.shared": 3}
    assert asked({}, thirds).milli == 333
    assert asked({"gpu-fraction": "0.00001"}, {}).milli == 1


@pytest.mark.parametrize(
    ("annotations", "resources"),
    [
        ({ALI + "count": "-1"}, {}),
        ({ALI + "count": "17"}, {}),
        ({ALI + "count": "many"}, {}),
        ({ALI + "milli": "1001"}, {}),
        ({"gpu-fraction": "1.5"}, {}),
        ({"gpu-fraction": "0"}, {}),
        ({"gpu-memory": "0"}, {}),
        ({"gpu-fraction": "0.5", "gpu-fraction-num-devices": "0"}, {}),
        ({}, {"nvidia.com/gpu": Fraction(1, 2)}),
        ({}, {"nvidia.com/gpu": Fraction(35, 2)}),
        ({}, {"nvidia.com/mig-1g.5gb": Fraction(1, 2)}),
        ({}, {"nvidia.com/gpu": 2, "nvidia.com/gpucores": 150}),
        ({}, {"koordinator.sh/gpu-core": 150}),
        ({"scheduling.koordinator.sh/device-allocated": "{"}, {"koordinator.sh/gpu-core": 50}),
        ({"scheduling.koordinator.sh/device-allocated": "[]"}, {"koordinator.sh/gpu-core": 50}),
    ],
)
def test_a_request_without_a_meaning_is_a_field_error(annotations, resources):
    with pytest.raises(FieldError):
        asked(annotations, resources)


@pytest.mark.parametrize(
    "resources",
    [
        {"nvidia.com/gpu": 17},
        {"amd.com/gpu": 10**29},
        {"nvidia.com/gpu": 9, "nvidia.com/gpu.shared": 9},
        {"nvidia.com/gpu": 16, "nvidia.com/mig-1g.5gb": 1},
        {"nvidia.com/mig-7g.40gb": 10**29},
        {"nvidia.com/gpu": 17, "nvidia.com/gpumem-percentage": 100},
        {"koordinator.sh/gpu-core": 1700},
        {"aliyun.com/gpu-count": 17},
        {"volcano.sh/gpu-number": 17},
    ],
)
def test_more_gpus_than_a_node_can_have_are_as_many_as_it_can(resources):
    found = asked({}, resources)
    assert (found.count, found.milli) == (16, 1000)


def test_only_what_podium_writes_itself_is_an_error_of_the_file():
    with pytest.raises(FieldError) as own:
        asked({ALI + "count": "17"}, {})
    with pytest.raises(DeviceError):
        asked({}, {"nvidia.com/gpu": Fraction(3, 2)})
    assert not isinstance(own.value, DeviceError)


@pytest.mark.parametrize(
    ("resources", "count"),
    [
        ({}, 0),
        ({ALI + "count": 2, ALI + "milli": 2000}, 2),
        ({ALI + "milli": 4000}, 4),
        ({"nvidia.com/gpu": 8}, 8),
        ({ALI + "count": 2, "nvidia.com/gpu": 8}, 2),
        ({"volcano.sh/vgpu-number": 4, "volcano.sh/vgpu-memory": 65536}, 4),
        ({"kubernetes.io/gpu": 200, "kubernetes.io/gpu-core": 200, "nvidia.com/gpu": 2}, 2),
    ],
)
def test_nodes_offer_whole_gpus(resources, count):
    assert listed(resources).count == count


@pytest.mark.parametrize(
    ("resources", "annotations"),
    [
        ({ALI + "milli": 1500}, {}),
        ({"nvidia.com/gpu": 17}, {}),
        ({"amd.com/gpu": 64}, {}),
        ({"koordinator.sh/gpu-core": 150}, {}),
        ({"nvidia.com/gpu": 10}, {"hami.io/node-nvidia-register": "[{"}),
        ({"nvidia.com/gpu": 10}, {"hami.io/node-nvidia-register": "[7]"}),
        ({"nvidia.com/gpu": 10}, {"hami.io/node-nvidia-register": "GPU-a,10"}),
        ({"nvidia.com/gpu": 10}, {"hami.io/node-nvidia-register": "GPU-a,10,x,100,T4,0,true:"}),
    ],
)
def test_a_node_whose_gpus_cannot_be_read_is_a_field_error(resources, annotations):
    with pytest.raises(FieldError):
        listed(resources, annotations=annotations)


def test_a_label_names_the_model():
    def model(labels):
        return listed({"nvidia.com/gpu": 1}, labels).model

    assert model({}) == ""
    assert model({"nvidia.com/gpu.product": "Tesla-T4"}) == "Tesla-T4"
    assert model({ALI + "card-model": "G2", "nvidia.com/gpu.product": "T4"}) == "G2"


def test_cards_of_several_models_are_read_as_the_most_frequent():
    register = "a,10,15360,100,T4,0,true:b,10,24576,100,A30,0,true:c,10,24576,100,A30,0,true:"
    found = listed({"nvidia.com/gpu": 30}, annotations={
        "hami.io/node-nvidia-register": register})  # fmt: skip
    assert (found.count, found.model, found.memory_mib) == (3, "A30", 24576)
    assert list(found.remarks) == [
        "GPUs of several models or sizes on one node are read as the most frequent"
    ]


def test_blocks_of_volcano_memory_are_told_by_the_memory_of_the_card():
    register = "GPU-a,4,4914,NVIDIA-GeForce RTX 4090,true,hami-core:"
    found = listed(
        {"volcano.sh/vgpu-number": 4},
        {"nvidia.com/gpu.memory": "49140"},
        {"volcano.sh/node-vgpu-register": register},
    )
    assert (found.count, found.memory_mib) == (1, 49140)


def test_shared_devices_without_labels_are_whole_gpus_with_a_note():
    found = listed({"nvidia.com/gpu.shared": 4})
    assert (found.count, found.replicas) == (4, 1)
    assert "is read as whole GPUs" in found.remarks[0]


def test_slots_are_known_for_running_pods_alone():
    annotations = {ALI + "count": "2", ALI + "index": "2-3"}
    assert asked(annotations, {}).slots == ()
    assert asked(annotations, {}, node="n").slots == (2, 3)
    assert asked({ALI + "count": "1", ALI + "index": "2-3"}, {}, node="n").slots == ()


def test_what_only_an_extender_looks_at_is_noted_and_bounds_nothing():
    found = asked({}, {"nvidia.com/gpu": 1, "nvidia.com/priority": 1, "cpu": 4, "memory": 7})
    assert found.extended == ()
    assert found.remarks == ("the resource nvidia.com/priority is not modelled",)
