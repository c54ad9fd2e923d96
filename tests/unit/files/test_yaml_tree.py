import io
from pathlib import Path

import pytest
import yaml

from podium.errors import InputError
from podium.files.yaml_tree import MAX_DEPTH, parse_yaml


def trees(text):
    return list(parse_yaml(io.StringIO(text), Path("f.yaml")))


def values(text):
    return [tree.value() for tree in trees(text)]


def test_documents_come_one_by_one_and_empty_ones_are_left_out():
    assert values("a: 1\n---\n# nothing\n---\n~\n---\n- x\n...\n") == [{"a": "1"}, ["x"]]


def test_texts_stay_as_they_were_written():
    text = "{when: 2023-01-01, mode: 0644, on: yes, ratio: 1:30, half: .5, n: null, q: '~', e: ''}"
    assert values(text) == [
        {"when": "2023-01-01", "mode": "0644", "on": "yes", "ratio": "1:30", "half": ".5",
         "n": None, "q": "~", "e": ""}
    ]  # fmt: skip


def test_the_structure_is_the_one_that_pyyaml_builds():
    text = """
    a: {b: [x, {c: d}], e: "q"}
    f:
    - g: h
      i: |
        two
        lines
    - >
      folded
      text
    """
    assert values(text) == [yaml.safe_load(text)]


def test_aliases_and_merge_keys_stand_for_what_they_name():
    text = (
        "base: &b {x: '1', y: '2'}\nmore: {<<: *b, y: '3'}\nboth: {y: '0', <<: [*b, {x: z, w: v}]}"
    )
    assert values(text)[0]["more"] == {"x": "1", "y": "3"}
    assert values(text)[0]["both"] == {"x": "1", "y": "0", "w": "v"}


def test_a_few_aliases_of_aliases_are_fine():
    lines = ["a0: &a0 [x, x]"] + [f"a{i}: &a{i} [*a{i - 1}, *a{i - 1}]" for i in range(1, 12)]
    assert len(values("\n".join(lines))[0]) == 12


def test_scalars_and_lists_have_no_keys():
    assert trees("[a]")[0].get("a") is None
    assert trees("a")[0].get("a") is None


def test_parts_know_where_they_stand():
    text = "a: 1\nb:\n  cé: 😀x\n"
    node = trees(text)[0].get("b").get("cé")
    assert (node.line, node.column, text[node.start : node.end]) == (3, 6, "😀x")


def test_the_last_of_two_equal_keys_wins():
    assert values("a: 1\na: 2") == [{"a": "2"}]
    assert trees("a: 1\na: 2")[0].get("a").text == "2"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a: b\nc: [", 3),
        ("a: b\n\tc: d", 2),
        ("a: *x", 1),
        ("a: &x [*x]", 1),
        ("? [a]\n: b", 1),
        ("a: b\n'c", 2),
        ("a: \x00", 0),
    ],
)
def test_bad_yaml_is_an_input_error_with_its_line(text, line):
    with pytest.raises(InputError) as caught:
        trees(text)
    assert caught.value.where == "f.yaml" + (f", line {line}" if line else "")


@pytest.mark.parametrize("text", ["[" * 100_000, "- " * 100_000, "{a: " * 100_000])
def test_deep_nesting_is_refused(text):
    with pytest.raises(InputError, match="nested more than"):
        trees(text)


def test_depth_behind_aliases_counts():
    deep = "[" * (MAX_DEPTH - 10) + "]" * (MAX_DEPTH - 10)
    with pytest.raises(InputError, match="nested more than"):
        trees(f"a: &a {deep}\nb: [[[[[[[[[[[*a]]]]]]]]]]]")
