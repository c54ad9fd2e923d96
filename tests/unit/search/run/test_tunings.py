from dataclasses import replace

import pytest

from podium.search.candidate.constants import Constant, read_constants
from podium.search.population.archive import Archive
from podium.search.run.plan import Tuning
from podium.search.run.tunings import POINTS, WORST, Tunings, cost_of, loss_of, part_of, value_at
from support.members import candidate, member
from support.searches import PLAN_OF_TESTS

TEXT = "from podium.policies import tunable\nW = tunable(0.5, 0, 1)\nV = tunable(3, 1, 100)\n"
PLAN = replace(PLAN_OF_TESTS, batch=24, tuning=Tuning(evaluations=3 * POINTS))


def archive_of(*members, plan=PLAN, is_seed=False):
    """Gives an archive whose first island has the members."""
    archive = Archive(plan.customs, plan.seed, plan.training.families)
    archive.end_batch([candidate(e.number, 0, (), e, is_for_all=is_seed) for e in members])
    return archive


def rows(variants, fitness):
    """Judges variants by a function of their constants."""
    found = []
    for number, each in variants.items():
        constants = {c.name.lower(): c.value for c in read_constants(each.text)}
        scored = member(number, fitness(**constants), text=each.text)
        found.append(candidate(number, each.island, (each.parent,), scored, is_tuned=True))
    return found


def near(w, v):
    """Is best at 0.25 and 10."""
    return 90.0 - 10 * (w - 0.25) ** 2 - (v - 10) ** 2 / 100


@pytest.mark.parametrize(
    ("bounds", "middle"), [((0.0, 10.0), 5.0), ((1.0, 100.0), 10.0), ((2.0, 8.0), 4.0)]
)
def test_positive_constants_are_on_a_log_scale(bounds, middle):
    constant = Constant("W", bounds[0] or 0.5, *bounds, 1)
    assert value_at(constant, 0.5) == pytest.approx(middle)
    assert (value_at(constant, 0.0), value_at(constant, 1.0)) == bounds
    again = replace(constant, value=value_at(constant, 0.3))
    assert part_of(again) == pytest.approx(0.3, abs=1e-3)


def test_a_tuning_goes_on_generation_by_generation_and_ends_within_its_evaluations():
    tunings, archive = Tunings(PLAN), archive_of(member(1, near(0.5, 3), text=TEXT))
    best = []
    for batch in range(3):
        variants = tunings.generation(archive, range(100 * batch, 100 * batch + POINTS))
        assert {each.parent for each in variants.values()} == {1}
        found = rows(variants, near)
        best.append(max(row.fitness for row in found))
        tunings.end_batch(found)
        archive.end_batch(found)
    assert tunings.points == 3 * POINTS
    assert max(best) > near(0.5, 3)
    # The best variant is tuned again, from where it stands, once nothing else is left.
    again = tunings.generation(archive, range(900, 900 + POINTS))
    assert {each.parent for each in again.values()} == {archive.best.number}


def test_a_generation_under_way_is_waited_for():
    tunings, archive = Tunings(PLAN), archive_of(member(1, text=TEXT), member(2, 49.0, text=TEXT))
    first = tunings.generation(archive, range(POINTS))
    second = tunings.generation(archive, range(100, 100 + POINTS))
    assert {each.parent for each in first.values()} == {1}
    assert {each.parent for each in second.values()} == {2}
    assert tunings.is_under_way
    tunings.end_batch(rows(second, near))
    third = tunings.generation(archive, range(200, 200 + POINTS))
    assert {each.parent for each in third.values()} == {2}


def test_seeds_come_first_and_their_numbers_are_tuned_where_they_declare_none():
    plain = "def score(pod, node):\n    return -2.5 * node.cpu_milli_left - 0.5 * pod.cpu_milli\n"
    archive = archive_of(member(1, 60.0, text=plain), is_seed=True)
    archive.end_batch([candidate(9, 0, (1,), member(9, 95.0, text=TEXT))])
    variants = Tunings(PLAN).generation(archive, range(100, 100 + POINTS))
    assert {each.parent for each in variants.values()} == {1}
    assert all(read_constants(each.text) for each in variants.values())


def test_the_same_candidates_are_tuned_alike():
    drawn = []
    for _ in range(2):
        tunings, archive = Tunings(PLAN), archive_of(member(1, text=TEXT))
        first = tunings.generation(archive, range(POINTS))
        tunings.end_batch(rows(first, near))
        second = tunings.generation(archive, range(100, 100 + POINTS))
        drawn.append([each.text for each in (*first.values(), *second.values())])
    assert drawn[0] == drawn[1]


def test_variants_that_came_further_go_before_those_that_were_stopped():
    whole = candidate(1, 0, (), member(1, 80.0), is_tuned=True)
    stopped = replace(whole, accepted=False, fitness=None, scores={"by_case": [95.0]})
    refused = replace(stopped, scores={})
    assert loss_of(whole) < loss_of(stopped) < loss_of(refused) == WORST


HEAD = "from podium.policies import tunable\n"


def test_what_tuning_takes_grows_with_the_constants_and_keeps_to_the_limit():
    one = f"{HEAD}A = tunable(9, 0, 10)\n"
    two = f"{one}B = tunable(1, 0, 3)\n"
    assert cost_of(HEAD, 60) == cost_of(f"{HEAD}A = tunable(3, 3, 3)\n", 60) == 0
    assert 0 < cost_of(one, 60) < cost_of(two, 60) <= 60
    assert cost_of(two, 10) == 10


@pytest.mark.parametrize("constants", ["", "A = tunable(3, 3, 3)\n"])
def test_nothing_to_tune_gives_no_variants(constants):
    text = f"{HEAD}{constants}def score(pod, node):\n    return node.gpu_count\n"
    tunings = Tunings(PLAN)
    assert tunings.generation(archive_of(member(1, text=text)), range(POINTS)) == {}
    assert tunings.points == 0


def test_variants_that_are_all_refused_leave_the_best_as_it_was():
    tunings, archive = Tunings(PLAN), archive_of(member(1, 60.0, text=TEXT))
    for batch in range(2):
        variants = tunings.generation(archive, range(100 * batch, 100 * batch + POINTS))
        found = [
            replace(row, accepted=False, fitness=None, scores={}) for row in rows(variants, near)
        ]
        tunings.end_batch(found)
        archive.end_batch(found)
        assert {each.rival for each in variants.values()} == {archive.best.cases}
    assert (archive.best.number, archive.best.fitness) == (1, 60.0)


DEEP = replace(PLAN, tuning=Tuning(evaluations=POINTS, deep=3 * POINTS))
OPEN = """from podium.policies import tunable
W = tunable(0.5, 0, 1)
def score(pod, node):
    return W * node.cpu_milli_left - 2.5 * (node.cpu_milli_left - pod.cpu_milli)
"""


def test_every_other_tuning_is_a_longer_one_of_the_best_so_far_with_all_its_numbers():
    archive = archive_of(
        member(1, 60.0, text=TEXT), member(2, 70.0, text=OPEN), member(3, 65.0, text=TEXT),
        plan=DEEP,
    )  # fmt: skip
    tunings, parents, counts = Tunings(DEEP), [], []
    for batch in range(5):
        variants = tunings.generation(archive, range(100 * batch, 100 * batch + POINTS))
        first = next(iter(variants.values()))
        parents.append(first.parent)
        counts.append(len(read_constants(first.text)))
        tunings.end_batch(rows(variants, lambda **_: 1.0))
    # The first has one generation; then the best so far three, with a number and weights as well.
    assert parents[:4] == [2, 2, 2, 2]
    assert counts[0] == 1
    assert set(counts[1:4]) == {6}
    assert parents[4] != 2


def test_seeds_are_tuned_with_all_their_numbers_where_that_is_planned():
    archive = archive_of(member(1, 60.0, text=OPEN), plan=DEEP, is_seed=True)
    found = next(iter(Tunings(DEEP).generation(archive, range(POINTS)).values()))
    assert len(read_constants(found.text)) == 6
    before = next(iter(Tunings(PLAN).generation(archive, range(POINTS)).values()))
    assert len(read_constants(before.text)) == 1


def test_a_seed_without_numbers_is_passed_over():
    plain = f"{HEAD}def score(pod, node):\n    return -node.gpu_count\n"
    archive = archive_of(member(1, 60.0, text=plain), plan=DEEP, is_seed=True)
    assert Tunings(DEEP).generation(archive, range(POINTS)) == {}


FIRST = replace(PLAN, tuning=Tuning(evaluations=POINTS, deep=3 * POINTS, first=2 * POINTS))


def test_the_seed_with_most_numbers_of_those_about_as_good_is_tuned_alone_at_first():
    archive = archive_of(
        member(1, 60.0, text=TEXT), member(2, 59.9, text=OPEN), member(3, 50.0, text=OPEN),
        plan=FIRST, is_seed=True,
    )  # fmt: skip
    tunings = Tunings(FIRST)
    for batch in range(2):
        assert tunings.is_opening(archive)
        variants = tunings.generation(archive, range(100 * batch, 100 * batch + POINTS))
        assert {each.parent for each in variants.values()} == {2}
        assert tunings.generation(archive, range(100 * batch + 50, 100 * batch + 50 + POINTS)) == {}
        tunings.end_batch(rows(variants, lambda **_: 1.0))
    assert not tunings.is_opening(archive)
    after = [
        tunings.generation(archive, range(begin, begin + POINTS)) for begin in (300, 400)
    ]  # fmt: skip
    assert all(after)  # others have their turns side by side again


@pytest.mark.parametrize(
    "plan",
    [
        DEEP,
        replace(FIRST, generators=()),
        replace(FIRST, tuning=replace(FIRST.tuning, every=0)),
    ],
    ids=["none is tuned first", "nothing is bred", "nothing is tuned"],
)
def test_nothing_comes_first_unless_the_plan_says_so(plan):
    archive = archive_of(member(1, 60.0, text=TEXT), plan=plan, is_seed=True)
    assert not Tunings(plan).is_opening(archive)


def test_a_run_without_numbers_to_tune_begins_at_once():
    plain = f"{HEAD}def score(pod, node):\n    return -node.gpu_count\n"
    seeds = archive_of(member(1, 60.0, text=plain), plan=FIRST, is_seed=True)
    assert not Tunings(FIRST).is_opening(seeds)
    assert not Tunings(FIRST).is_opening(archive_of(member(1, text=TEXT), plan=FIRST))


BRED_FIRST = replace(PLAN, tuning=Tuning(evaluations=3 * POINTS, deep=40, first=40, after=2))


def test_what_was_bred_may_be_tuned_first_once_it_is_time():
    tunings = Tunings(BRED_FIRST)
    archive = archive_of(member(1, 60.0, text=TEXT), plan=BRED_FIRST, is_seed=True)
    assert not tunings.is_opening(archive)
    assert tunings.generation(archive, range(100, 100 + POINTS)) == {}
    archive.end_batch([candidate(9, 0, (1,), member(9, 95.0, text=f"{TEXT}U = W\n"))])
    assert tunings.is_opening(archive)
    variants = tunings.generation(archive, range(200, 200 + POINTS))
    assert {each.parent for each in variants.values()} == {9}


SCORE = "def score(pod, node):\n    return -int(4 * W * node.cpu_milli_left / {most})\n"


@pytest.mark.parametrize("score", ["", SCORE.format(most="node.cpu_milli_total")])
@pytest.mark.parametrize(("plan", "expected"), [(PLAN, 3), (BRED_FIRST, 4)])
def test_each_shape_is_tuned_once_where_breeding_comes_first(plan, expected, score):
    """Another value of a constant is no other shape; another formula is."""
    first = TEXT + SCORE.format(most="128000")
    one, alike = TEXT + score, TEXT.replace("0.5", "0.6") + score
    texts = (first, one, alike, f"{HEAD}A = tunable(9, 0, 10)\n")
    members = [member(1 + i, 95.0 - i, text=text) for i, text in enumerate(texts)]
    archive = archive_of(*members, plan=plan)
    archive.end_batch([])
    tunings = Tunings(plan)
    begun = []
    for batch in range(1, 40):
        variants = tunings.generation(archive, range(100 * batch, 100 * batch + POINTS))
        begun += [each.parent for each in variants.values()]
        found = rows(variants, lambda **_: 50.0)
        tunings.end_batch(found)
        archive.end_batch(found)
    assert [each for each in dict.fromkeys(begun) if each < 100][2] == expected
