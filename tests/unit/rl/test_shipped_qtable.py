"""The table that ships: better than chance and turns, and as good as the matching heuristic."""

import numpy as np
import pytest

from podium.evaluation.paired import Difference
from podium.policies import load
from podium.reports.explanation import explain
from podium.rl.configuration import create_config
from podium.rl.qtable.algorithm import scores
from podium.rl.qtable.world import World

SEEDS = range(3000, 3030)


def lead(other, seeds, **sections):
    of = create_config("qtable", **sections)
    own, theirs = (np.array(scores(load(name), of, seeds)) for name in ("qtable", other))
    return Difference.of(own - theirs, np.random.default_rng(0))


@pytest.mark.deep
@pytest.mark.parametrize("other", ["random", "round-robin", "first-fit", "balanced"])
def test_it_beats_others_on_unseen_seeds(other):
    assert lead(other, SEEDS).low > 0


@pytest.mark.deep
def test_it_is_as_good_as_the_heuristic_of_its_aim_on_unseen_seeds():
    assert lead("compact", SEEDS).high > 0


def test_it_beats_round_robin_on_a_few_unseen_seeds():
    assert lead("round-robin", range(3000, 3006)).mean > 0


def test_its_decisions_are_explained_by_the_worth_of_nodes():
    result = World(pods=60).simulated(load("qtable"), ("memory",), 3000)
    placed = np.flatnonzero(result.is_placed)
    found = [explain(result, result.plan.arrivals.names[pod]) for pod in placed[:20]]
    several = [each for each in found if len(each.candidates) > 1]
    assert several
    for each in several:
        chosen = next(one for one in each.candidates if one.is_chosen)
        assert chosen.score == max(one.score for one in each.candidates)
        assert each.origin == "trained"
