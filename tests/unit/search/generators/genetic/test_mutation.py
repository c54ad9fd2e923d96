import numpy as np
import pytest

from podium.search.generators.genetic.breeding import (
    BreedingSettings,
    breed,
    finished,
    random_program,
)
from podium.search.generators.genetic.crossover import (
    CROSSOVERS,
    add_term,
    average,
    exchange_part,
    split_by_class,
)
from podium.search.generators.genetic.growth import (
    GROWTHS,
    break_ties,
    insert_change,
    insert_term,
    once_placed,
    see_gpu,
)
from podium.search.generators.genetic.mutation import (
    MUTATIONS,
    delete_term,
    hoist,
    jitter_constant,
    jitter_number,
    jittered,
    quantise,
)
from podium.search.generators.genetic.plain_growth import PLAIN_GROWTHS
from podium.search.generators.genetic.seeds import seeds
from podium.search.generators.genetic.worth import refine_worth
from podium.search.program.expression import number
from podium.search.program.ingredients import INGREDIENTS
from podium.search.program.layout import text_of
from podium.search.program.program import Guard, complexity, program_of, terms
from podium.search.program.reader import parse
from podium.search.program.writer import write
from support.bred import brood

OPERATORS = list({**MUTATIONS, **GROWTHS, **PLAIN_GROWTHS})


def _rng(seed=1):
    return np.random.default_rng(seed)


def _refined(seed):
    return finished(refine_worth(_rng(seed), seeds()["typical"]))


@pytest.mark.deep
@pytest.mark.parametrize("operator", OPERATORS, ids=lambda each: each.__name__)
def test_an_operator_makes_programs_that_can_be_finished(operator):
    made = 0
    for seed in range(8):
        for parent in [*seeds().values(), _refined(seed), *brood(20)]:
            child = operator(_rng(seed), parent)
            done = finished(child) if child is not None else None
            if done is not None:
                made += 1
                assert parse(write(done)) == done
    assert made > 5


@pytest.mark.deep
@pytest.mark.parametrize("crossover", CROSSOVERS, ids=lambda each: each.__name__)
def test_a_crossover_makes_programs_that_can_be_finished(crossover):
    people = [*seeds().values(), *map(_refined, range(4))]
    made = 0
    for seed in range(4):
        for one in people:
            for other in people:
                child = crossover(_rng(seed), one, other)
                done = finished(child) if child is not None else None
                if done is not None:
                    made += 1
                    assert parse(write(done)) == done
    assert made > 20


def test_growing_adds_and_deleting_takes_away():
    parent = seeds()["best-fit"]
    assert complexity(insert_term(_rng(), parent)) > complexity(parent)
    assert complexity(delete_term(_rng(), parent)) < complexity(parent)
    assert complexity(hoist(_rng(), parent)) < complexity(parent)


def test_a_guard_that_a_crossover_made_can_be_taken_back():
    parent = seeds()["convex"]
    child = split_by_class(_rng(), parent, seeds()["first-fit"])
    assert isinstance(child.block.statements[-1], Guard)
    plain = [delete_term(_rng(seed), child) for seed in range(20)]
    assert any(program.block == parent.block for program in plain)


def test_quantising_cuts_into_whole_steps():
    drawn = (finished(quantise(_rng(seed), seeds()["convex"])) for seed in range(20))
    assert any("int(" in write(program) for program in drawn if program is not None)


def test_seeing_each_gpu_changes_the_signature():
    assert "def score(pod, node, gpu):" in write(finished(see_gpu(_rng(), seeds()["packed"])))


def test_what_breaks_ties_keeps_the_score_and_adds_little_to_it():
    parent = seeds()["balanced"]
    for seed in range(30):
        child = break_ties(_rng(seed), parent)
        head, (kept, fine) = child.block.result.head, child.block.result.arguments
        assert head in ("+", "-")
        assert kept == parent.block.result
        weights = {each.name: each.value for each in child.constants if each.name in fine.names}
        assert 0.01 <= weights["FINE_WEIGHT"] <= 0.5


def test_the_score_of_another_program_counts_for_as_much_or_less():
    one, other = seeds()["balanced"], seeds()["best-fit"]
    children = [average(_rng(seed), one, other) for seed in range(50)]
    shares = [each.value for child in children for each in child.constants if each.name == "SHARE"]
    assert len(shares) == 50
    assert min(shares) < 0.05
    assert 0.5 < max(shares) <= 1


def test_tunable_constants_stay_within_their_bounds():
    program = parse(
        "from podium.policies import tunable\n\nW = tunable(1.0, 0.5, 1.5)\nN = tunable(3, 1, 4)\n"
        "\n\ndef score(pod, node):\n    return W * node.gpu_count + N\n"
    )
    seen = set()
    for seed in range(200):
        for constant in jitter_constant(_rng(seed), program).constants:
            low, high = constant.bounds
            assert low <= constant.value <= high
            seen.add(constant.value)
    assert len(seen) > 20


def test_numbers_move_and_whole_ones_stay_whole():
    moved = [jittered(_rng(seed), 8) for seed in range(50)]
    assert all(isinstance(value, int) and value != 8 for value in moved)
    assert jitter_number(_rng(), seeds()["balanced"]) != seeds()["balanced"]


def test_a_part_from_another_program_brings_its_terms_along():
    one, other = seeds()["first-fit"], seeds()["packed"]
    child = finished(add_term(_rng(), one, other))
    assert "tightest_gpu_milli" in write(child)


def test_a_class_of_pods_is_scored_as_the_other_program_does():
    child = split_by_class(_rng(), seeds()["packed"], seeds()["convex"])
    assert isinstance(child.block.statements[-1], Guard)
    assert exchange_part(_rng(), child, seeds()["balanced"]) is not None


def test_ingredients_are_what_their_names_say():
    rng = _rng()
    people = list(seeds().values())
    for _ in range(200):
        child = breed(rng, [people[int(rng.integers(len(people)))] for _ in range(2)]).program
        people[int(rng.integers(len(people)))] = child
        for term in terms(child.block):
            assert INGREDIENTS.get(term.name, term.expression) == term.expression


def test_offspring_keep_to_the_brood():
    rng = _rng()
    small = BreedingSettings(largest=25, may_take_gpu=False)
    parent = random_program(rng, small)
    for _ in range(100):
        parent = breed(rng, [parent, program_of(number(0))], small).program
        assert complexity(parent) <= 25
        assert not parent.takes_gpu


def test_a_program_without_anything_to_mutate_grows():
    child = breed(_rng(), [program_of(number(0))])
    assert complexity(child.program) > 1
    assert child.operators


def test_a_term_that_only_borrows_the_name_of_an_ingredient_keeps_its_meaning():
    parent = parse(
        "def score(pod, node):\n    gpu_milli_free = node.rack * pod.gpu_milli\n"
        "    gpu_milli_wanted = pod.gpu_count * pod.gpu_milli\n"
        "    gpu_milli_after = gpu_milli_free - gpu_milli_wanted\n"
        "    return gpu_milli_after + gpu_milli_free\n"
    )
    child = finished(parent)
    assert set(child.block.statements) == set(parent.block.statements)
    assert child.block.result == parent.block.result


def test_what_placing_the_pod_changes_is_what_it_takes():
    program = parse(
        "def score(pod, node):\n    free = 0\n    for slot in range(node.gpu_count):\n"
        "        free += node.gpu_milli_left[slot]\n    cpus = node.cpu_milli_left / 1000\n"
        "    return max(0, free / 1000 - cpus / 10)\n"
    )
    after = once_placed(program.block.result, program)
    assert text_of(after) == (
        "max(0, (free - pod.gpu_count * pod.gpu_milli) / 1000"
        " - (node.cpu_milli_left - pod.cpu_milli) / 1000 / 10)"
    )
    children = [insert_change(_rng(seed), program) for seed in range(20)]
    assert any(
        "pod.gpu_count * pod.gpu_milli" in write(finished(each)) for each in children if each
    )
