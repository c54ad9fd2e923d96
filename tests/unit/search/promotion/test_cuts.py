import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.search.program.expression import apply, name, number
from podium.search.program.program import Constant, complexity, program_of
from podium.search.program.reader import parse, parse_inlined
from podium.search.program.simplify import simplify
from podium.search.program.writer import write
from podium.search.promotion.cuts import cuts, decimals, roundings
from support import bred

HEAD = "def score(pod, node):\n"


def program_from(body):
    return parse(HEAD + "".join(f"    {line}\n" for line in body.splitlines()))


def without(program):
    """Lists the bodies that one cut leaves."""
    texts = [write(simplify(cut.program)) for cut in cuts(program)]
    return {text.split('wins."""\n')[1].replace("    ", "").strip() for text in texts}


@pytest.mark.parametrize(
    ("body", "left"),
    [
        ("return pod.gang + pod.priority", {"return pod.gang", "return pod.priority"}),
        ("return pod.gang - pod.priority", {"return pod.gang", "return -pod.priority"}),
        ("return pod.gang / max(1, pod.priority)", {"return pod.gang"}),
        ("return max(pod.gang, pod.priority, 3)", {"return max(pod.gang, pod.priority)"}),
        ("return pod.gang if pod.priority > 3 else 7", {"return pod.gang", "return 7"}),
        ("if pod.gang > 1:\n    return 5\nreturn 6", {"return 6", "return 5"}),
        ("return int(pod.gang / 3)", {"return pod.gang / 3", "return 0"}),
        (
            "n = 7\nfor slot in range(node.gpu_count):\n    if node.gpu_milli_left[slot] > 3:\n"
            "        n += node.gpu_milli_left[slot]\nreturn n",
            {"return 7"},
        ),
    ],
)
def test_what_one_cut_leaves(body, left):
    assert left <= without(program_from(body))


@pytest.mark.parametrize(
    "body",
    ["return pod.gang / max(1, pod.priority)", "return pod.gang // max(0.5, pod.priority)"],
)
def test_divisors_stay_protected(body):
    # What is divided by may shrink; that it is above 0 may not go.
    assert not [text for text in without(program_from(body)) if text.endswith("/ pod.priority")]


def test_exponents_and_what_loops_begin_with_stay():
    program = program_from("return pod.gang ** 3")
    assert {cut.key[0] for cut in cuts(program)} == {"pod.gang**3", "pod.gang"}


def test_every_cut_of_bred_programs_is_a_program_and_most_are_smaller():
    for program in bred.brood(40)[8::16]:
        found = cuts(program)
        saved = [cut.saved for cut in found]
        assert saved == sorted(saved, reverse=True)
        assert len({cut.key for cut in found}) == len(found)
        smaller = [simplify(cut.program) for cut in found]
        assert sum(complexity(each) < complexity(program) for each in smaller) > len(found) / 2
        for each in smaller[::7]:
            assert parse(write(each)) == each


@given(st.floats(1e-3, 1e3))
def test_numbers_lose_digits_and_little_else(value):
    weight = Constant("W", value, (0.0005, 1234.5))
    program = program_of(apply("*", name("W"), number(0.123456)), constants=(weight,))
    for shorter, words in roundings(program):
        assert shorter.constants[0].bounds == (0.0005, 1234.5)
        assert any(each == pytest.approx(value, rel=0.5) for each in decimals(shorter))
        assert "->" in words


def test_whole_numbers_stay_whole_and_small_ones_as_they_are():
    text = HEAD + "    return 123456 * pod.gang + 0.123456 + 64 * pod.gpu_count\n"
    told = {words for _, words in roundings(parse_inlined(text))}
    assert {"123456 -> 100000", "123456 -> 120000", "123456 -> 123000"} <= told
    assert not any(words.startswith("64") for words in told)
