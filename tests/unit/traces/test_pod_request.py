from fractions import Fraction

import pytest

from podium.traces.fields import FieldError
from podium.traces.pod_request import pod_resources


def asking(cpu=None, **more):
    return {"resources": {"requests": {"cpu": cpu} if cpu is not None else {}}} | more


def cpu(spec):
    return pod_resources(spec).get("cpu")


def test_requests_of_containers_are_summed():
    assert cpu({"containers": [asking("500m"), asking(2), asking("0.25")]}) == Fraction(11, 4)


def test_an_init_container_that_asks_for_more_than_the_rest_decides():
    containers = [asking("1"), asking("1")]
    assert cpu({"containers": containers, "initContainers": [asking("3"), asking("2")]}) == 3
    assert cpu({"containers": containers, "initContainers": [asking("1")]}) == 2


def test_a_sidecar_runs_beside_the_containers():
    sidecar = asking("1", restartPolicy="Always")
    assert cpu({"containers": [asking("2")], "initContainers": [sidecar]}) == 3


def test_an_init_container_runs_beside_the_sidecars_started_before_it():
    sidecar = asking("1", restartPolicy="Always")
    spec = {"containers": [asking("1")], "initContainers": [sidecar, asking("4"), sidecar]}
    assert cpu(spec) == 5
    spec["initContainers"] = [asking("4"), sidecar]
    assert cpu(spec) == 4


def test_overhead_comes_on_top():
    spec = {
        "containers": [asking("1")],
        "initContainers": [asking("3")],
        "overhead": {"cpu": "250m"},
    }
    assert cpu(spec) == Fraction(13, 4)


def test_a_limit_stands_for_a_missing_request():
    resources = {"limits": {"cpu": "4", "memory": "1Gi"}, "requests": {"cpu": "1"}}
    asked = pod_resources({"containers": [{"resources": resources}]})
    assert asked == {"cpu": 1, "memory": 2**30}


def test_requests_of_the_pod_itself_replace_those_of_its_containers():
    spec = {
        "containers": [asking("1"), {"resources": {"limits": {"nvidia.com/gpu": 2}}}],
        "resources": {"requests": {"cpu": "5"}},
    }
    assert pod_resources(spec) == {"cpu": 5, "nvidia.com/gpu": 2}


def test_a_pod_may_ask_for_nothing():
    assert pod_resources({}) == {}
    assert pod_resources({"containers": [{"name": "x"}]}) == {}


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"containers": {}}, "spec.containers"),
        ({"containers": ["x"]}, "spec.containers[0]"),
        ({"containers": [{"resources": []}]}, "spec.containers[0].resources"),
        ({"containers": [asking("lots")]}, "spec.containers[0].resources.requests.cpu"),
        ({"containers": [asking(-1)]}, "spec.containers[0].resources.requests.cpu"),
        ({"overhead": "x"}, "spec.overhead"),
    ],
)
def test_a_wrong_value_names_its_field(spec, field):
    with pytest.raises(FieldError) as caught:
        pod_resources(spec)
    assert caught.value.field == field
