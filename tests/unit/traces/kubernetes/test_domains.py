import pytest

from podium.errors import UsageError
from podium.model import NodeSpec
from podium.traces.kubernetes.domains import KNOWN, PRESETS, chosen_domains, level_of

AWS = "topology.k8s.aws/network-node-layer-"
GCP = "cloud.google.com/gce-topology-"
OCI = "oci.oraclecloud.com/host."


def node(name, labels, **domains):
    return NodeSpec(name, 1, 1, labels=labels, **domains)


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ({}, ("", "", "")),
        ({"rack": "r", "topology.kubernetes.io/rack": "other"}, ("r", "", "")),
        ({"network.topology.nvidia.com/leaf": "l", "network.topology.nvidia.com/spine": "s"},
         ("l", "s", "")),
        ({f"{AWS}1": "1", f"{AWS}2": "2", f"{AWS}3": "3", "topology.kubernetes.io/zone": "z"},
         ("3", "2", "z")),
        ({f"{GCP}block": "b", f"{GCP}subblock": "s", f"{GCP}host": "h"}, ("s", "b", "")),
        ({f"{OCI}rack_id": "r", f"{OCI}network_block_id": "b"}, ("r", "b", "")),
        ({"nvidia.com/gpu.clique": "uuid.1"}, ("uuid.1", "", "")),
        ({"fabric.topograph.run/tier-0": "leaf", "fabric.topograph.run/tier-1": "spine"},
         ("leaf", "spine", "")),
    ],
)  # fmt: skip
def test_the_labels_of_clouds_and_tools_are_known(labels, expected):
    assert tuple(KNOWN.of(labels).values()) == expected


def test_a_preset_or_a_list_of_keys_replaces_what_is_known():
    labels = {"rack": "r", f"{AWS}3": "leaf", f"{AWS}1": "top", "row": "7", "hall": "H"}
    assert chosen_domains(()) is KNOWN
    assert tuple(chosen_domains(("aws",)).of(labels).values()) == ("leaf", "", "top")
    assert tuple(chosen_domains(("row",)).of(labels).values()) == ("7", "", "")
    assert tuple(chosen_domains(("row", "", "hall")).of(labels).values()) == ("7", "", "H")


def test_more_keys_than_levels_are_refused():
    with pytest.raises(UsageError, match="4 label keys") as caught:
        chosen_domains(("a", "b", "c", "d"))
    assert all(name in caught.value.hint for name in PRESETS)


def test_a_key_stands_for_the_level_that_parts_the_nodes_alike():
    nodes = [
        node("a", {"leaf": "1", "row": "x", "host": "a"}, rack="r1", block="b"),
        node("b", {"leaf": "1", "row": "x", "host": "b"}, rack="r1", block="b"),
        node("c", {"leaf": "2", "row": "x", "host": "c"}, rack="r2", block="b"),
        node("d", {}, rack="r2"),
    ]
    assert level_of("leaf", nodes) == "rack"
    assert level_of("row", nodes) == "block"
    assert level_of("host", nodes) is None
    assert level_of("absent", nodes) is None
