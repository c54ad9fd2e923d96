import io
from pathlib import Path

import pytest

from podium.errors import InputError
from podium.files.yaml_items import parse_yaml_items
from podium.files.yaml_tree import MAX_DEPTH, parse_yaml


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


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a: b\nc: [", 3),
        ("a: *x", 1),
        ("a: &x [*x]", 1),
        ("? [a]\n: b", 1),
        ("a: &x [b]\n*x : c", 2),
        ("a: \x00", 0),
        ("a: 1\nb: 2\na: 3", 3),
        ("items:\n- a: {b: 1,\n  b: 2}", 3),
    ],
)
def test_bad_yaml_is_an_input_error_with_its_line(text, line):
    with pytest.raises(InputError) as caught:
        pieces(text)
    assert caught.value.where == "f.yaml" + (f", line {line}" if line else "")


@pytest.mark.parametrize("text", ["[" * 100_000, "- " * 100_000, "{a: " * 100_000])
def test_deep_nesting_is_refused(text):
    with pytest.raises(InputError, match="nested more than"):
        pieces(text)


def test_depth_behind_aliases_counts():
    deep = "[" * (MAX_DEPTH - 10) + "]" * (MAX_DEPTH - 10)
    with pytest.raises(InputError, match="nested more than"):
        pieces(f"a: &a {deep}\nb: [[[[[[[[[[[*a]]]]]]]]]]]")


def laughs(levels):
    lines = ["a0: &a0 [x, x]"]
    return lines + [f"a{i}: &a{i} [{f'*a{i - 1}, ' * 9}]" for i in range(1, levels)]


def merges(levels):
    lines = ["m0: &m0 {k: v}"]
    return lines + [f"m{i}: &m{i} {{<<: [{f'*m{i - 1}, ' * 9}]}}" for i in range(1, levels)]


@pytest.mark.parametrize("bomb", [laughs(12), laughs(40), merges(12), merges(40)])
def test_aliases_that_stand_for_far_more_than_is_written_are_refused(bomb):
    with pytest.raises(InputError, match="aliases stand for far more than is written"):
        pieces("\n".join(bomb))


def test_an_alias_of_a_long_text_counts_by_its_length():
    text = f"a: &a {'x' * 1_000_000}\n" + "b: [" + "*a, " * 200 + "]\n"
    with pytest.raises(InputError, match="aliases stand for far more than is written"):
        pieces(text)
