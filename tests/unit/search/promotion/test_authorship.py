import json
from dataclasses import replace
from pathlib import Path

import pytest

import podium.policies.discovered
from podium.search.generators.genetic.seeds import seeds
from podium.search.program.parameters import with_tunables
from podium.search.program.program import Constant
from podium.search.program.reader import parse_inlined
from podium.search.program.writer import write
from podium.search.promotion.authorship import authorship_of

SHIPPED = Path(podium.policies.discovered.__file__).parent


def shipped(name):
    return parse_inlined((SHIPPED / f"{name}.py").read_text(encoding="utf-8"), name)


@pytest.mark.parametrize("name", sorted(seeds()))
def test_every_seed_is_its_own_nearest_seed_and_unchanged(name):
    authorship = authorship_of(seeds()[name], seeds())
    assert (authorship.seed, authorship.is_unchanged) == (name, True)
    assert authorship.is_written
    assert authorship.added == authorship.dropped == authorship.constants == ()


@pytest.mark.parametrize("name", ["typical", "fed", "best-fit"])
def test_a_seed_with_other_numbers_and_weights_is_still_that_seed(name):
    tunable = with_tunables(seeds()[name])
    moved = replace(
        tunable,
        constants=tuple(
            Constant(each.name, each.value * 1.5, each.bounds) for each in tunable.constants
        ),
    )
    authorship = authorship_of(parse_inlined(write(moved), name), seeds())
    assert authorship.seed == name
    assert authorship.is_written
    assert not authorship.is_unchanged


def test_fed_gpu_is_typical_with_other_numbers_and_one_more_term():
    authorship = authorship_of(shipped("fed_gpu"), seeds())
    assert authorship.seed == "typical"
    assert len(authorship.kept) == len(authorship.added) == 1
    assert "gpu_milli_behind" in authorship.added[0]
    assert not authorship.is_written
    assert authorship.constants == (
        ("CPUS_PER_GPU", 10.0, 7.21),
        ("SMALL_GPU_MILLI", 100.0, 470.0),
        ("a number", 1000.0, 509.0),
    )
    assert "starved_gpu_milli_more" in authorship.ingredients


def test_what_was_left_out_of_a_seed_is_listed_too():
    text = (
        "def score(pod, node):\n    cpu_milli_after = node.cpu_milli_left - pod.cpu_milli\n"
        "    return (cpu_milli_after / max(1, node.cpu_milli_total) - 0.25) ** 2\n"
    )
    authorship = authorship_of(parse_inlined(text), {"convex": seeds()["convex"]})
    assert authorship.seed == "convex"
    assert len(authorship.kept) == 1
    assert len(authorship.dropped) == 1
    assert "gpu_ratio" in authorship.dropped[0]


def test_a_formula_that_shares_nothing_has_no_seed():
    program = parse_inlined("def score(pod, node):\n    return -pod.gang\n")
    authorship = authorship_of(program, seeds())
    assert authorship.seed == ""
    assert authorship.added == ("pod.gang",)
    assert authorship.as_object()["ingredients"] == []


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


def test_what_only_looks_like_a_formula_of_people_is_not_theirs():
    ratio = "pod.cpu_milli / max(0.01, node.cpu_milli_total)"
    found = authorship_of(parse_inlined(f"def score(pod, node):\n    return {ratio}\n"), seeds())
    assert (found.seed, found.kept, found.added) == ("", (), (ratio,))


def test_an_ingredient_by_itself_is_a_formula_of_people():
    authorship = authorship_of(parse_inlined(INGREDIENT), seeds())
    assert authorship.title == "the ingredient stranded_gpu_milli_more"
    assert authorship.is_written


def test_what_is_left_of_an_ingredient_is_still_theirs():
    trimmed = INGREDIENT.replace(" - pod.gpu_count * pod.gpu_milli", "")
    authorship = authorship_of(parse_inlined(trimmed), seeds())
    assert authorship.title == "the ingredient stranded_gpu_milli_more"
    assert authorship.is_written


def test_another_term_beside_an_ingredient_was_added():
    text = INGREDIENT.replace("(after - before)", "(after - before) - 3 * node.gpu_count")
    authorship = authorship_of(parse_inlined(text), seeds())
    assert authorship.added == ("3 * node.gpu_count",)
    assert not authorship.is_written


CROSS = """CPUS_PER_GPU = 9.9
SMALL_GPU_MILLI = 220.0


def score(pod, node):
    gpu_milli_free = 0
    tightest_gpu_milli = 1000
    for slot in range(node.gpu_count):
        left = node.gpu_milli_left[slot]
        gpu_milli_free += left
        if left >= pod.gpu_milli:
            tightest_gpu_milli = min(tightest_gpu_milli, left)
    gpu_milli_after = gpu_milli_free - pod.gpu_count * pod.gpu_milli
    cpu_milli_after = node.cpu_milli_left - pod.cpu_milli
    behind = tightest_gpu_milli - pod.gpu_milli
    before = max(0, gpu_milli_free - node.cpu_milli_left / CPUS_PER_GPU)
    after = max(0, gpu_milli_after - cpu_milli_after / CPUS_PER_GPU)
    lost = behind if behind < SMALL_GPU_MILLI else 0
    return -int(4.2 * ((3.0 * (after - before) + 2.7 * lost) / 1000))
"""


def test_people_wrote_a_term_that_adds_up_what_two_seeds_add_up():
    authorship = authorship_of(parse_inlined(CROSS), seeds())
    assert (authorship.seed, authorship.others) == ("fed", ("typical",))
    assert len(authorship.kept) == 1
    assert authorship.added == authorship.dropped == ()
    assert authorship.is_written
    assert ("SMALL_GPU_MILLI", 100.0, 220.0) in authorship.constants
    assert authorship.as_object()["other_seeds"] == ["typical"]


def test_an_ingredient_whose_condition_was_cut_is_still_theirs():
    assert "lost_gpu_milli" in authorship_of(parse_inlined(CROSS), seeds()).ingredients


def test_of_a_term_that_adds_up_something_new_only_that_was_added():
    text = CROSS.replace("2.7 * lost", "2.7 * lost + 5 * node.gpu_count")
    authorship = authorship_of(parse_inlined(text), seeds())
    assert authorship.seed == "fed"
    assert [each.split(" in ")[0] for each in authorship.kept] == ["after", "before", "lost"]
    assert [each.split(" in ")[0] for each in authorship.added] == ["node.gpu_count"]
    assert not authorship.is_written


def test_what_a_term_of_the_seed_no_longer_adds_up_is_listed():
    text = CROSS.replace("3.0 * (after - before) + ", "")
    typical = {"typical": seeds()["typical"]}
    dropped = authorship_of(parse_inlined(text.replace("int(", "abs(")), typical).dropped
    assert dropped == ()  # another shape altogether
    text = text.replace("2.7 * lost", "2.7 * lost + 5 * node.gpu_count")
    [dropped] = authorship_of(parse_inlined(text), typical).dropped
    assert dropped.startswith("starved_gpu_milli_more in int(")


def test_usable_gpu_crosses_fed_and_typical_and_adds_what_decides_within_a_step():
    authorship = authorship_of(shipped("usable_gpu"), seeds())
    assert (authorship.seed, authorship.others) == ("fed", ("typical",))
    assert authorship.added == ("FINE_WEIGHT * fine_gpu",)
    assert not authorship.is_written


@pytest.mark.parametrize("name", ["fed_gpu", "patient_84", "usable_gpu"])
def test_the_card_of_a_shipped_policy_says_what_this_comparison_finds(name):
    card = json.loads((SHIPPED / f"{name}.json").read_text(encoding="utf-8"))["authorship"]
    assert card == authorship_of(shipped(name), seeds()).as_object()
