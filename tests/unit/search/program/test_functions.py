import pytest

from podium.search.program.bounds import is_sound
from podium.search.program.reader import parse
from podium.search.program.simplify import simplify
from podium.search.program.units import GPU, units_of
from podium.search.program.writer import write
from support.bred import policy, score
from support.views import node, pod

TWO = """
def worth(gpu_milli):
    if gpu_milli < 300:
        return 0
    return gpu_milli


def value(milli):
    if milli < 300:
        return 0
    return milli


def half(gpu_milli):
    return worth(gpu_milli) / 2


def idle(gpu_milli):
    return gpu_milli * gpu_milli + 1


"""


def _simplified(result, functions=TWO):
    return simplify(parse(f"{functions}def score(pod, node):\n    return {result}\n"))


def test_functions_that_nobody_calls_go_and_those_that_are_called_by_others_stay():
    program = _simplified("half(pod.gpu_milli) - node.gpu_count")
    assert [each.name for each in program.functions] == ["worth", "half"]


def test_functions_that_compute_the_same_are_one():
    program = _simplified("worth(pod.gpu_milli) - value(node.gpu_count)")
    assert [each.name for each in program.functions] == ["worth"]
    assert "worth(pod.gpu_milli) - worth(node.gpu_count)" in write(program)


def test_what_a_function_does_not_use_is_not_given_to_it():
    helper = "def part(a, b):\n    return a * a + 1\n\n\n"
    program = _simplified("part(node.gpu_count, pod.cpu_milli)", helper)
    assert program.functions[0].parameters == ("a",)
    assert "part(node.gpu_count)" in write(program)


@pytest.mark.parametrize(
    ("helper", "left"),
    [
        ("def same(a):\n    return a\n\n\n", "return node.rack"),
        ("def less(a):\n    return -a\n\n\n", "return -node.rack"),
        ("def five(a):\n    return 5\n\n\n", "return 5"),
    ],
)
def test_functions_that_are_next_to_nothing_are_written_into_place(helper, left):
    name = helper[4:8]
    program = _simplified(f"{name}(node.rack)", helper)
    assert not program.functions
    assert left in write(program)


def test_functions_are_as_sound_as_what_is_given_to_them():
    helper = "def part(a, b):\n    return a / b\n\n\n"
    head = f"{helper}def score(pod, node):\n    return "
    assert is_sound(parse(f"{head}part(pod.cpu_milli, max(1, node.gpu_count))\n"))
    assert not is_sound(parse(f"{head}part(pod.cpu_milli, node.gpu_count)\n"))


def test_a_function_carries_units_in_the_names_of_its_parameters():
    assert units_of(parse(TWO + "def score(pod, node):\n    return half(1)\n"))["worth"] == GPU


def test_calls_in_calls_are_computed_from_the_inside():
    helper = "def less(a, b):\n    return a - 2 * b\n\n\n"
    program = parse(
        f"{helper}def score(pod, node):\n"
        "    return less(node.rack, less(pod.cpu_milli, less(3, pod.memory_mib)))\n"
    )
    expected = -1 - 2 * (10 - 2 * (3 - 2 * 7))
    assert score(policy(program), pod(cpu=10, memory=7), node(), -1) == expected
