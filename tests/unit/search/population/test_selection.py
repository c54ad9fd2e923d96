from collections import Counter

import numpy as np
import pytest

from podium.search.population import Island
from podium.search.population.selection import (
    by_case,
    choose_parents,
    fitness_weights,
    novelty,
)
from support.members import member, random_member


@pytest.fixture
def island():
    """Holds twenty members."""
    rng = np.random.default_rng(3)
    return Island(0, 40, members=[random_member(rng, number) for number in range(20)])


def test_parents_are_members_of_the_island_and_differ(island):
    rng = np.random.default_rng(1)
    for _ in range(300):
        parents = choose_parents(rng, island, 3)
        assert len({each.number for each in parents}) == 3
        assert all(each in island.members for each in parents)


def test_the_same_numbers_choose_the_same_parents(island):
    one, other = (choose_parents(np.random.default_rng(5), island, 3) for _ in range(2))
    assert one == other


def test_an_island_gives_as_many_parents_as_it_has():
    rng = np.random.default_rng(1)
    assert choose_parents(rng, Island(0, 4), 3) == []
    assert choose_parents(rng, Island(0, 4, members=[member(1)]), 3) == [member(1)]


def test_every_member_may_be_chosen_and_the_fitter_are_more_often(island):
    rng = np.random.default_rng(2)
    chosen = Counter(choose_parents(rng, island, 1)[0].number for _ in range(4000))
    ranked = sorted(island.members, key=island.key, reverse=True)
    assert set(chosen) == {each.number for each in island.members}
    upper = sum(chosen[each.number] for each in ranked[:10])
    assert upper > 2 * sum(chosen[each.number] for each in ranked[10:])


def test_most_children_are_those_of_the_best_few(island):
    rng = np.random.default_rng(2)
    chosen = Counter(choose_parents(rng, island, 1)[0].number for _ in range(2000))
    ranked = sorted(island.members, key=island.key, reverse=True)
    assert sum(chosen[each.number] for each in ranked[:5]) > 0.55 * 2000
    assert chosen[ranked[0].number] > chosen[ranked[4].number] > chosen[ranked[12].number]


def test_children_make_further_ones_less_likely():
    island = Island(0, 4, members=[member(1), member(2)])
    island.count_child([1])
    one, other = fitness_weights(island)
    assert one == pytest.approx(other / 2)


def test_weights_do_not_depend_on_the_scale_of_fitness(island):
    scaled = Island(
        0, 40, members=[member(each.number, 1000 * each.fitness) for each in island.members]
    )
    plain = Island(0, 40, members=[member(each.number, each.fitness) for each in island.members])
    assert fitness_weights(scaled) == pytest.approx(fitness_weights(plain))


def test_members_far_below_the_others_do_not_break_the_weights():
    fitness = [1e9, -1e9, *range(9)]
    island = Island(0, 40, members=[member(i, float(each)) for i, each in enumerate(fitness)])
    weights = fitness_weights(island)
    assert all(0 < each <= 1 for each in weights)
    assert weights[0] == max(weights)


def test_cases_that_only_decide_who_goes_on_choose_no_parents():
    small = member(1, 50.0, case_scores=(99.0, 50.0, 50.0))
    large = member(2, 50.0, case_scores=(10.0, 51.0, 51.0))
    rng = np.random.default_rng(1)
    assert {by_case(rng, [small, large], 1).number for _ in range(50)} == {2}
    assert {by_case(rng, [small, large]).number for _ in range(50)} == {1, 2}
    assert {by_case(rng, [small, large], 3).number for _ in range(50)} == {1, 2}  # nobody is whole


def test_who_is_best_at_one_case_is_chosen_by_case():
    good = [member(number, 50.0) for number in range(10)]
    special = member(99, 30.0, case_scores=(95.0, 0.0, 0.0, 25.0))
    rng = np.random.default_rng(4)
    chosen = Counter(by_case(rng, [*good, special]).number for _ in range(400))
    assert chosen[99] > 50


def test_the_lonely_are_the_novel_ones():
    crowd = [member(number, behaviour=(0.5, 0.5, 0.5, 0.0)) for number in range(6)]
    found = novelty([*crowd, member(9, behaviour=(1.0, 0.0, 1.0, 0.0))])
    assert max(found) == found[-1]
    assert all(each > 0 for each in found)
    assert novelty([member(1)]) == [1.0]
