import pytest

from podium.search.program.expression import apply, field, name, number
from podium.search.program.program import Block, Constant, Guard, Program, Term, program_of
from podium.search.program.reader import parse
from podium.search.program.simplify import simplify
from podium.search.program.writer import write

CPU = field("pod.cpu_milli")
FREE = field("node.cpu_milli_left")
RATIO = apply("/", CPU, apply("max", number(1), FREE))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (apply("+", RATIO, number(0)), RATIO),
        (apply("+", number(0), RATIO), RATIO),
        (apply("*", RATIO, number(1)), RATIO),
        (apply("*", number(0), RATIO), number(0)),
        (apply("-", RATIO, RATIO), number(0)),
        (apply("-", number(0), RATIO), apply("neg", RATIO)),
        (apply("+", RATIO, apply("neg", CPU)), apply("-", RATIO, CPU)),
        (apply("+", number(2), number(3)), number(5)),
        (apply("int", number(2.7)), number(2)),
        (apply("int", CPU), CPU),
        (apply("abs", CPU), CPU),
        (apply("max", number(0), CPU), CPU),
        (apply("min", CPU, CPU), CPU),
        (apply("max", number(1), apply("max", number(1), CPU)), apply("max", number(1), CPU)),
        (apply("if", apply("<", number(2), number(1)), CPU, FREE), FREE),
        (apply("if", apply("<", CPU, number(0)), CPU, FREE), FREE),
        (apply("if", apply("<", CPU, FREE), FREE, FREE), FREE),
        (
            apply("if", apply("not", apply("<", CPU, FREE)), CPU, FREE),
            apply("if", apply(">=", CPU, FREE), CPU, FREE),
        ),
        (apply("neg", apply("neg", CPU)), CPU),
        (apply("/", number(0), number(3)), number(0)),
        (apply("/", CPU, number(0)), apply("/", CPU, number(0))),
    ],
)
def test_an_operation_that_does_nothing_goes(before, after):
    assert simplify(program_of(before)).block.result == after


def test_unused_terms_and_constants_go():
    program = program_of(
        CPU, Term("unused", RATIO), Term("more", name("unused")),
        constants=(Constant("WEIGHT", 1.0, (0.0, 2.0)),),
    )  # fmt: skip
    assert simplify(program) == program_of(CPU)


def test_two_terms_that_compute_the_same_become_one():
    program = program_of(
        apply("+", name("one"), name("two")), Term("one", RATIO), Term("two", RATIO)
    )
    assert simplify(program) == program_of(apply("+", name("one"), name("one")), Term("one", RATIO))


def test_a_part_that_a_term_already_has_refers_to_it():
    program = program_of(apply("-", apply("*", RATIO, CPU), name("one")), Term("one", RATIO))
    expected = apply("-", apply("*", name("one"), CPU), name("one"))
    assert simplify(program).block.result == expected


def test_guards_that_never_or_always_hold_go():
    never = Guard(apply("<", CPU, number(0)), Block((), number(1)))
    always = Guard(apply(">=", CPU, number(0)), Block((), number(2)))
    assert simplify(Program(Block((never,), CPU))).block == Block((), CPU)
    assert simplify(Program(Block((never, always), CPU))).block == Block((), number(2))


def test_a_guard_that_returns_what_is_returned_anyway_goes():
    guard = Guard(apply("<", CPU, FREE), Block((), RATIO))
    assert simplify(Program(Block((guard,), RATIO))).block == Block((), RATIO)


def test_tunable_constants_are_not_folded():
    program = parse(
        "from podium.policies import tunable\n\nW = tunable(1, 0, 2)\n\n\n"
        "def score(pod, node):\n    return W * node.gpu_count\n"
    )
    assert "W * node.gpu_count" in write(simplify(program))


def test_a_loop_over_all_slots_that_adds_up_what_is_free_needs_only_the_gpus():
    program = parse(
        "def score(pod, node):\n    n = 0\n    for slot in range(len(node.gpu_milli_left)):\n"
        "        n += node.gpu_milli_left[slot]\n    return n\n"
    )
    assert "range(node.gpu_count)" in write(simplify(program))
