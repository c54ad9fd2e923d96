from dataclasses import replace
from pathlib import Path

import pytest

import podium.policies.discovered
from podium.search.generators.genetic.seeds import seeds
from podium.search.program.parameters import with_tunables
from podium.search.program.program import Constant
from podium.search.program.reader import parse_inlined
from podium.search.program.writer import write
from podium.search.promotion.lineage import lineage_of

SHIPPED = Path(podium.policies.discovered.__file__).parent


def shipped(name):
    return parse_inlined((SHIPPED / f"{name}.py").read_text(encoding="utf-8"), name)


@pytest.mark.parametrize("name", sorted(seeds()))
def test_every_seed_is_its_own_nearest_seed_and_unchanged(name):
    lineage = lineage_of(seeds()[name], seeds())
    assert (lineage.seed, lineage.is_unchanged) == (name, True)
    assert lineage.is_written
    assert lineage.added == lineage.dropped == lineage.constants == ()


@pytest.mark.parametrize("name", ["typical", "fed", "best-fit"])
def test_a_seed_with_other_numbers_and_weights_is_still_that_seed(name):
    tunable = with_tunables(seeds()[name])
    moved = replace(
        tunable,
        constants=tuple(
            Constant(each.name, each.value * 1.5, each.bounds) for each in tunable.constants
        ),
    )
    lineage = lineage_of(parse_inlined(write(moved), name), seeds())
    assert lineage.seed == name
    assert lineage.is_written
    assert not lineage.is_unchanged


def test_fed_gpu_is_typical_with_other_numbers_and_one_more_term():
    lineage = lineage_of(shipped("fed_gpu"), seeds())
    assert lineage.seed == "typical"
    assert len(lineage.kept) == len(lineage.added) == 1
    assert "gpu_milli_behind" in lineage.added[0]
    assert not lineage.is_written
    assert lineage.constants == (
        ("CPUS_PER_GPU", 10.0, 7.21),
        ("SMALL_GPU_MILLI", 100.0, 470.0),
        ("a number", 1000.0, 509.0),
    )
    assert "starved_gpu_milli_more" in lineage.ingredients


def test_what_was_left_out_of_a_seed_is_listed_too():
    text = (
        "def score(pod, node):\n    cpu_milli_after = node.cpu_milli_left - pod.cpu_milli\n"
        "    return (cpu_milli_after / max(1, node.cpu_milli_total) - 0.25) ** 2\n"
    )
    lineage = lineage_of(parse_inlined(text), {"convex": seeds()["convex"]})
    assert lineage.seed == "convex"
    assert len(lineage.kept) == 1
    assert len(lineage.dropped) == 1
    assert "gpu_ratio" in lineage.dropped[0]


def test_a_formula_that_shares_nothing_has_no_seed():
    program = parse_inlined("def score(pod, node):\n    return -pod.gang\n")
    lineage = lineage_of(program, seeds())
    assert lineage.seed == ""
    assert lineage.added == ("pod.gang",)
    assert lineage.as_object()["ingredients"] == []


INGREDIENT = """def score(pod, node):
    gpu_milli_free = 0
    for slot in range(node.gpu_count):
        gpu_milli_free += node.gpu_milli_left[slot]
    gpu_milli_after = gpu_milli_free - pod.gpu_count * pod.gpu_milli
    cpu_milli_after = node.cpu_milli_left - pod.cpu_milli
    before = max(0, gpu_milli_free - node.cpu_milli_left / 14.5)
    after = max(0, gpu_milli_after - cpu_milli_after / 14.5)
    return -2 * (after - before)
"""


def test_an_ingredient_by_itself_is_a_formula_of_people():
    lineage = lineage_of(parse_inlined(INGREDIENT), seeds())
    assert lineage.title == "the ingredient stranded_gpu_milli_more"
    assert lineage.is_written


def test_what_is_left_of_an_ingredient_is_still_theirs():
    trimmed = INGREDIENT.replace(" - pod.gpu_count * pod.gpu_milli", "")
    lineage = lineage_of(parse_inlined(trimmed), seeds())
    assert lineage.title == "the ingredient stranded_gpu_milli_more"
    assert lineage.is_written


def test_another_term_beside_an_ingredient_was_added():
    text = INGREDIENT.replace("(after - before)", "(after - before) - 3 * node.gpu_count")
    lineage = lineage_of(parse_inlined(text), seeds())
    assert lineage.added == ("3 * node.gpu_count",)
    assert not lineage.is_written
