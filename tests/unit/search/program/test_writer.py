import itertools
import math

import pytest

from podium.search.candidate.gates import read_candidate
from podium.search.program.expression import (
    HOLD,
    Expression,
    apply,
    field,
    name,
    number,
    reduction,
)
from podium.search.program.ingredients import INGREDIENTS
from podium.search.program.layout import text_of
from podium.search.program.program import Block, Constant, Guard, Program, Term, program_of
from podium.search.program.reader import parse
from podium.search.program.writer import comment_on, phrase, write

A, B, C = name("a"), name("b"), name("c")


def test_operations_get_the_parentheses_that_they_need_and_no_others():
    assert text_of(apply("-", A, apply("-", B, C))) == "a - (b - c)"
    assert text_of(apply("-", apply("-", A, B), C)) == "a - b - c"
    assert text_of(apply("*", apply("+", A, B), C)) == "(a + b) * c"
    assert text_of(apply("/", A, apply("*", B, C))) == "a / (b * c)"
    assert text_of(apply("neg", apply("+", A, B))) == "-(a + b)"
    assert text_of(apply("power", number(-2), number(2))) == "(-2) ** 2"
    assert text_of(apply("power", A, number(2))) == "a**2"
    assert text_of(apply("if", A, apply("if", B, A, C), C)) == "(a if b else c) if a else c"
    assert text_of(apply("not", apply("or", A, B))) == "not (a or b)"


def test_neighbouring_comparisons_are_written_as_one():
    between = apply("and", apply("<", number(0), A), apply("<", A, B))
    assert text_of(between) == "0 < a < b"
    assert text_of(apply("and", apply("<", number(0), A), apply(">", A, B))) == "0 < a and a > b"


def test_a_negated_number_is_a_negative_one():
    assert apply("neg", number(3)) == number(-3)


def test_a_whole_program_is_written_as_a_person_would():
    gap = apply("-", name("gpu_milli_free"), field("pod.gpu_milli"))
    program = Program(
        block=Block(
            (
                Guard(apply("==", field("pod.gpu_count"), number(0)), Block((), HOLD)),
                Term("gpu_milli_free", INGREDIENTS["gpu_milli_free"]),
                Term("free", reduction("sum", number(1), apply("==", field("left"), number(1000)))),
            ),
            apply("+", apply("*", name("WEIGHT"), gap), name("free")),
        ),
        constants=(Constant("WEIGHT", 0.5, (0.0, 1.0)),),
        summary="Packs.",
    )
    assert (
        write(program)
        == '''"""Packs."""

from podium.policies import HOLD, tunable

WEIGHT = tunable(0.5, 0.0, 1.0)


def score(pod, node):
    """Scores a pod on a node; the highest score wins."""
    if pod.gpu_count == 0:
        return HOLD
    # Free GPU milli of the node.
    gpu_milli_free = 0
    # GPUs that nobody uses.
    free = 0
    for slot in range(node.gpu_count):
        left = node.gpu_milli_left[slot]
        gpu_milli_free += left
        if left == 1000:
            free += 1
    return WEIGHT * (gpu_milli_free - pod.gpu_milli) + free
'''
    )
    assert parse(write(program)) == program


def test_a_loop_that_needs_an_earlier_loop_follows_it():
    limit = apply("<", field("left"), name("most"))
    program = program_of(
        name("below"),
        Term("most", reduction("largest", field("left"))),
        Term("below", reduction("sum", number(1), limit)),
    )
    assert write(program).count("for slot") == 2
    assert parse(write(program)) == program


def test_long_scores_are_broken_over_lines_and_read_back():
    long = field("node.memory_mib_total")
    total = apply("+", apply("*", long, long), apply("*", number(0.123456789), long))
    for head in ("+", "*", "and", "min", "if"):
        width = 3 if head == "if" else 2
        whole = apply(head, *([apply("<", total, number(1)) if head == "and" else total] * width))
        program = program_of(apply("-", whole, number(1)) if head != "and" else whole)
        text = write(program)
        assert max(len(line) for line in text.splitlines()) <= 100
        assert parse(text) == program


def test_docstrings_with_quotes_and_backslashes_read_back():
    for summary in ('Says "so".', "A \\ b", 'Ends with "quotes"', "Two\n\nparagraphs."):
        program = Program(Block((), number(0)), summary=summary)
        assert parse(write(program)) == program


def test_a_program_that_sees_each_gpu_says_so_in_its_signature():
    program = Program(Block((), field("node.gpu_milli_left[gpu]")), takes_gpu=True)
    assert "def score(pod, node, gpu):" in write(program)
    assert parse(write(program)) == program


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        (apply("-", A, apply("-", B, C)), "a less (b less c)"),
        (apply("-", apply("-", A, B), C), "a less b less c"),
        (apply("*", A, apply("+", B, C)), "a times (b plus c)"),
        (apply("*", apply("+", A, B), C), "a plus b, times c"),
        (apply("-", A, apply("*", apply("+", A, B), C)), "a less (a plus b) times c"),
        (apply("abs", apply("-", A, B)), "the size of (a less b)"),
        (apply("-", apply("abs", A), B), "(the size of a) less b"),
        (apply("-", A, apply("abs", B)), "a less the size of b"),
        (apply("-", apply("+", A, apply("min", B, C)), A), "a plus (the least of b and c) less a"),
        (apply("power", apply("+", A, B), number(2)), "(a plus b) squared"),
        (apply("or", A, apply("and", B, C)), "a or b and c"),
        (apply("and", A, apply("or", B, C)), "a and (b or c)"),
        (apply("not", apply("or", A, B)), "not (a or b)"),
        (apply("+", A, apply("if", B, A, C)), "a plus (a where b, else c)"),
        # Words of seeds, which are part of plans: no letter of them may change.
        (apply("*", apply("/", A, B), apply("/", C, B)), "a over b, times c over b"),
        (apply("/", apply("-", A, B), apply("max", B, C)), "a less b, over the most of b and c"),
        (apply("/", A, apply("max", B, apply("*", B, C))), "a over the most of b and b times c"),
    ],
)  # fmt: skip
def test_words_get_the_brackets_that_they_need_and_no_others(expression, words):
    assert phrase(expression) == words


VALUES = {"a": 3.7, "b": -1.9, "c": 0.6}
OPERATIONS = {
    "+": lambda x, y: x + y, "-": lambda x, y: x - y, "*": lambda x, y: x * y,
    "/": lambda x, y: x / y if y else 0.0, "min": min, "max": max,
    "neg": lambda x: -x, "abs": abs, "sqrt": lambda x: math.sqrt(abs(x)),
}  # fmt: skip


def value_of(expression):
    if expression.head == "name":
        return VALUES[expression.value]
    return OPERATIONS[expression.head](*map(value_of, expression.arguments))


def test_formulas_with_other_values_have_other_words():
    one = [A, B, C]
    two = one + [Expression(head, (each,)) for head in ("neg", "abs", "sqrt") for each in one]
    pairs = ("+", "-", "*", "/", "min", "max")
    two += [Expression(head, both) for head in pairs for both in itertools.product(one, one)]
    three = [Expression(head, both) for head in pairs for both in itertools.product(two, two)]
    three += [Expression(head, (each,)) for head in ("neg", "abs", "sqrt") for each in two]
    known = {}
    for expression in three:
        value = known.setdefault(phrase(expression), value_of(expression))
        assert value == pytest.approx(value_of(expression)), phrase(expression)


def test_words_are_no_part_of_what_tells_programs_apart():
    gap = apply("-", field("pod.cpu_milli"), apply("-", field("pod.gpu_milli"), name("LEAST")))
    program = Program(
        block=Block((Term("gap", gap),), name("gap")), constants=(Constant("LEAST", 10),)
    )
    text, bare = write(program), write(program, {})
    assert f"# {comment_on(gap)}" in text
    assert "(" in comment_on(gap)
    assert "#" not in bare
    assert read_candidate(text).fingerprint == read_candidate(bare).fingerprint
    assert parse(text) == parse(bare) == program
