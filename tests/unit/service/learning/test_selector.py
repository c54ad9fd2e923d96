import pytest

from podium.service.learning.selector import MOST_SELECTIONS, REFRESH_S, Selector
from podium.settings import GPU_LABELS

PRODUCT = "nvidia.com/gpu.product"


def selector(*values, label="nvidia"):
    made = Selector(label, clock=lambda: 0.0)
    made.label_values = lambda asked: values if asked == made.label else ()
    return made


@pytest.mark.parametrize("name", GPU_LABELS)
def test_who_sets_the_label_stands_for_it(name):
    fields = selector(label=name).select("A100").fields
    assert fields["nodeSelector"] == {GPU_LABELS[name]: "A100"}
    (toleration,) = fields["tolerations"]
    assert toleration["key"] == ("amd.com/gpu" if name == "amd" else "nvidia.com/gpu")


def test_a_label_of_ones_own_is_taken_as_it_is():
    assert list(selector(label="example.com/gpu").select("A100").fields["nodeSelector"]) == [
        "example.com/gpu"
    ]


def test_without_a_cluster_nobody_knows_whether_nodes_have_it():
    assert selector().select("A100").is_on_nodes is None


@pytest.mark.parametrize(
    ("gpu_type", "value"),
    [
        ("Tesla-T4", "Tesla-T4"),
        ("T4", "Tesla-T4"),
        ("A100-80GB", "NVIDIA-A100-SXM4-80GB"),
        ("nvidia a100 sxm4 80gb", "NVIDIA-A100-SXM4-80GB"),
    ],
)
def test_the_value_is_one_that_nodes_have(gpu_type, value):
    known = selector("Tesla-T4", "NVIDIA-A100-SXM4-80GB", "NVIDIA-A100-SXM4-40GB", "NVIDIA-A10")
    found = known.select(gpu_type)
    assert (found.fields["nodeSelector"], found.is_on_nodes) == ({PRODUCT: value}, True)


def test_a_name_that_stands_for_several_products_selects_all_of_them():
    found = selector("NVIDIA-A100-SXM4-80GB", "NVIDIA-A100-PCIE-80GB", "NVIDIA-A10").select("A100")
    required = found.fields["affinity"]["nodeAffinity"][
        "requiredDuringSchedulingIgnoredDuringExecution"
    ]
    ((expression,),) = [term["matchExpressions"] for term in required["nodeSelectorTerms"]]
    values = ["NVIDIA-A100-PCIE-80GB", "NVIDIA-A100-SXM4-80GB"]
    assert expression == {"key": PRODUCT, "operator": "In", "values": values}
    assert found.is_on_nodes is True


def test_a_gpu_type_that_no_node_has_is_said():
    found = selector("Tesla-T4").select("H100")
    assert (found.fields["nodeSelector"], found.is_on_nodes) == ({PRODUCT: "H100"}, False)


def test_nodes_that_come_later_are_seen_after_a_while():
    now_s, nodes = [0.0], list[str]()
    made = Selector("nvidia", clock=lambda: now_s[0])
    made.label_values = lambda _label: nodes
    assert made.select("T4").is_on_nodes is None
    nodes.append("Tesla-T4")
    assert made.select("T4").is_on_nodes is None
    now_s[0] = REFRESH_S
    assert made.select("T4").fields["nodeSelector"] == {PRODUCT: "Tesla-T4"}


def test_no_more_selections_are_remembered_than_there_is_room_for():
    made = Selector("nvidia", clock=lambda: 0.0)
    for number in range(MOST_SELECTIONS + 10):
        assert made.select(f"T{number}").fields["nodeSelector"] == {PRODUCT: f"T{number}"}
    assert len(made._found) <= MOST_SELECTIONS
