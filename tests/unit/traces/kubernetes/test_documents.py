import json

import pytest

from podium.errors import InputError
from podium.traces import load_trace
from podium.traces.kubernetes.documents import read_documents


def read(path, text):
    path.write_text(text)
    return [(document.line, dict(document.value)) for document in read_documents(path)]


def test_lists_are_taken_apart_in_yaml(tmp_path):
    text = "kind: List\nitems:\n- kind: Node\n- kind: Pod\n---\nkind: Pod\n"
    assert read(tmp_path / "f.yaml", text) == [
        (3, {"kind": "Node"}), (4, {"kind": "Pod"}), (6, {"kind": "Pod"}),
    ]  # fmt: skip


def test_lists_are_taken_apart_in_json(tmp_path):
    value = {"items": [{"kind": "Node"}, {"kind": "Pod"}], "kind": "List"}
    assert read(tmp_path / "f.json", json.dumps(value, indent=1)) == [
        (3, {"kind": "Node"}), (6, {"kind": "Pod"}),
    ]  # fmt: skip


def test_arrays_may_hold_lists(tmp_path):
    value = [{"kind": "List", "items": [{"kind": "Pod"}]}, {"kind": "Node"}]
    assert [kind for _, kind in read(tmp_path / "f.json", json.dumps(value))] == [
        {"kind": "Pod"}, {"kind": "Node"},
    ]  # fmt: skip


def test_a_sequence_of_objects_is_read_in_yaml_too(tmp_path):
    found = read(tmp_path / "f.yaml", "- kind: Node\n- kind: Pod\n")
    assert found == [(1, {"kind": "Node"}), (2, {"kind": "Pod"})]


@pytest.mark.parametrize("name", ["f.yaml", "f.json"])
def test_members_of_a_node_list_are_nodes(tmp_path, name):
    text = '{"kind": "NodeList", "items": [{"metadata": {}}]}'
    assert read(tmp_path / name, text) == [(1, {"kind": "Node", "metadata": {}})]


@pytest.mark.parametrize("name", ["f.yaml", "f.json"])
def test_items_of_other_kinds_stay_where_they_are(tmp_path, name):
    found = read(tmp_path / name, '{"kind": "Menu", "items": ["a"]}')
    assert [value["kind"] for _, value in found] == ["Menu"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("f.yaml", "just text"),
        ("f.yaml", "- a\n- b"),
        ("f.json", "5"),
        ("f.json", "[null]"),
        ("f.yaml", "kind: List\nitems: [x]"),
        ("f.json", '{"kind": "List", "items": [[]]}'),
    ],
)
def test_what_is_no_object_is_an_input_error(tmp_path, name, text):
    with pytest.raises(InputError, match=r"an object with a kind is expected|the object is empty"):
        read(tmp_path / name, text)


def test_a_kind_that_is_no_text_is_no_kind(tmp_path):
    (tmp_path / "f.json").write_text('{"kind": 5}')
    assert [document.kind for document in read_documents(tmp_path / "f.json")] == [""]


def test_two_outputs_in_one_file_need_a_line_between_them(tmp_path):
    output = "apiVersion: v1\nitems:\n- apiVersion: v1\n  kind: Pod\nkind: List\n"
    with pytest.raises(InputError, match="the key `apiVersion` is there twice") as caught:
        read(tmp_path / "f.yaml", output * 2)
    assert caught.value.where.endswith("f.yaml, line 6")
    assert "put a line with --- between them" in caught.value.hint
    assert [line for line, _ in read(tmp_path / "f.yaml", f"{output}---\n{output}")] == [3, 9]


def test_a_list_that_is_cut_off_may_be_truncated(tmp_path):
    (tmp_path / "f.yaml").write_text("apiVersion: v1\nitems:\n- kind: Pod\n  metadata: {name: a}\n")
    with pytest.raises(InputError, match="the file may be truncated"):
        load_trace(str(tmp_path / "f.yaml"))


@pytest.mark.parametrize(
    "cut", ["kind: Pod\n  metadata: {name: a}", "apiVersion: v1", "", "apiVersion: v1\n  kind: Po"]
)
def test_a_list_whose_kind_came_first_may_be_truncated_as_well(tmp_path, cut):
    head = "kind: List\nitems:\n- kind: Node\n  metadata: {name: n}\n"
    whole = "  status: {allocatable: {cpu: 1, memory: 1Gi}}\n"
    (tmp_path / "f.yaml").write_text(f"{head}{whole}- {cut}\n")
    with pytest.raises(InputError, match="the file may be truncated"):
        load_trace(str(tmp_path / "f.yaml"))


@pytest.mark.parametrize(("owner", "is_told"), [("ReplicaSet", True), ("DaemonSet", False)])
def test_a_dump_of_one_namespace_is_told(tmp_path, owner, is_told):
    owned = f"ownerReferences: [{{kind: {owner}, name: r, controller: true}}]"
    (tmp_path / "f.yaml").write_text(
        "kind: Node\nmetadata: {name: n}\nstatus: {allocatable: {cpu: 1, memory: 1Gi}}\n---\n"
        f"kind: Pod\nmetadata: {{name: a, namespace: ml, uid: u, {owned}}}\n"
        "spec: {nodeName: n, containers: [{}]}\n"
    )
    notes = load_trace(str(tmp_path / "f.yaml")).notes
    assert any("namespace ml" in note and "-A" in note for note in notes) == is_told


NODE = "kind: Node\nmetadata: {name: n}\nstatus: {allocatable: {cpu: 1, memory: 1Gi}}\n"


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8", "utf-8-sig"])
def test_what_powershell_wrote_is_read(tmp_path, encoding):
    (tmp_path / "f.yaml").write_text(f"# é\n{NODE}", encoding=encoding)
    assert load_trace(str(tmp_path / "f.yaml")).cluster.names == ("n",)


@pytest.mark.parametrize("name", ["dump", "dump.txt", "dump.yaml.1"])
@pytest.mark.parametrize(
    "text",
    [NODE, f"---\n{NODE}", '{"kind": "Node", "metadata": {"name": "n"}, '
     '"status": {"allocatable": {"cpu": 1, "memory": 1}}}',
     "sn,cpu_milli,memory_mib,gpu\nn,1,1,0\n"],
)  # fmt: skip
def test_the_content_tells_the_format_where_the_name_does_not(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    assert load_trace(str(tmp_path / name)).cluster.names == ("n",)
