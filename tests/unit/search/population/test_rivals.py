"""Whom candidates race against, and who goes on after a stage."""

from dataclasses import replace

import numpy as np
import pytest

from podium.evaluation.cases import Stage
from podium.search.candidate.verdict import STAGES
from podium.search.judging.race import Bar, Rivals
from podium.search.population import Island
from podium.search.population.archive import ENOUGH, RECENT, RecentStages
from podium.search.population.island import cells
from support.members import candidate, member, random_member


def measured(found):
    """Gives a member with measurements that name it."""
    return replace(found, cases=({"allocation_130": float(found.number)},))


@pytest.fixture
def island():
    """Holds twenty members."""
    rng = np.random.default_rng(3)
    return Island(0, 40, members=[measured(random_member(rng, n)) for n in range(20)])


def axes(found):
    return (float(found.complexity), *found.behaviour)


def test_who_behaves_like_the_better_half_races_against_the_middle(island):
    rivals, ranked = island.rivals(), sorted(island.members, key=island.key, reverse=True)
    best = ranked[0]
    assert rivals.against(axes(best))[0] == ranked[int(0.5 * 19)].cases


def test_who_behaves_like_an_elite_below_the_middle_races_against_that(island):
    ranked = sorted(island.members, key=island.key, reverse=True)
    where = cells(ranked)
    rank = next(i for i in range(11, 20) if where[i] not in where[:i])
    found = replace(random_member(np.random.default_rng(1), 99), complexity=ranked[rank].complexity,
                    behaviour=ranked[rank].behaviour)  # fmt: skip
    rival, bars = island.rivals((Bar(2, 90.0),)).against(axes(found))
    assert rival == ranked[rank].cases
    assert bars == ()  # an elite of its cell goes on


def test_who_behaves_like_nobody_races_against_one_of_the_last():
    crowd = [
        measured(member(n, 60.0 - n, behaviour=(0.5, 0.5, 0.5, 0.0), complexity=n))
        for n in range(9)
    ]
    rivals = Island(0, 40, members=crowd).rivals()
    rival, _ = rivals.against((4.0, 0.1, 0.9, 0.1, 0.0))
    assert rival == crowd[int(0.9 * 8)].cases


def test_rivals_travel_as_plain_values(island):
    rivals = island.rivals((Bar(3, 91.5),))
    assert Rivals.from_object(rivals.as_object()) == rivals
    assert Island(0, 4).rivals() == Rivals()


def staged(number, *fitness):
    return replace(candidate(number, 0, (), None), scores={STAGES: list(fitness)})


def test_the_best_share_of_the_recent_candidates_goes_on():
    recent, stages = RecentStages(), (Stage(0, 2, 0.25), Stage(2, 6, 1.0))
    for number in range(ENOUGH - 1):
        recent.take(staged(number, 80.0 + number))
    assert recent.bars(stages) == ()  # too few to tell
    recent.take(staged(50, 70.0))
    assert recent.bars(stages) == (Bar(2, 85.0),)  # two of eight
    for number in range(RECENT):
        recent.take(staged(100 + number, 60.0, 61.0))
    assert recent.bars(stages) == (Bar(2, 60.0),)  # those of before are forgotten


def test_a_stage_that_keeps_everybody_has_no_bar():
    recent = RecentStages()
    for number in range(ENOUGH):
        recent.take(staged(number, 80.0 + number))
    assert recent.bars((Stage(0, 2, 1.0), Stage(2, 6, 1.0))) == ()
