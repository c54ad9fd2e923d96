from collections import Counter

import numpy as np

from podium.search.population.island import BINS, Island, cells
from support.members import member, random_member


def test_the_first_member_leads():
    island = Island(0, 5)
    assert island.best is None
    assert island.take(member(1))
    assert island.best == member(1)


def test_of_two_that_decide_alike_the_better_stays():
    island = Island(0, 5)
    island.take(member(1, 50.0, signature="a"))
    assert not island.take(member(2, 49.0, signature="a"))
    assert [each.number for each in island.members] == [1]
    assert island.take(member(3, 51.0, signature="a"))
    assert [each.number for each in island.members] == [3]


def test_a_simpler_twin_replaces_its_like_without_leading():
    island = Island(0, 5)
    island.take(member(1, 50.0, signature="a", complexity=20))
    assert not island.take(member(2, 50.0, signature="a", complexity=10))
    assert [each.number for each in island.members] == [2]


def test_who_is_there_is_not_taken_twice():
    island = Island(0, 5)
    pinned, better = member(1, 50.0, signature="a"), member(2, 51.0, signature="a")
    for each in (pinned, better, pinned, better):
        island.take(each, pinned)
    assert sorted(each.number for each in island.members) == [1, 2]


def test_a_twin_does_not_drive_out_who_is_pinned():
    emphasis = (1.0, 0.0, 0.0, 0.0)
    island = Island(1, 5, emphasis, "one")
    pinned = member(1, 50.0, signature="a", case_scores=(10.0, 60.0, 60.0, 70.0))
    twin = member(2, 49.0, signature="a", case_scores=(90.0, 30.0, 40.0, 36.0))
    island.take(pinned, pinned)
    assert island.take(twin, pinned)
    assert pinned in island.members
    assert island.best == twin


def test_who_is_pinned_is_taken_beside_a_twin_that_the_island_likes_better():
    island = Island(1, 5, (1.0, 0.0, 0.0, 0.0), "one")
    twin = member(1, 49.0, signature="a", case_scores=(90.0, 30.0, 40.0, 36.0))
    pinned = member(2, 50.0, signature="a", case_scores=(10.0, 60.0, 60.0, 70.0))
    island.take(twin, twin)
    assert not island.take(pinned, pinned)
    assert island.members == [twin, pinned]


def test_the_emphasis_decides_who_is_best():
    general = member(1, 50.0, case_scores=(40.0, 40.0, 60.0, 60.0))
    special = member(2, 48.0, case_scores=(60.0, 60.0, 36.0, 36.0))
    for emphasis, best in (((), general), ((1.0, 1.0, 0.0, 0.0), special)):
        island = Island(0, 5, emphasis)
        island.take(general)
        island.take(special)
        assert island.best == best


def test_culling_keeps_the_capacity_the_best_and_the_best_of_every_cell():
    rng = np.random.default_rng(5)
    people = [random_member(rng, number) for number in range(120)]
    island = Island(0, 60, members=list(people))
    where = dict(zip((each.number for each in people), cells(people), strict=True))
    island.cull()
    assert len(island.members) == 60
    assert island.members == sorted(island.members, key=island.key, reverse=True)
    assert max(people, key=island.key) in island.members
    filled = {where[each.number] for each in people}
    kept = {where[each.number] for each in island.members}
    assert len(kept) == min(60, len(filled))


def test_culling_below_the_number_of_cells_keeps_the_fittest_elites():
    rng = np.random.default_rng(6)
    people = [random_member(rng, number) for number in range(80)]
    island = Island(0, 4, members=list(people))
    island.cull()
    assert len(island.members) == 4
    assert max(people, key=island.key) in island.members


def test_culling_spares_who_is_pinned():
    rng = np.random.default_rng(7)
    island = Island(0, 4, members=[random_member(rng, number) for number in range(80)])
    worst = min(island.members, key=island.key)
    island.cull(worst)
    assert worst in island.members
    assert len(island.members) == 4


def test_culling_pins_only_who_lives_here():
    island = Island(0, 4, members=[member(number, 40.0 + number) for number in range(9)])
    island.cull(member(99, 99.0))
    assert [each.number for each in island.members] == [8, 7, 6, 5]


def test_an_island_with_room_drops_nobody():
    island = Island(0, 4, members=[member(number, 40.0 + number) for number in range(4)])
    island.cull()
    assert [each.number for each in island.members] == [3, 2, 1, 0]


def test_cells_follow_the_members_and_none_holds_everybody():
    rng = np.random.default_rng(8)
    narrow = [
        member(number, behaviour=tuple(0.5 + 1e-6 * each for each in rng.random(4)))
        for number in range(300)
    ]
    for axis in range(1, 5):
        shares = Counter(cell[axis] for cell in cells(narrow))
        assert set(shares) == set(range(BINS))
        assert max(shares.values()) <= 0.4 * len(narrow)


def test_fitness_is_no_axis_of_cells():
    rng = np.random.default_rng(9)
    people = [random_member(rng, number) for number in range(50)]
    others = [
        member(each.number, -each.fitness, complexity=each.complexity, behaviour=each.behaviour)
        for each in people
    ]
    assert cells(people) == cells(others)


def test_equal_members_share_a_cell():
    assert len(set(cells([member(number) for number in range(9)]))) == 1


def test_an_island_founded_anew_has_its_founders_only():
    island = Island(0, 4, members=[member(1)], children={1: 3}, stale=50)
    island.found_anew([member(2)])
    assert ([member(2)], {}, 0, 1) == (
        island.members,
        island.children,
        island.stale,
        island.respawns,
    )
