from dataclasses import replace

import numpy as np
import pytest

from podium.search.candidate.gates import Candidate, read_candidate
from podium.search.generators.genetic.breeding import BreedingSettings, finished
from podium.search.generators.genetic.seeds import seeds
from podium.search.generators.genetic.worth import (
    MOST_STEPS,
    WORTH_GROWTHS,
    change_steps,
    insert_level,
    insert_square,
    insert_worth,
    refine_worth,
)
from podium.search.program.program import terms
from podium.search.program.reader import parse
from podium.search.program.shape import with_new_names
from podium.search.program.writer import write

LARGE = BreedingSettings(largest=220)


def _rng(seed=1):
    return np.random.default_rng(seed)


def _child(operator, parent, seed=1):
    """Grows a program and finishes it, as breeding does."""
    child = operator(_rng(seed), parent)
    return with_new_names(finished(child, LARGE), [parent])


@pytest.fixture(scope="module")
def refined():
    """Counts parts of GPUs by their worth, in the seed that knew one limit."""
    return _child(refine_worth, seeds()["typical"])


def test_a_worth_takes_the_place_of_one_limit(refined):
    text = write(refined)
    assert "SMALL_GPU_MILLI" not in text
    names = {term.name for term in terms(refined.block)}
    assert {"worth_before", "worth_taken", "worth_after"} <= names
    assert {each.name for each in refined.functions} == {"worth", "starved"}
    assert isinstance(read_candidate(text), Candidate)
    assert parse(text) == refined


def test_a_worth_begins_close_to_the_limit_that_it_replaces():
    typical = seeds()["typical"]
    tuned = replace(
        typical,
        constants=tuple(
            replace(each, value=316.3) if each.name == "SMALL_GPU_MILLI" else each
            for each in typical.constants
        ),
    )
    values = {each.name: each.value for each in _child(refine_worth, tuned, 3).constants}
    assert values["STEP_GPU_MILLI"] == 316.3
    assert 316.3 < values["STEP_GPU_MILLI_2"] <= 500
    middle = (316.3 + values["STEP_GPU_MILLI_2"]) / 2
    assert 0.84 * middle < values["WORTH_GPU_MILLI"] < 1.06 * middle


def test_the_worth_of_the_gpu_that_the_pod_goes_to_is_what_counts_where_it_is_known():
    by_gpu = replace(seeds()["typical"], takes_gpu=True)
    text = write(finished(insert_worth(_rng(), by_gpu), replace(LARGE, growing=0.0)))
    assert "worth(gpu_milli_here) - worth(gpu_milli_behind_here)" in text
    by_node = write(_child(insert_worth, seeds()["typical"]))
    assert "worth(tightest_gpu_milli) - worth(gpu_milli_behind)" in by_node


def test_every_level_of_cpu_has_a_constant_of_its_own(refined):
    once = _child(insert_level, refined)
    twice = _child(insert_level, once, 2)
    levels = [each for each in twice.constants if each.name.startswith("CPUS_PER_GPU")]
    assert len(levels) == 3
    assert all(each.bounds[0] > 0 for each in levels)
    assert len([each for each in twice.functions if each.name == "starved"]) == 1


def test_the_steps_of_a_worth_are_added_in_order_and_taken_away(refined):
    def limits(program):
        values = {each.name: each.value for each in program.constants}
        rest, found = program.functions[0].expression, []
        while rest.head == "if":
            condition, _, rest = rest.arguments
            found.append(values[condition.arguments[1].value])
        return found

    counts = set()
    for seed in range(12):
        child = change_steps(_rng(seed), refined)
        assert limits(child) == sorted(limits(child))
        counts.add(len(limits(child)) - len(limits(refined)))
    assert counts == {-1, 1}
    program = refined
    for seed in range(30):
        program = change_steps(_rng(seed), program)
        assert len(limits(program)) <= MOST_STEPS


def test_a_square_is_counted_before_and_after(refined):
    text = write(_child(insert_square, refined))
    assert text.count("** 2") == 2


@pytest.mark.parametrize("operator", WORTH_GROWTHS, ids=lambda each: each.__name__)
def test_without_ingredients_there_is_none_of_it(operator):
    plain = replace(seeds()["typical"], draws_ingredients=False)
    assert operator(_rng(), plain) is None
