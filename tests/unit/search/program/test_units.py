import numpy as np

from podium.search.generators.genetic.breeding import random_program
from podium.search.program.expression import apply, field, name, number, reduction
from podium.search.program.program import roots
from podium.search.program.units import (
    BOOLEAN,
    COUNT,
    CPU,
    GPU,
    RATIO,
    divided,
    is_typed,
    unit_of,
    unit_of_name,
    units_of,
)

POD, FREE = field("pod.cpu_milli"), field("node.cpu_milli_left")


def test_ratios_come_from_like_quantities():
    assert unit_of(apply("/", POD, FREE), {}) == RATIO
    assert unit_of(apply("/", POD, field("pod.gpu_milli")), {}) == divided(CPU, GPU)
    assert unit_of(apply("*", field("pod.gpu_count"), field("pod.gpu_milli")), {}) == GPU
    assert unit_of(apply("int", apply("/", POD, FREE)), {}) == COUNT
    assert unit_of(reduction("sum", number(1)), {}) == COUNT
    assert unit_of(reduction("sum", field("left")), {}) == GPU
    assert unit_of(apply("<", POD, FREE), {}) == BOOLEAN


def test_constants_carry_their_unit_in_their_name():
    assert unit_of(apply("/", POD, name("CPU_MILLI_MAX")), {"CPU_MILLI_MAX": CPU}) == RATIO
    assert unit_of_name("GPU_MILLI_LIMIT") == GPU
    assert unit_of_name("CPU_MILLI_PER_GPU") == divided(CPU, GPU)
    assert unit_of_name("CPUS_PER_GPU") == divided(CPU, GPU)


def test_a_thousand_for_each_of_so_many_gpus_is_gpu_milli():
    assert unit_of(apply("*", number(1000), field("node.gpu_count")), {}) == GPU
    assert unit_of(apply("*", number(3), field("node.gpu_count")), {}) == COUNT


def test_only_like_quantities_add_up():
    assert is_typed(apply("+", POD, FREE), {})
    assert is_typed(apply("+", POD, number(3)), {})
    assert not is_typed(apply("+", POD, field("pod.memory_mib")), {})
    assert not is_typed(apply("<", POD, apply("/", POD, FREE)), {})


def test_drawn_programs_compare_and_add_only_like_quantities():
    rng = np.random.default_rng(1)
    for _ in range(200):
        program = random_program(rng)
        units = units_of(program)
        assert all(is_typed(root, units) for root in roots(program.block))
