"""Names of nodes are found in their JSON as a JSON reader finds them."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.kube import LiveState
from podium.service.extender import wire
from podium.service.extender.names import NamesAt, NodeNames
from support.kubelike import gpu_node

NAMES = st.lists(
    st.sampled_from(["a", "ab", "node-1", "node-12", "ü", "x" * 300, "", 'q"\\', "n/a"])
)


@pytest.fixture(scope="module", autouse=True)
def compiled():
    """Compiles before any test is timed."""
    NodeNames().find(b"[]")


def found(known, text):
    """Finds names as the extender does, and checks that they are those of a JSON reader."""
    names = NodeNames().see(known).find(text)
    if names is not None:
        index = {name: at for at, name in enumerate(known) if name}
        assert [*names] == json.loads(text)
        assert names.at.tolist() == [index[name] for name in json.loads(text)]
    return names


@given(st.lists(st.sampled_from(["a", "b", "ab", "ba", "node-1", "node-12"]), unique=True).map(
    lambda names: [*names, ""]), st.data())  # fmt: skip
def test_known_names_are_found_in_any_order(known, data):
    asked = data.draw(st.permutations(known[:-1]))
    text = json.dumps(asked, separators=(",", ":")).encode()
    assert (found(known, text) is not None) == bool(asked)


@given(NAMES, NAMES, st.sampled_from([(",", ":"), (", ", ": ")]), st.booleans())
def test_what_is_found_is_what_a_json_reader_reads(known, asked, separators, is_ascii):
    known = [*dict.fromkeys(known)]
    found(known, json.dumps(asked, separators=separators, ensure_ascii=is_ascii).encode())


@given(st.binary(max_size=12) | st.text('[]",ab ', max_size=12).map(str.encode))
def test_what_is_no_list_of_names_is_never_found(text):
    names = NodeNames().see(["a", "b"]).find(text)
    if names is not None:
        assert [*names] == json.loads(text)


def test_more_names_than_there_are_nodes_are_left_to_the_reader():
    assert found(["a"], b'["a","a"]') is None


def test_names_follow_nodes_that_come_and_go():
    state, names = LiveState(), NodeNames()
    state.replace("Node", [gpu_node("a"), gpu_node("b")])
    before = names.see(state.names).find(b'["b","a"]')
    state.replace("Node", [gpu_node("b"), gpu_node("c")])
    after = names.see(state.names).find(b'["c","b"]')
    assert ([*before], [*after]) == (["b", "a"], ["c", "b"])
    assert names.find(b'["a"]') is None


def test_names_by_index_are_a_sequence():
    names = NamesAt(["a", "b", "c"], np.array([2, 0]))
    assert (len(names), names[0], [*names[1:]], names.index("a")) == (2, "c", ["a"], 1)


@given(st.lists(st.sampled_from(["a", "b", "zz", 'q"'])), st.booleans())
def test_a_body_is_read_alike_either_way(asked, has_nodes):
    nodes = {"items": [{"metadata": {"name": "n"}}]} if has_nodes else None
    body = json.dumps({"Pod": {"metadata": {"uid": "u"}}, "Nodes": nodes, "NodeNames": asked},
                      separators=(",", ":")).encode()  # fmt: skip
    plain = wire.read_args(body)
    quick = wire.read_args(body, NodeNames().see(["a", "b"]).find)
    assert [*quick.node_names] == plain.node_names
    assert (quick.pod, quick.raw_pod, quick.nodes) == (plain.pod, plain.raw_pod, plain.nodes)
