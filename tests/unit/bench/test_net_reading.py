"""What bench/net_reading.py reads out of a net is true of nets of which it is known."""

from pathlib import Path

import numpy as np
import pytest

from podium.policies import load
from podium.policies.networks.mlp import FEATURES, NUM_FEATURES
from podium.rl.mlp.imitation import MOST_CANDIDATES, Decisions
from podium.rl.mlp.parameters import first_arrays
from podium.rl.mlp.trials import Trials, inflation_case

BENCH = Path(__file__).parents[3] / "bench"
CASE = inflation_case("openb-share-heavy", 24, 1000)


def packing():
    """Makes a net that leaves as little behind on a GPU as it can, and then the least CPU."""
    net = first_arrays(8, np.random.default_rng(1))
    net["linear"][FEATURES.index("behind_on_gpu")] = -5.0
    net["linear"][FEATURES.index("cpu_after")] = -1.0
    return net


@pytest.fixture(scope="module")
def bench():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(BENCH))
        import net_reading

        yield net_reading


@pytest.fixture(scope="module")
def decisions(bench):
    return bench.decisions_of(packing(), [CASE], 1, np.random.default_rng(1))


def test_a_net_cannot_do_without_what_it_decides_by(bench, decisions):
    readings = {
        each.feature: each for each in bench.read_net(packing(), Trials(8, 1), [CASE], decisions)
    }
    assert readings["behind_on_gpu"].lost != 0
    assert readings["behind_on_gpu"].slope < 0
    assert readings["behind_on_gpu"].is_steady
    assert readings["pod_cpu"].lost == 0
    assert readings["pod_cpu"].slope == 0


def test_a_net_without_a_feature_is_otherwise_the_same(bench):
    net, blind = packing(), bench.without(packing(), "behind_on_gpu")
    assert blind["linear"][FEATURES.index("behind_on_gpu")] == 0
    assert blind["linear"].sum() == -1.0
    assert net["linear"].sum() == -6.0


def test_tendencies_show_what_is_taken_more_often_than_by_chance(bench, decisions):
    is_share = decisions.seen[:, 0, FEATURES.index("pod_is_share")] > 0
    own = Decisions(decisions.seen[is_share], decisions.mask[is_share])
    little, much = bench.tendencies(own, "behind_on_gpu", [0, 0.5, 1])
    assert little.taken > little.chance
    assert much.taken < much.chance


@pytest.mark.deep
def test_a_sum_of_few_features_can_stand_for_a_net_that_is_one(bench, decisions):
    names = ("behind_on_gpu", "cpu_after")
    plain = bench.distilled(packing(), names, decisions, np.random.default_rng(1))
    assert np.flatnonzero(plain["linear"]).tolist() == sorted(map(FEATURES.index, names))
    assert not plain["out"].any()
    assert bench.agreement(plain, decisions) > 0.9
    assert bench.agreement(packing(), decisions) == pytest.approx(1, abs=0.05)


def test_places_with_the_same_score_are_taken_by_chance(bench):
    mask = np.zeros((3, MOST_CANDIDATES), np.bool_)
    mask[:, :4] = True
    seen = np.zeros((3, MOST_CANDIDATES, NUM_FEATURES), np.float32)
    nothing = first_arrays(8, np.random.default_rng(1))
    assert bench.agreement(nothing, Decisions(seen, mask)) == 0.25


def test_worths_follow_the_demand(bench):
    shapes = CASE.plan(load("fgd")).trace.shapes()
    found = bench.worths_of(packing(), shapes)
    assert found.by_size[[100, 1000]].tolist() == [0, 1]
    assert found.by_demand[1000] <= 1
    assert found.cpus_per_gpu.tolist() == pytest.approx([5, 8, 12, 5, 8, 12])
    assert not found.models.any()
