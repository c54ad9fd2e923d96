from fractions import Fraction

import pytest

from podium.traces.fields import FieldError
from podium.traces.kubernetes.gpu_convention import (
    GpuRequest,
    node_gpus,
    node_model,
    pod_gpus,
    unmodelled,
)

ALI = "alibabacloud.com/gpu-"


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
        ({"gpu-fraction": "0.5"}, {}, (1, 500)),
        ({"gpu-fraction": "0.5", "gpu-fraction-num-devices": "2"}, {}, (2, 500)),
        ({}, {"nvidia.com/gpu": 1, "nvidia.com/gpucores": 30}, (1, 300)),
        ({}, {"nvidia.com/gpu": 2, "nvidia.com/gpucores": 100}, (2, 1000)),
        ({}, {"nvidia.com/gpu": 2, "nvidia.com/gpucores": 0}, (2, 1000)),
        ({}, {"koordinator.sh/gpu-core": 50}, (1, 500)),
        ({}, {"koordinator.sh/gpu-core": 200}, (2, 1000)),
        ({}, {"volcano.sh/vgpu-number": 1, "volcano.sh/vgpu-cores": 25}, (1, 250)),
        ({}, {"volcano.sh/vgpu-number": 3}, (3, 1000)),
    ],
)
def test_every_convention_becomes_a_count_and_a_share(annotations, resources, expected):
    asked = {name: Fraction(amount) for name, amount in resources.items()}
    assert pod_gpus(annotations, asked) == GpuRequest(*expected)


def test_a_share_is_never_understated():
    assert pod_gpus({"gpu-fraction": "0.33333"}, {}) == GpuRequest(1, 334)
    assert pod_gpus({"gpu-fraction": "0.00001"}, {}) == GpuRequest(1, 1)


@pytest.mark.parametrize(
    ("annotations", "resources"),
    [
        ({ALI + "count": "-1"}, {}),
        ({ALI + "count": "17"}, {}),
        ({ALI + "count": "many"}, {}),
        ({ALI + "milli": "1001"}, {}),
        ({"gpu-fraction": "1.5"}, {}),
        ({"gpu-fraction": "0"}, {}),
        ({"gpu-fraction": "0.5", "gpu-fraction-num-devices": "0"}, {}),
        ({}, {"nvidia.com/gpu": Fraction(1, 2)}),
        ({}, {"nvidia.com/gpu": 99}),
        ({}, {"nvidia.com/gpu": 10**29}),
        ({}, {"nvidia.com/gpu": 2, "nvidia.com/gpucores": 150}),
    ],
)
def test_a_request_without_a_meaning_is_a_field_error(annotations, resources):
    with pytest.raises(FieldError):
        pod_gpus(annotations, {name: Fraction(amount) for name, amount in resources.items()})


@pytest.mark.parametrize(
    ("resources", "count"),
    [
        ({}, 0),
        ({ALI + "count": 2, ALI + "milli": 2000}, 2),
        ({ALI + "milli": 4000}, 4),
        ({"nvidia.com/gpu": 8}, 8),
        ({ALI + "count": 2, "nvidia.com/gpu": 8}, 2),
    ],
)
def test_nodes_offer_whole_gpus(resources, count):
    assert node_gpus({name: Fraction(amount) for name, amount in resources.items()}) == count


def test_a_node_with_parts_of_gpus_is_a_field_error():
    with pytest.raises(FieldError, match="whole GPUs"):
        node_gpus({ALI + "milli": Fraction(1500)})


def test_a_label_names_the_model():
    assert node_model({}) == ""
    assert node_model({"nvidia.com/gpu.product": "Tesla-T4"}) == "Tesla-T4"
    assert node_model({ALI + "card-model": "G2", "nvidia.com/gpu.product": "T4"}) == "G2"


def test_gpu_resources_without_a_counterpart_are_named():
    resources = {
        "cpu": 1, "nvidia.com/gpu": 1, "nvidia.com/mig-1g.5gb": 1, "aliyun.com/gpu-mem": 3,
        "nvidia.com/gpumem": 0,
    }  # fmt: skip
    asked = {name: Fraction(amount) for name, amount in resources.items()}
    assert unmodelled(asked) == ["nvidia.com/mig-1g.5gb", "aliyun.com/gpu-mem"]
