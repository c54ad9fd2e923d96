from dataclasses import replace

import pytest

from podium.search.population.archive import Archive, Entry
from podium.search.run.plan import RANDOM, Tuning
from podium.search.run.samples import first_batch, next_batch
from support.members import member
from support.searches import PLAN_OF_TESTS, STARTERS

TUNABLE = "from podium.policies import tunable\nW = tunable(0.5, 0, 1)\n"
PLAN = replace(PLAN_OF_TESTS, batch=9, tuning=Tuning(every=2))


def archive_of(plan=PLAN, members=3, batches=1, text=""):
    """Gives islands with members of their own: number 10 * island and on."""
    archive = Archive(plan.customs, plan.seed, plan.training.families)
    found = [
        Entry(10 * island + i, island, (), member(10 * island + i, 50.0 + i, text=text or "x = 1"))
        for island in range(3)
        for i in range(members)
    ]
    archive.end_batch(found)
    while archive.batches < batches:
        archive.batches += 1
    return archive


def test_a_run_begins_with_its_starters():
    samples = first_batch(PLAN, STARTERS)
    assert [(each.name, each.text) for each in samples] == STARTERS
    assert {each.kind for each in samples} == {"seed"}
    assert [each.number for each in samples] == list(range(len(STARTERS)))


def test_a_run_from_nothing_begins_with_requests_without_parents():
    samples = first_batch(replace(PLAN, start=RANDOM), [])
    assert len(samples) == PLAN.batch
    assert [each.island for each in samples] == [0, 1, 2] * 3
    assert all(each.request.parents == () and each.parents == () for each in samples)
    assert len({each.request.seed for each in samples}) == PLAN.batch


def test_islands_take_turns_and_give_the_parents_of_their_own():
    archive = archive_of()
    samples = next_batch(PLAN, archive)
    assert [each.island for each in samples] == [0, 1, 2] * 3
    for each in samples:
        assert each.parents
        assert {number // 10 for number in each.parents} == {each.island}
        assert tuple(parent.number for parent in each.request.parents) == each.parents


def test_every_candidate_has_random_numbers_of_its_own():
    archive = archive_of()
    first = next_batch(PLAN, archive)
    assert first == next_batch(PLAN, archive)
    archive.batches += 1
    second = next_batch(PLAN, archive)
    seeds = {each.request.seed for each in (*first, *second) if each.request}
    numbers = {each.number for each in (*first, *second)}
    assert len(seeds) == len(numbers) == 2 * PLAN.batch
    assert min(each.number for each in second) == 2 * PLAN.block
    other = next_batch(replace(PLAN, seed=5), archive)
    assert {each.request.seed for each in other}.isdisjoint(seeds)


@pytest.mark.parametrize(("batches", "is_turn"), [(1, False), (2, True), (3, False), (4, True)])
def test_constants_are_tuned_when_it_is_their_turn(batches, is_turn):
    samples = next_batch(PLAN, archive_of(batches=batches, text=TUNABLE))
    tuned = [each for each in samples if each.kind == "tuned"]
    assert [each.island for each in tuned] == ([0, 1, 2] if is_turn else [])
    for each in tuned:  # the best of each island
        assert each.parents == (10 * each.island + 2,)
        assert each.text == TUNABLE
        assert each.request is None


def test_a_member_is_tuned_once_and_on_one_island():
    archive = archive_of(members=1, batches=2, text=TUNABLE)
    archive.tuned |= {0, 10}
    samples = next_batch(PLAN, archive)
    assert [each.parents for each in samples if each.kind == "tuned"] == [(20,)]
    everywhere = Archive(PLAN.customs, PLAN.seed, PLAN.training.families)
    everywhere.end_batch([Entry(0, 0, (), member(0, text=TUNABLE), is_for_all=True)])
    everywhere.batches = 2
    tuned = [each for each in next_batch(PLAN, everywhere) if each.kind == "tuned"]
    assert [each.parents for each in tuned] == [(0,)]


def test_nothing_is_tuned_where_tuning_is_off():
    plan = replace(PLAN, tuning=Tuning(every=0))
    assert {each.kind for each in next_batch(plan, archive_of(batches=2, text=TUNABLE))} == {"bred"}


def test_a_plan_without_generators_tunes_until_nothing_is_left():
    plan = replace(PLAN, generators=())
    archive = archive_of(members=2, text=TUNABLE)
    samples = next_batch(plan, archive)
    assert {each.kind for each in samples} == {"tuned"}
    assert len({each.parents for each in samples}) == len(samples) == 6
    archive.tuned |= {number for each in samples for number in each.parents}
    assert next_batch(plan, archive) == []


def test_generators_are_drawn_by_their_weights():
    plan = replace(PLAN, generators=(("genetic", 3.0), ("llm", 1.0)), batch=400)
    names = [each.generator for each in next_batch(plan, archive_of())]
    assert 60 <= names.count("llm") <= 140
    assert names.count("genetic") == 400 - names.count("llm")


def test_generators_hear_that_an_island_stands_still():
    archive = archive_of()
    archive.islands[1].stale = PLAN.customs.respawn_after // 2 + 1
    for each in next_batch(PLAN, archive):
        assert each.request.is_stagnant == (each.island == 1)
