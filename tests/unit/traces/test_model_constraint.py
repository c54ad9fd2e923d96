import pytest

from podium.traces.fields import FieldError
from podium.traces.model_constraint import model_constraint

PRODUCT = "nvidia.com/gpu.product"


def affinity(*terms):
    required = {"nodeSelectorTerms": list(terms)}
    return {
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    }


def term(*values, key=PRODUCT, operator="In"):
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


def test_no_constraint_allows_any_model():
    constraint = model_constraint({})
    assert constraint.models == ()
    assert not constraint.has_others


def test_the_node_selector_names_one_model():
    assert model_constraint({"nodeSelector": {PRODUCT: "Tesla-T4"}}).models == ("Tesla-T4",)
    selector = {"alibabacloud.com/gpu-card-model": "G2"}
    assert model_constraint({"nodeSelector": selector}).models == ("G2",)


def test_terms_of_the_affinity_are_alternatives():
    assert model_constraint(affinity(term("A", "B"), term("C", "A"))).models == ("A", "B", "C")


def test_rules_of_one_term_hold_together():
    both = {
        "matchExpressions": term("A", "B")["matchExpressions"] + term("B", "C")["matchExpressions"]
    }
    assert model_constraint(affinity(both)).models == ("B",)


def test_a_term_that_leaves_the_model_open_leaves_it_open_altogether():
    constraint = model_constraint(affinity(term("A"), term("z", key="zone")))
    assert constraint.models == ()
    assert constraint.has_others


def test_selector_and_affinity_hold_together():
    spec = {"nodeSelector": {PRODUCT: "B"}} | affinity(term("A", "B"))
    assert model_constraint(spec).models == ("B",)


def test_a_constraint_that_nothing_satisfies_is_refused():
    spec = {"nodeSelector": {PRODUCT: "C"}} | affinity(term("A", "B"))
    with pytest.raises(FieldError, match="no GPU model satisfies"):
        model_constraint(spec)
    with pytest.raises(FieldError, match="no GPU model satisfies"):
        model_constraint(affinity(term()))


@pytest.mark.parametrize(
    "spec",
    [
        {"nodeSelector": {"zone": "a"}},
        affinity(term("A", operator="NotIn")),
        affinity(term("A", key="zone")),
        affinity({"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]}),
    ],
)
def test_other_constraints_are_seen(spec):
    constraint = model_constraint(spec)
    assert constraint.has_others
    assert constraint.models == ()


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
        model_constraint(spec)
