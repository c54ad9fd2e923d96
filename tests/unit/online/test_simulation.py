import numpy as np
import pytest

from podium.errors import UnknownName
from podium.online import Parameters
from podium.online.simulation import draw, play
from podium.online.strategies import STRATEGIES
from podium.online.world import WorldPlan, draw_jobs, draw_world

SEEDS = (1000, 1001, 1002)
WORLDS = {
    "some GPU types faster than others": WorldPlan(),
    "every pair for itself": WorldPlan(gpu_spread=0.0, pair_spread=0.6),
}


def simulate_loop(plan, strategies, parameters=None, jobs=1000, seed=0):
    """Lets each strategy decide the same jobs of a drawn world."""
    world, drawn = draw(plan, jobs, seed)
    return {name: play(world, drawn, name, parameters or Parameters(), seed) for name in strategies}


def late_regret(course):
    return course.expected_s[-200:].sum() / course.best_s[-200:].sum() - 1.0


@pytest.mark.deep
@pytest.mark.parametrize("world", WORLDS)
def test_after_a_thousand_jobs_a_decision_costs_five_percent_at_most_above_the_oracle(world):
    for seed in SEEDS:
        courses = simulate_loop(WORLDS[world], ["online", "never-explore"], seed=seed)
        online = courses["online"]
        assert online.regret[-200:].mean() <= 0.05
        assert late_regret(online) <= 0.05
        assert late_regret(online) < late_regret(courses["never-explore"])
        assert 0.0 < online.share("exploration") <= 0.25


def test_neighbours_do_not_spoil_what_is_learned():
    plan = WorldPlan(neighbour_share=0.3, slowdown=1.0)
    parameters = Parameters(enable_interference=True, gamma_interference=1.0)
    online = simulate_loop(plan, ["online"], parameters, seed=1000)["online"]
    assert online.regret[-200:].mean() <= 0.05


def test_the_oracle_regrets_nothing_and_the_same_seed_gives_the_same_course():
    courses = [simulate_loop(WorldPlan(), list(STRATEGIES), jobs=100, seed=1003) for _ in range(2)]
    assert not courses[0]["oracle"].regret.any()
    for way in STRATEGIES:
        np.testing.assert_array_equal(courses[0][way].chosen, courses[1][way].chosen)
        assert (courses[0][way].regret >= 0.0).all()
        assert len(courses[0][way].excess) == 100


def test_an_oracle_under_the_rules_of_the_agent_learns_nothing_late():
    courses = simulate_loop(WorldPlan(), ["capped-oracle", "online"], jobs=300, seed=1003)
    capped, online = courses["capped-oracle"], courses["online"]
    assert capped.share("forced") > 0.0
    assert 0.0 < capped.share("exploration") <= 0.25
    assert 0.0 < capped.regret.mean() < online.regret.mean()
    assert not capped.regret[-100:].any()


def test_a_run_is_observed_when_it_is_over():
    rng = np.random.default_rng(1000)
    world = draw_world(WorldPlan(job_types=1, interarrival=1e-9), rng)
    jobs = draw_jobs(world, 50, rng)
    course = play(world, jobs, "online", Parameters())
    assert set(course.decision_types) == {"forced"}


def test_an_unknown_way_is_named():
    with pytest.raises(UnknownName, match='unknown strategy "onlin"'):
        simulate_loop(WorldPlan(), ["onlin"])
