from dataclasses import replace

import numpy as np
import pytest

from podium.search.generators.genetic.breeding import finished
from podium.search.generators.genetic.crossover import average
from podium.search.generators.genetic.positions import Draft, ingredient_units
from podium.search.generators.genetic.seeds import seeds
from podium.search.program.bounds import is_sound
from podium.search.program.expression import apply, name, number
from podium.search.program.ingredients import CONSTANTS, INGREDIENTS, NOTES
from podium.search.program.program import Constant, Program, Term, program_of, terms
from podium.search.program.reader import parse
from podium.search.program.units import CPU, GPU, divided
from podium.search.program.writer import write
from support.bred import policy, score, views

USUAL = CONSTANTS["CPUS_PER_GPU"]


def _stranding(*constants: Constant) -> Program:
    ratio = apply("/", name("stranded_gpu_milli_more"), number(1000))
    return finished(program_of(ratio, constants=constants))


def test_an_ingredient_brings_the_constant_that_it_is_made_of():
    program = _stranding()
    assert program.constants == (USUAL,)
    assert parse(write(program)) == program


def test_the_constant_comes_along_where_only_it_is_referred_to():
    ratio = apply("/", name("cpu_per_gpu_total"), name("CPUS_PER_GPU"))
    assert finished(program_of(ratio)).constants == (USUAL,)


def test_the_constant_is_not_drawn_where_a_term_has_its_name():
    free, taken = program_of(number(0)), program_of(number(0), Term("CPUS_PER_GPU", number(1)))
    assert Draft.at(free, set(), {}).is_usual_known
    assert not Draft.at(taken, set(), {}).is_usual_known


def test_a_constant_that_is_there_already_keeps_its_value():
    own = replace(USUAL, value=14.5)
    assert _stranding(own).constants == (own,)


def test_a_constant_that_may_become_zero_is_guarded_where_an_ingredient_divides_by_it():
    loose = Constant("CPUS_PER_GPU", 5.0, (0.0, 60.0))
    program = _stranding(loose)
    divisors = [term for term in terms(program.block) if "CPUS_PER_GPU" in term.expression.names]
    assert divisors
    assert all(INGREDIENTS.get(term.name) != term.expression for term in divisors)
    assert is_sound(program)


def test_two_parents_share_one_constant_and_one_definition():
    one, other = _stranding(replace(USUAL, value=8.0)), _stranding(replace(USUAL, value=12.0))
    child = finished(average(np.random.default_rng(1), one, other))
    own = tuple(each for each in child.constants if each.name != "SHARE")
    assert own == (replace(USUAL, value=8.0),)
    assert len({term.name for term in terms(child.block)}) == len(one.block.statements)


def test_a_local_variable_of_the_same_name_is_no_ingredients_constant():
    parent = parse(
        "def score(pod, node):\n    CPUS_PER_GPU = 4 + pod.gpu_count\n"
        "    gpu_milli_free = 0\n    for slot in range(node.gpu_count):\n"
        "        gpu_milli_free += node.gpu_milli_left[slot]\n"
        "    stranded_gpu_milli_before = "
        "max(0, gpu_milli_free - node.cpu_milli_left / CPUS_PER_GPU)\n"
        "    return stranded_gpu_milli_before\n"
    )
    child = finished(parent)
    assert child.constants == ()
    for pod, node, gpu in views(20):
        assert score(policy(child), pod, node, gpu) == score(policy(parent), pod, node, gpu)


def _is_plain(pod, node, _gpu):
    return pod.gpu_count == 0 and pod.cpu_milli > 1 and node.gpu_count > 0


def test_gpu_is_stranded_where_cpu_runs_out_first():
    chosen = policy(_stranding(replace(USUAL, value=10.0)))
    pod, node, _ = next(view for view in views(200) if _is_plain(*view))
    free = 1000.0 * node.gpu_count
    gpus = tuple(1000 if i < node.gpu_count else 0 for i in range(len(node.gpu_milli_left)))
    node = node._replace(cpu_milli_left=10 * free, gpu_milli_left=gpus)
    assert score(chosen, pod, node, -1) == pytest.approx(pod.cpu_milli / 10 / 1000)


def test_every_ingredient_has_a_note_and_quantities_per_gpu_their_unit():
    assert all(NOTES[expression].endswith(".") for expression in INGREDIENTS.values())
    units = ingredient_units()
    assert units["stranded_gpu_milli_more"] == GPU
    assert units["cpu_per_gpu_total"] == divided(CPU, GPU)


def test_the_seed_that_keeps_cpu_beside_gpus_is_made_of_ingredients():
    named = {term.name for term in terms(seeds()["fed"].block)}
    assert named <= INGREDIENTS.keys()
