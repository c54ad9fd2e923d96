import functools
import operator
from collections import Counter
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.traces.fields import FieldError
from podium.traces.kubernetes.constraints import UNKNOWN_NAMESPACES
from podium.traces.kubernetes.devices import Inventory
from podium.traces.kubernetes.pod import UnmodelledError, pod_draft, selected_models
from podium.traces.kubernetes.requests import pod_resources

PRODUCT = "nvidia.com/gpu.product"


def affinity(*terms):
    required = {"nodeSelectorTerms": list(terms)}
    return {
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    }


def term(*values, key=PRODUCT, operator="In"):
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


def test_no_constraint_allows_any_model():
    assert selected_models({}) == ()


def test_the_node_selector_names_one_model():
    assert selected_models({"nodeSelector": {PRODUCT: "Tesla-T4"}}) == ("Tesla-T4",)
    selector = {"alibabacloud.com/gpu-card-model": "G2"}
    assert selected_models({"nodeSelector": selector}) == ("G2",)


def test_terms_of_the_affinity_are_alternatives():
    assert selected_models(affinity(term("A", "B"), term("C", "A"))) == ("A", "B", "C")


def test_rules_of_one_term_hold_together():
    both = {
        "matchExpressions": term("A", "B")["matchExpressions"] + term("B", "C")["matchExpressions"]
    }
    assert selected_models(affinity(both)) == ("B",)


def test_a_term_that_leaves_the_model_open_leaves_it_open_altogether():
    assert selected_models(affinity(term("A"), term("z", key="zone"))) == ()


def test_selector_and_affinity_hold_together():
    spec = {"nodeSelector": {PRODUCT: "B"}} | affinity(term("A", "B"))
    assert selected_models(spec) == ("B",)


def test_parts_that_contradict_each_other_name_no_model():
    assert selected_models({"nodeSelector": {PRODUCT: "C"}} | affinity(term("A", "B"))) == ()
    assert selected_models(affinity(term())) == ()


@pytest.mark.parametrize(
    "spec",
    [
        {"nodeSelector": {"zone": "a"}},
        affinity(term("A", operator="NotIn")),
        affinity(term("A", key="zone")),
        affinity({"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]}),
    ],
)
def test_other_constraints_name_no_model(spec):
    assert selected_models(spec) == ()


@pytest.mark.parametrize(
    "spec",
    [
        {"nodeSelector": []},
        {"affinity": "x"},
        {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": []}}},
        affinity("x"),
        affinity({"matchExpressions": {}}),
        affinity({"matchExpressions": [{"key": PRODUCT, "operator": "In", "values": "A"}]}),
        affinity({"matchExpressions": [{"key": PRODUCT, "operator": "In", "values": [{}]}]}),
    ],
)
def test_a_wrong_value_is_a_field_error(spec):
    with pytest.raises(FieldError):
        selected_models(spec)


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


def test_huge_pages_may_be_asked_for_by_the_pod_itself():
    spec = {"containers": [asking("1")], "resources": {"requests": {"hugepages-2Mi": "64Mi"}}}
    assert pod_resources(spec) == {"cpu": 1, "hugepages-2Mi": 2**26}


def test_a_limit_of_the_pod_itself_is_its_request_only_where_no_container_asks():
    limits = {"cpu": "4", "memory": "1Gi"}
    spec = {"containers": [asking("1"), asking("500m")], "resources": {"limits": limits}}
    assert pod_resources(spec) == {"cpu": Fraction(3, 2), "memory": 2**30}


def holding(name, cpu, **more):
    return {"name": name, "resources": {"requests": {"cpu": cpu}}} | more


def test_a_container_that_is_resized_counts_with_the_larger_of_what_it_asks_and_holds():
    spec = {"containers": [asking("1", name="a"), asking("3", name="b")]}
    statuses = [holding("a", "2"), holding("b", "2")]
    assert pod_resources(spec, {"containerStatuses": statuses}) == {"cpu": 5}
    statuses = [holding("a", "2", allocatedResources={"cpu": "4"}), {"name": "b"}]
    assert pod_resources(spec, {"containerStatuses": statuses}) == {"cpu": 7}


def test_a_resize_that_the_node_will_never_grant_takes_nothing():
    condition = {"type": "PodResizePending", "status": "True", "reason": "Infeasible"}
    status = {"containerStatuses": [holding("a", "2")], "conditions": [condition]}
    assert pod_resources({"containers": [asking("64", name="a")]}, status) == {"cpu": 2}


def test_sidecars_and_the_pod_itself_are_resized_too():
    sidecar = asking("1", name="s", restartPolicy="Always")
    spec = {"containers": [asking("1", name="a")], "initContainers": [sidecar]}
    assert pod_resources(spec, {"initContainerStatuses": [holding("s", "3")]}) == {"cpu": 4}
    spec["resources"] = {"requests": {"cpu": "2"}}
    assert pod_resources(spec, {"resources": {"requests": {"cpu": "6"}}}) == {"cpu": 6}


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


def _container(resources, **more):
    return {"name": "c", "resources": {"requests": resources}, **more}


_MANY = {f"x.y/{number}": "1" for number in range(1000)}
_PORTS = [{"containerPort": 1}] * 501
_TOO_LARGE = {
    "spec.containers": {"spec": {"containers": [_container(_MANY), _container({"cpu": "1"})]}},
    "spec.nodeSelector": {"spec": {"nodeSelector": {str(each): "" for each in range(1001)}}},
    "spec.overhead": {"spec": {"overhead": {**_MANY, "cpu": "1"}}},
    "spec.volumes": {"spec": {"volumes": [{"name": "v"}] * 1001}},
    "spec.resourceClaims": {"spec": {"resourceClaims": [{"name": "v"}] * 1001}},
    "status.conditions": {"status": {"conditions": [{}] * 1001}},
    "status.containerStatuses": {
        "status": {"containerStatuses": [{**_container(_MANY), "allocatedResources": {"cpu": "1"}}]}
    },
}


def _drafted(pod):
    return pod_draft({"metadata": {"name": "p"}, **pod}, UNKNOWN_NAMESPACES, 0, Inventory(), {})


@pytest.mark.parametrize("where", _TOO_LARGE)
def test_a_pod_that_would_take_long_to_read_is_not_modelled(where):
    with pytest.raises(UnmodelledError, match="more than 1,000") as caught:
        _drafted(_TOO_LARGE[where])
    assert caught.value.field == where


def test_ports_count_beside_resources():
    ported = [_container({}, ports=_PORTS), _container({}, ports=_PORTS)]
    with pytest.raises(UnmodelledError, match="resources and ports"):
        _drafted({"spec": {"containers": ported}})
    assert _drafted({"spec": {"containers": [_container(_MANY)]}}).spec.name == "p"


_NAMES = st.sampled_from(["cpu", "memory", "x.y/z"])
_ASKED = st.dictionaries(_NAMES, st.integers(0, 5).map(str), max_size=3)
_STARTED = st.lists(
    st.builds(
        lambda asked, held, more, name: (
            {**_container(asked, **more), "name": name},
            {"name": name, "resources": {"requests": held}},
        ),
        _ASKED, _ASKED, st.sampled_from([{}, {"restartPolicy": "Always"}]), st.sampled_from("ab"),
    ),
    max_size=5,
)  # fmt: skip


@given(_STARTED, _ASKED, st.booleans())
def test_the_start_takes_as_much_as_its_hungriest_moment(started, asked, is_infeasible):
    def amounts(found):
        return {key: Fraction(value) for key, value in found.items()}

    waits = {"type": "PodResizePending", "reason": "Infeasible"}
    statuses = {status["name"]: status for _, status in started}
    status = {
        "initContainerStatuses": list(statuses.values()),
        "conditions": [waits] if is_infeasible else [],
    }
    spec = {
        "containers": [{**_container(asked), "name": "main"}],
        "initContainers": [container for container, _ in started],
    }
    sidecars, moments = Counter(), []
    for container, _ in started:
        own = Counter(amounts(container["resources"]["requests"]))
        held = Counter(amounts(statuses[container["name"]]["resources"]["requests"]))
        if "restartPolicy" in container:
            sidecars.update(held if is_infeasible else held | own)
            own = Counter()
        moments.append(sidecars + own)
    moments.append(sidecars + Counter(amounts(asked)))
    expected = functools.reduce(operator.or_, moments)
    assert {key: each for key, each in pod_resources(spec, status).items() if each} == expected
