import pytest

from podium.search.generators.genetic.protection import protect
from podium.search.program.bounds import UNSOUND, Bounds, Known, bounds_of, is_sound
from podium.search.program.expression import apply, field, number
from podium.search.program.program import program_of
from podium.search.program.reader import parse

CPU, GPU = field("node.cpu_milli_left"), field("pod.gpu_milli")


def _bounds(expression):
    return bounds_of(expression, Known({}))


def test_bounds_follow_the_arithmetic():
    assert _bounds(GPU) == Bounds(0, 1000, True)
    assert _bounds(apply("-", GPU, number(500))) == Bounds(-500, 500, True)
    assert _bounds(apply("power", apply("-", GPU, number(500)), number(2))) == Bounds(
        0, 250000, False, True
    )
    assert _bounds(apply("int", apply("/", GPU, number(300)))) == Bounds(0, 4, True)
    assert _bounds(apply("abs", apply("-", number(1), GPU))) == Bounds(0, 999, True)
    assert _bounds(apply("if", apply("<", GPU, CPU), number(3), number(0.5))) == Bounds(
        0.5, 3, False, True
    )
    assert _bounds(apply("min", GPU, number(10))) == Bounds(0, 10, True)


@pytest.mark.parametrize(
    "expression",
    [
        apply("/", CPU, GPU),
        apply("%", CPU, GPU),
        apply("sqrt", apply("-", GPU, number(1))),
        apply("log", GPU),
        apply("exp", GPU),
        apply("*", apply("*", CPU, CPU), CPU),
        apply("*", apply("*", apply("max", CPU, number(0.5)), CPU), CPU),
        apply("power", apply("power", CPU, number(8)), number(8)),
        apply("int", apply("power", CPU, number(4))),
        apply("+", number(1), apply("/", CPU, GPU)),
    ],
)
def test_what_can_fail_or_overflow_is_unsound(expression):
    assert _bounds(expression) == UNSOUND
    assert not is_sound(program_of(expression))


@pytest.mark.parametrize("head", ["/", "//", "%"])
def test_denominators_that_can_be_zero_are_protected(head):
    program = protect(program_of(apply(head, CPU, GPU)))
    assert program.block.result == apply(head, CPU, apply("max", number(1), GPU))
    assert is_sound(program)
    assert protect(program) == program


def test_denominators_that_are_above_zero_are_left_alone():
    program = program_of(apply("/", CPU, apply("+", GPU, number(1))))
    assert protect(program) == program


def test_roots_logarithms_and_exponentials_are_protected():
    below = apply("-", GPU, number(500))
    for head in ("sqrt", "log", "exp"):
        assert is_sound(protect(program_of(apply(head, below))))


def test_a_protected_term_protects_what_refers_to_it():
    program = parse(
        "def score(pod, node):\n    room = max(1, node.gpu_count)\n"
        "    return pod.gpu_count / room\n"
    )
    assert protect(program) == program
    assert is_sound(program)
