import json

import pytest

from podium.service.extender import wire

POD = {
    "metadata": {"name": "p", "namespace": "ml", "uid": "u-1", "annotations": {"a": "ü"}},
    "spec": {"containers": []},
}


def body(**more):
    return json.dumps({"Pod": POD, **more}).encode()


def test_names_are_read_as_kube_scheduler_sends_them():
    args = wire.read_args(body(Nodes=None, NodeNames=["a", "b"]))
    assert (args.node_names, args.nodes) == (["a", "b"], [])
    assert (args.pod.name, args.pod.namespace, args.pod.uid) == ("p", "ml", "u-1")
    assert json.loads(args.raw_pod) == POD


def test_whole_nodes_are_read_where_the_extender_has_no_cache():
    nodes = [{"metadata": {"name": name, "labels": {"x": "y"}}, "status": {}} for name in "ab"]
    args = wire.read_args(body(Nodes={"metadata": {}, "items": nodes}, NodeNames=None))
    assert args.node_names == ["a", "b"]
    assert [json.loads(each) for each in args.nodes] == nodes


@pytest.mark.parametrize(
    "more", [{}, {"Nodes": None, "NodeNames": None}, {"Nodes": {"items": None}}]
)
def test_no_nodes_are_no_names(more):
    assert wire.read_args(body(**more)).node_names == []


@pytest.mark.parametrize(
    "sent",
    [b"", b"{", b"[]", b"null", b"\xff", b'{"Pod": 1}', b'{"NodeNames": ["a"]}',
     b'{"pod": {}, "nodenames": ["a"]}', b'{"Pod": {}, "NodeNames": [1]}',
     b'{"Pod": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
     b'{"Pod": {}, "NodeNames": ["\\ud800"]}',
     b'{"Pod": {}, "Nodes": {"items": [7]}}', b'{"Pod": {"metadata": {"name": "\xff"}}}'],
)  # fmt: skip
def test_anything_else_is_refused(sent):
    with pytest.raises(wire.MalformedError):
        wire.read_args(sent)


def test_scores_are_a_bare_list_of_capitalised_entries():
    names = ["a", 'b"\\', "ü"]
    written = json.loads(wire.priorities(map(wire.host, names), [7, 0, 1000]))
    assert written == [
        {"Host": name, "Score": score} for name, score in zip(names, [7, 0, 1000], strict=True)
    ]
    assert json.loads(wire.NEUTRAL) == []


def test_the_answer_of_filter_lists_who_stays_and_why_others_do_not():
    args = wire.read_args(body(NodeNames=["a", "b"]))
    assert json.loads(wire.filtered(args, {"b": "held"})) == {
        "Nodes": None,
        "NodeNames": ["a"],
        "FailedNodes": {"b": "held"},
        "FailedAndUnresolvableNodes": {},
        "Error": "",
    }


def test_the_answer_of_filter_has_whole_nodes_where_they_were_sent():
    nodes = [{"metadata": {"name": name}, "spec": {"podCIDR": "x"}} for name in "ab"]
    args = wire.read_args(body(Nodes={"items": nodes}))
    assert json.loads(wire.filtered(args, {"a": "full"}))["Nodes"]["items"] == nodes[1:]


def test_a_binding_is_read_and_answered():
    sent = {"PodName": "p", "PodNamespace": "ml", "PodUID": "u", "Node": "a"}
    args = wire.read_binding(json.dumps(sent).encode())
    assert (args.pod_name, args.pod_namespace, args.pod_uid, args.node) == ("p", "ml", "u", "a")
    assert json.loads(wire.bound()) == {"Error": ""}
    assert json.loads(wire.bound("the pod is gone")) == {"Error": "the pod is gone"}
    with pytest.raises(wire.MalformedError):
        wire.read_binding(b'{"PodName": "p"}')


@pytest.mark.parametrize(
    "sent",
    [body(NodeNames=["n" * 200] * 30_000), body(Nodes={"items": [{"x": "y" * 99}] * 50_000}),
     body(Pod={"metadata": {"name": "p", "annotations": {"a": "x" * (4 << 20)}}}, NodeNames=[]),
     body(Pod={"metadata": {"name": "p" * 300}}, NodeNames=[]),
     body(Pod={"metadata": {"uid": "u" * 300}}, NodeNames=[])],
    ids=["names", "nodes", "pod", "name", "uid"],
)  # fmt: skip
def test_more_than_a_cluster_may_have_is_not_read(sent):
    with pytest.raises(wire.MalformedError):
        wire.read_args(sent)


def test_millions_of_nodes_are_refused_before_any_is_made(monkeypatch):
    monkeypatch.setattr(wire, "_outline", None)
    sent = b'{"Pod":{},"Nodes":{"items":[' + b"{}," * wire.MOST_PARTS + b"{}]}}"
    with pytest.raises(wire.MalformedError, match="lists and objects"):
        wire.read_args(sent)


@pytest.mark.parametrize("field", ["NodeNames", "Nodes"])
def test_a_short_body_may_not_name_more_nodes_than_there_can_be(field):
    many = [""] * (wire.MOST_NODES + 1)
    given = many if field == "NodeNames" else {"items": [{}] * len(many)}
    with pytest.raises(wire.MalformedError, match="more than 20,000 nodes"):
        wire.read_args(json.dumps({"Pod": {}, field: given}).encode())
