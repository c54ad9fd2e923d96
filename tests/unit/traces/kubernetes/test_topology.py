import gzip
import json

import pytest
import yaml

from podium.errors import InputError, UsageError
from podium.traces import load_trace
from podium.traces.kubernetes.topology import write_topology

PLAIN = "kind: Node\nmetadata:\n  name: n{0}\nstatus:\n  allocatable: {{cpu: 1, memory: 1Gi}}\n"
FLOW = "{rack: rack-0, server: srv-0}"
BLOCK = "\n    rack: rack-0\n    server: srv-0"


@pytest.fixture
def label(tmp_path):
    def write(text, servers=2, name="in.yaml", target="out.yaml"):
        (tmp_path / name).write_text(text, newline="")
        write_topology(tmp_path / name, tmp_path / target, servers)
        return (tmp_path / target).read_bytes().decode()

    return write


def labels_of(text):
    found = []
    for document in filter(None, yaml.safe_load_all(text)):
        items = document["items"] if document["kind"] == "List" else [document]
        found += [item["metadata"].get("labels") for item in items if item["kind"] == "Node"]
    return found


def test_labels_count_up_in_the_order_of_the_nodes(label):
    text = label("---\n".join(PLAIN.format(i) for i in range(5)))
    assert [(found["rack"], found["server"]) for found in labels_of(text)] == [
        ("rack-0", "srv-0"), ("rack-0", "srv-1"), ("rack-1", "srv-0"), ("rack-1", "srv-1"),
        ("rack-2", "srv-0"),
    ]  # fmt: skip


def test_only_nodes_use_up_an_index(label):
    text = label("kind: Pod\nmetadata: {name: p}\n---\n# none\n---\n" + PLAIN.format(0))
    assert labels_of(text) == [{"rack": "rack-0", "server": "srv-0"}]


def test_everything_else_is_copied_letter_by_letter(label):
    text = (
        "# Kopf: ü 😀\n"
        "apiVersion: v1\n"
        "kind: ConfigMap\n"
        "data: {mode: 0644, when: 2023-01-01, on: yes}   # odd\n"
        "---\n"
        "kind: Node   # a node\n"
        "metadata:\n"
        "  name: é😀\n"
        "  labels:\n"
        "    zone: 'ß'  # kept\n"
    )
    assert label(text) == text.replace(
        "    zone:", "    rack: rack-0\n    server: srv-0\n    zone:"
    )


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("{name: n}", f"{{labels: {FLOW}, name: n}}"),
        ("{labels: {a: b}}", "{labels: {rack: rack-0, server: srv-0, a: b}}"),
        ("\n  name: n", f"\n  labels:{BLOCK}\n  name: n"),
        ("\n  labels:\n  name: n", f"\n  labels: {FLOW}\n  name: n"),
        ("\n  labels: {}\n  name: n", f"\n  labels: {FLOW}\n  name: n"),
        ("\n  labels: ~\n  name: n", f"\n  labels: {FLOW}\n  name: n"),
        ("\n  labels:\n    rack: rack-0", "\n  labels:\n    server: srv-0\n    rack: rack-0"),
        ("\n  labels:\n    rack: |\n      x\n    server: 'y'", f"\n  labels:{BLOCK}"),
        ("\n  labels:\n    rack:\n    server:", f"\n  labels:{BLOCK}"),
        (
            "\n  labels: &l\n    a: &x b\n    rack: *x",
            "\n  labels: &l\n    server: srv-0\n    a: &x b\n    rack: rack-0",
        ),
        ("\r\n  name: n\r", f"\r\n  labels:{BLOCK}\n  name: n\r"),
    ],
)
def test_every_way_of_writing_labels_is_edited_in_place(label, before, after):
    found = label(f"kind: Node\nmetadata: {before}\n")
    assert found == f"kind: Node\nmetadata: {after}\n"


def test_members_of_lists_are_labelled(label):
    text = (
        "kind: List\nitems:\n- kind: Node\n  metadata:\n    name: a\n"
        "- kind: Pod\n  metadata: {name: p}\n- metadata: {name: b}\n  kind: Node\n"
    )
    assert [found["server"] for found in labels_of(label(text))] == ["srv-0", "srv-1"]
    text = "kind: NodeList\nitems:\n- metadata: {name: a}\n"
    assert "rack: rack-0" in label(text)
    assert "rack: rack-0" in label("- kind: Node\n  metadata: {name: a}\n")


def test_labelling_twice_changes_nothing(label):
    once = label("---\n".join(PLAIN.format(i) for i in range(7)))
    assert label(once) == once


def test_a_file_can_be_labelled_in_its_place(label):
    text = label(PLAIN.format(0), target="in.yaml")
    assert labels_of(text) == [{"rack": "rack-0", "server": "srv-0"}]


def test_racks_reach_the_model(label, tmp_path):
    label("---\n".join(PLAIN.format(i) for i in range(3)))
    cluster = load_trace(str(tmp_path / "out.yaml")).cluster
    assert cluster.racks == ("rack-0", "rack-1")
    assert cluster.nodes["rack"].tolist() == [0, 0, 1]


@pytest.mark.parametrize("name", ["in.json", "in.json.gz"])
def test_json_is_labelled_too(tmp_path, name):
    node = {"kind": "Node", "metadata": {"name": "é", "labels": {"a": "b", "rack": "x"}}}
    value = {"kind": "List", "items": [node, {"kind": "Pod"}, {"kind": "Node", "metadata": {}}]}
    data = json.dumps(value).encode()
    path = tmp_path / name
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    assert write_topology(path, tmp_path / "out.json", 1) == 2
    items = json.loads((tmp_path / "out.json").read_text())["items"]
    assert items[0]["metadata"]["labels"] == {"a": "b", "rack": "rack-0", "server": "srv-0"}
    assert items[1] == {"kind": "Pod"}
    assert items[2]["metadata"]["labels"] == {"rack": "rack-1", "server": "srv-0"}


@pytest.mark.parametrize(
    "text", ['{"kind": "Node", "metadata": {}}', '[{"kind": "Node", "metadata": {}}]']
)
def test_json_objects_and_arrays_are_labelled(label, text):
    assert '"rack": "rack-0"' in label(text, name="in.json", target="out.json")


def test_compressed_yaml_is_labelled(tmp_path):
    (tmp_path / "in.yaml.gz").write_bytes(gzip.compress(PLAIN.format(0).encode()))
    assert write_topology(tmp_path / "in.yaml.gz", tmp_path / "out.yml", 4) == 1
    assert "rack: rack-0" in (tmp_path / "out.yml").read_text()


@pytest.mark.parametrize("servers", [0, -3])
def test_a_rack_holds_at_least_one_server(label, servers):
    with pytest.raises(UsageError, match="cannot hold"):
        label(PLAIN.format(0), servers)


@pytest.mark.parametrize(
    ("name", "target", "message"),
    [
        ("in.csv", "out.yaml", "Kubernetes manifests"),
        ("in.yaml", "out", "Kubernetes manifests"),
        ("in.yaml", "out.json", "different formats"),
    ],
)
def test_other_formats_are_refused(label, name, target, message):
    with pytest.raises(UsageError, match=message):
        label(PLAIN.format(0), name=name, target=target)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("kind: Pod\n", "no Node was found"),
        ("", "no Node was found"),
        ("kind: Node\n", "a mapping with the node's name"),
        ("kind: Node\nmetadata: text\n", "a mapping with the node's name"),
        ("kind: Node\nmetadata: {labels: text}\n", "metadata.labels: a mapping is expected"),
        ("kind: Node\nmetadata: {labels: [a]}\n", "metadata.labels: a mapping is expected"),
        ("kind: Node\nmetadata: {labels: {rack: [a]}}\n", "metadata.labels.rack: a string"),
        ("- &a {kind: Node, metadata: {name: n}}\n- *a\n", "an alias shares the labels"),
        ("kind: Node\nmetadata:\n  ? name\n  : n\n", "question mark"),
        ("kind: [\n", "is not valid YAML"),
    ],
)
def test_a_bad_file_is_an_input_error_and_leaves_no_output(label, tmp_path, text, message):
    with pytest.raises(InputError) as caught:
        label(text)
    assert message in caught.value.message
    assert not (tmp_path / "out.yaml").exists()


@pytest.mark.parametrize(
    "text",
    ["{", "[" * 9999, '{"kind": "Node"}', '{"kind": "Node", "metadata": {"labels": 1}}', "[]"],
)
def test_bad_json_is_an_input_error(label, text):
    with pytest.raises(InputError):
        label(text, name="in.json", target="out.json")


def test_a_long_file_is_read_piece_by_piece(label):
    text = "---\n".join(PLAIN.format(f"-é{i}") for i in range(2000))
    labelled = label(text, 4)
    racks = [found["rack"] for found in labels_of(labelled)]
    assert racks == [f"rack-{i // 4}" for i in range(2000)]
