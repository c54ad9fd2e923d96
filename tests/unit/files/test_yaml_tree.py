import io
from pathlib import Path

import pytest
import yaml

from podium.errors import InputError
from podium.files.yaml_items import parse_yaml_items
from podium.files.yaml_tree import (
    COPIES_PER_PART,
    FREE_COPIES,
    FREE_PARTS,
    LONGEST_VALUE,
    MAX_DEPTH,
    parse_yaml,
)


def trees(text):
    return list(parse_yaml(io.StringIO(text), Path("f.yaml")))


def values(text):
    return [tree.value() for tree in trees(text)]


def items(text):
    return list(parse_yaml_items(io.StringIO(text), Path("f.yaml")))


both_readers = pytest.mark.parametrize("read", [values, items])


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


@both_readers
@pytest.mark.parametrize(
    ("text", "line"),
    [("a: 1\na: 2", 2), ("x:\n- {b: 1,\n   b: 2}", 3), ("items:\n- a: {b: 1,\n  b: 2}", 3)],
)
def test_a_key_that_is_there_twice_is_an_error_with_its_line(read, text, line):
    with pytest.raises(InputError, match="is there twice") as caught:
        read(text)
    assert caught.value.where == f"f.yaml, line {line}"


@both_readers
@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a: b\nc: [", 3),
        ("a: b\n\tc: d", 2),
        ("a: *x", 1),
        ("a: &x [*x]", 1),
        ("? [a]\n: b", 1),
        ("a: b\n'c", 2),
        ("a: &x [b]\n*x : c", 2),
        ("a: \x00", 0),
    ],
)
def test_bad_yaml_is_an_input_error_with_its_line(read, text, line):
    with pytest.raises(InputError) as caught:
        read(text)
    assert caught.value.where == "f.yaml" + (f", line {line}" if line else "")


@both_readers
@pytest.mark.parametrize("text", ["[" * 100_000, "- " * 100_000, "{a: " * 100_000])
def test_deep_nesting_is_refused(read, text):
    with pytest.raises(InputError, match="nested more than"):
        read(text)


@both_readers
def test_depth_behind_aliases_counts(read):
    deep = "[" * (MAX_DEPTH - 10) + "]" * (MAX_DEPTH - 10)
    with pytest.raises(InputError, match="nested more than"):
        read(f"a: &a {deep}\nb: [[[[[[[[[[[*a]]]]]]]]]]]")


def laughs(levels):
    lines = ["a0: &a0 [x, x]"]
    return lines + [f"a{i}: &a{i} [{f'*a{i - 1}, ' * 9}]" for i in range(1, levels)]


def merges(levels):
    lines = ["m0: &m0 {k: v}"]
    return lines + [f"m{i}: &m{i} {{<<: [{f'*m{i - 1}, ' * 9}]}}" for i in range(1, levels)]


@both_readers
@pytest.mark.parametrize("bomb", [laughs(12), laughs(40), merges(12), merges(40)])
def test_aliases_that_stand_for_far_more_than_is_written_are_refused(read, bomb):
    with pytest.raises(InputError, match="aliases stand for far more than is written"):
        read("\n".join(bomb))


@both_readers
def test_an_alias_of_a_long_text_counts_by_its_length(read):
    text = f"a: &a {'x' * 1_000_000}\n" + "b: [" + "*a, " * 200 + "]\n"
    with pytest.raises(InputError, match="aliases stand for far more than is written"):
        read(text)


@pytest.mark.deep
def test_aliases_are_counted_by_document():
    shared = "- &a {k: [v, w], l: m}\n" + "- *a\n" * 2000
    assert 7 * 2000 < FREE_COPIES < 7 * 2000 * 10
    assert [len(each) for each in values("---\n".join([shared] * 10))] == [2001] * 10


def test_many_nodes_may_share_their_labels():
    nodes = "".join(f"- {{name: n{i}, labels: *l}}\n" for i in range(30_000))
    text = f"- &l {{{', '.join(f'k{i}: v{i}' for i in range(12))}}}\n{nodes}"
    assert FREE_COPIES < 25 * 30_000
    assert COPIES_PER_PART * 5 * 30_000 > 25 * 30_000
    assert len(values(text)[0]) == 30_001


@pytest.mark.deep
def test_parts_of_almost_nothing_are_refused_in_their_hundreds_of_thousands():
    with pytest.raises(InputError, match="parts of almost nothing"):
        trees("[" + "[]," * (FREE_PARTS + 9) + "]")
    assert trees("[" + "[], " * (FREE_PARTS // 4) + "]")


def test_a_text_without_end_is_refused():
    class Endless(io.StringIO):
        given = 0

        def read(self, size=-1):
            self.given += size
            return "x" * size

    stream = Endless()
    with pytest.raises(InputError, match="a text is longer than"):
        list(parse_yaml(stream, Path("f.yaml")))
    assert stream.given <= LONGEST_VALUE + (1 << 17)


def typed(text):
    return trees(text)[0].typed_value(Path("f.yaml"))


def test_typed_values_are_those_of_the_library():
    text = """
        a: [1, 0x10, 1.5, .inf, true, no, ~, null, "1", 'yes', text, 1_000, "", -3, 0o7, 010]
        b: {<<: &b {c: 1, d: two}, d: 2}
        e: [*b, !!str 5, !!int "6"]
        f: |
          9
    """
    assert typed(text) == yaml.safe_load(text)


@pytest.mark.parametrize("number", ["9" * 5000, "1" + ":1" * 100_000, "0x" + "f" * 9999])
def test_a_number_of_thousands_of_digits_is_a_text(number):
    assert typed(f"a: {number}") == {"a": number}


@pytest.mark.parametrize("text", ["a: !!int x", "a: !!python/name:os.system x", "a: 2023-99-99"])
def test_what_is_not_of_its_type_is_told_with_its_line(text):
    with pytest.raises(InputError, match=r"f\.yaml, line 1: .* cannot be read as"):
        typed(text)
