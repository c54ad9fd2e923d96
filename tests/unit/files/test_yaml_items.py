"""What it refuses is tested with the other reader, in `test_yaml_tree`."""

import io
from pathlib import Path

import pytest

from podium.files.yaml_items import parse_yaml_items
from podium.files.yaml_tree import parse_yaml


def pieces(text):
    return list(parse_yaml_items(io.StringIO(text), Path("f.yaml")))


TEXTS = [
    "a: 1\n---\n# nothing\n---\n~\n---\nb: [x, {c: 'd', e: null, f: '', g: ~, ? h : }]\n...\n",
    "when: 2023-01-01\nmode: 0644\non: yes\nempty: ''\nnull: x\n",
    'a: {b: [x, {c: d}], e: "q"}\nf:\n- g: h\n  i: |\n    two\n    lines\n- >\n  folded\n  text\n',
    "base: &b {x: '1', y: '2'}\nmore: {<<: *b, y: '3'}\nboth: {y: '0', <<: [*b, {x: z, w: v}]}",
    "a: &a [1, &k key, {b: c}]\nb: *a\n*k : d\n<<: text\n",
    "a: !!null x\nb: !!str null\nc: ! null\n",
]


@pytest.mark.parametrize("text", TEXTS)
def test_values_are_those_of_the_trees(text):
    trees = parse_yaml(io.StringIO(text), Path("f.yaml"))
    assert [(line, value) for line, value, _ in pieces(text)] == [
        (tree.line, tree.value()) for tree in trees
    ]


def test_items_come_with_their_lines_before_what_holds_them():
    text = "kind: List\nitems:\n- a: 1\n- &b\n  b: [2]\n- *b\nz: {items: [x]}\n"
    assert pieces(text) == [
        (3, {"a": "1"}, True), (4, {"b": ["2"]}, True), (6, {"b": ["2"]}, True),
        (1, {"kind": "List", "items": [], "z": {"items": ["x"]}}, False),
    ]  # fmt: skip


def test_elements_of_a_list_come_with_their_lines():
    assert pieces("- a: 1\n\n- [b]\n- c\n") == [
        (1, {"a": "1"}, False), (3, ["b"], False), (4, "c", False),
    ]  # fmt: skip
