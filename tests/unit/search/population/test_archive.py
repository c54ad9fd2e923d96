from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podium.search.population import Member
from podium.search.population.archive import Archive, IslandSettings
from support.members import FAMILIES, SMALL, candidate, folded, member, random_batches

SEEDS = st.integers(0, 10**6)


def facts(archive):
    """Takes everything of an archive that a run depends on."""
    return (
        archive.islands, archive.signatures, archive.tuned, archive.best, archive.batches,
        archive.transfers,
    )  # fmt: skip


def test_the_same_candidates_make_the_same_archive():
    one, other = (folded(random_batches(1), SMALL) for _ in range(2))
    assert facts(one) == facts(other)
    assert any(island.respawns for island in one.islands)
    assert one.transfers


def test_the_order_within_a_batch_does_not_matter():
    batches = random_batches(2)
    assert facts(folded(batches, SMALL)) == facts(
        folded([entries[::-1] for entries in batches], SMALL)
    )


@settings(max_examples=25, deadline=None)
@given(SEEDS, st.integers(1, 29))
def test_an_archive_goes_on_from_anywhere(seed, cut):
    batches = random_batches(seed)
    begun = folded(batches[:cut], SMALL)
    for entries in batches[cut:]:
        begun.end_batch(entries)
    assert facts(begun) == facts(folded(batches, SMALL))


@settings(max_examples=40, deadline=None)
@given(SEEDS)
def test_the_best_of_all_lives_on_some_island_after_every_batch(seed):
    archive = Archive(SMALL, 7, FAMILIES)
    best = None
    for entries in random_batches(seed):
        archive.end_batch(entries)
        accepted = [found for each in entries if (found := Member.of(each))]
        best = max([*accepted, *([best] if best else [])], key=lambda each: each.key())
        assert archive.best == best
        assert any(best in island.members for island in archive.islands)


@settings(max_examples=25, deadline=None)
@given(SEEDS)
def test_islands_keep_their_capacity_and_hold_nobody_twice(seed):
    archive = folded(random_batches(seed), SMALL)
    for island in archive.islands:
        numbers = [each.number for each in island.members]
        assert len(numbers) == len(set(numbers)) <= SMALL.capacity


@settings(max_examples=25, deadline=None)
@given(SEEDS)
def test_without_migration_and_respawn_every_member_lives_where_it_was_born(seed):
    alone = replace(SMALL, migrate_every=10**9, respawn_after=10**9)
    batches = random_batches(seed)
    homes = {entry.number: entry.island for entries in batches[1:] for entry in entries}
    archive = folded(batches, alone)
    assert not archive.transfers
    for island in archive.islands:
        born = [each for each in island.members if each.number in homes]
        assert born
        assert all(homes[each.number] == island.index for each in born)


def test_a_seed_is_given_to_every_island():
    archive = folded([[candidate(0, 0, (), member(0), is_for_all=True)]], SMALL)
    assert [island.members for island in archive.islands] == [[member(0)]] * 3


def test_the_best_of_an_island_moves_to_the_next_one_when_it_is_time():
    customs = replace(SMALL, migrate_every=2)
    first = [candidate(number, number, (), member(number, 50.0 + number)) for number in range(3)]
    archive = folded([first], customs, families=("one",) * 4)
    assert [len(island.members) for island in archive.islands] == [1, 1, 1]
    archive.end_batch([])
    living = [{each.number for each in island.members} for island in archive.islands]
    assert living == [{0, 2}, {0, 1}, {1, 2}]
    assert archive.transfers == [(0, 1, False), (1, 2, False), (2, 0, True)]


def test_an_island_alone_sends_nobody():
    customs = IslandSettings(islands=1, migrate_every=1, respawn_after=1)
    archive = folded([[candidate(0, 0, (), member(0))], [candidate(1, 0, (0,), None)]], customs)
    assert archive.transfers == []
    assert archive.islands[0].members == [member(0)]
    assert archive.islands[0].respawns == 0


def test_an_island_is_founded_anew_after_so_many_samples_of_its_own():
    customs = replace(SMALL, respawn_after=5, migrate_every=10**9)
    first = [candidate(number, number, (), member(number, 50.0 - number)) for number in range(3)]
    archive = folded([first], customs, families=("one",) * 4)
    for batch in range(1, 5):  # four samples of island 2, and empty batches: no sample, no age
        archive.end_batch([candidate(100 * batch, 2, (), None)])
        for _ in range(20):
            archive.end_batch([])
    assert [island.respawns for island in archive.islands] == [0, 0, 0]
    archive.end_batch([candidate(900, 2, (), None)])
    assert [island.respawns for island in archive.islands] == [0, 0, 1]
    (founder,) = archive.islands[2].members
    assert founder.number in (0, 1)
    assert archive.islands[2].stale == 0


def test_a_better_one_gives_an_island_its_time_back():
    archive = folded([[candidate(0, 0, (), member(0, 50.0))], [candidate(1, 0, (), None)]], SMALL)
    assert archive.islands[0].stale == 1
    archive.end_batch([candidate(2, 0, (), member(2, 49.0))])
    assert archive.islands[0].stale == 2
    archive.end_batch([candidate(3, 0, (), member(3, 51.0))])
    assert archive.islands[0].stale == 0


def test_the_last_home_of_the_best_keeps_it_when_it_is_founded_anew():
    customs = IslandSettings(islands=2, respawn_after=3, migrate_every=10**9)
    best, other = member(0, 90.0), member(1, 10.0)
    archive = folded([[candidate(0, 0, (), best), candidate(1, 1, (), other)]], customs)
    archive.end_batch([candidate(number, 0, (0,), None) for number in (10, 11, 12)])
    assert archive.islands[0].respawns == 1
    assert archive.islands[0].members == [best, other]


def test_the_best_survives_an_island_that_cares_for_other_cases():
    customs = IslandSettings(islands=2, capacity=2, migrate_every=10**9, respawn_after=10**9)
    best = member(0, 50.0, case_scores=(0.0, 0.0, 100.0, 100.0))
    crowd = [
        candidate(number, 1, (), member(number, 40.0, case_scores=(80.0, 80.0, 0.0, 0.0)))
        for number in range(1, 9)
    ]
    archive = folded([[candidate(0, 1, (), best), *crowd]], customs)
    assert archive.best == best
    assert best in archive.islands[1].members


def test_children_count_for_the_parents_on_their_island_alone():
    archive = folded([[candidate(0, 0, (), member(0), is_for_all=True)]], SMALL)
    archive.end_batch([candidate(10, 1, (0,), None), candidate(11, 1, (0,), None)])
    assert [island.children for island in archive.islands] == [{}, {0: 2}, {}]


def test_the_simplest_of_each_signature_is_remembered_although_it_may_be_gone():
    entries = [
        candidate(0, 0, (), member(0, 50.0, signature="a", complexity=20)),
        candidate(1, 1, (), member(1, 40.0, signature="a", complexity=12)),
        candidate(2, 2, (), member(2, 60.0, signature="a", complexity=30)),
    ]
    assert folded([entries], SMALL).signatures == {"a": 12}


def test_what_was_tuned_and_what_came_of_it_need_no_more_tuning():
    archive = folded([[candidate(5, 0, (2,), None, is_tuned=True)]], SMALL)
    assert archive.tuned == {2, 5}


def test_the_first_island_cares_for_all_cases_and_others_for_a_family_each():
    archive = Archive(IslandSettings(islands=4), 1, FAMILIES)
    assert [island.family for island in archive.islands] == [
        "", "openb inflation", "openb:16 replay", "openb inflation",
    ]  # fmt: skip
    assert archive.islands[2].emphasis == (0.0, 0.0, 1.0, 1.0)
    plain = Archive(IslandSettings(islands=4), 1, ("one",) * 4)
    assert [island.emphasis for island in plain.islands] == [()] * 4


@pytest.mark.parametrize("number", [0, 3])
def test_living_members_are_found_by_number(number):
    archive = folded([[candidate(each, each % 3, (), member(each)) for each in range(4)]], SMALL)
    found = archive.member(number)
    assert found is not None
    assert found.number == number
    assert archive.member(77) is None


def test_islands_emphasise_their_family_among_the_cases_that_count():
    families = ("a", "b", "a", "b")
    plain = Archive(IslandSettings(islands=2), 1, families)
    last = Archive(IslandSettings(islands=2), 1, families, 2)
    assert [each.emphasis for each in plain.islands] == [(), (1.0, 0.0, 1.0, 0.0)]
    assert [each.emphasis for each in last.islands] == [(), (0.0, 0.0, 1.0, 0.0)]
    stopped = member(1, 50.0, case_scores=(40.0, 60.0))
    assert stopped.worth(last.islands[1].emphasis) == 50.0
