"""Steps environments: what they show, pay, refuse, and how they go on by themselves."""

import numpy as np
import pytest

from podium.errors import UnknownName, UsageError
from podium.model import Cluster, NodeSpec, PodSpec, Workload
from podium.policies import HOLD, load
from podium.policies.networks.features import CONTEXT_NAMES, NODE_NAMES, POD_NAMES
from podium.rl import Placement, World
from podium.sim import Holding, Inflation, Replay, Rounds, Setup, simulate

GPUS = POD_NAMES.index("gpus")


def small(**settings):
    return World.of_trace("openb", nodes=4, **{"seeds": range(1000, 1012), **settings})


def first_fit(environment):
    return environment.mask.argmax(axis=1)


def at_random(environment, random):
    return np.where(environment.mask, random.random(environment.mask.shape), -1).argmax(axis=1)


def line(*gpus, nodes=1):
    """Makes a world of 8-GPU nodes and pods with so many GPUs, in that order."""
    cluster = Cluster.of(NodeSpec(f"n{i}", 96_000, 786_432, 8, "A") for i in range(nodes))
    pods = Workload.of(PodSpec(f"p{i}", 1000, 1000, gpu, 1000) for i, gpu in enumerate(gpus))
    return cluster, pods


def ahead(environment):
    """Reads the GPUs of the pods behind the offered one; 0 stands for nobody."""
    return np.round(8 * environment.pods[0, 1:, GPUS]).astype(int).tolist()


def test_arrays_have_a_place_for_every_feature():
    environment = Placement(small(), 3, look_ahead=2)
    assert environment.nodes.shape == (3, 4, len(NODE_NAMES))
    assert environment.pods.shape == (3, 3, len(POD_NAMES))
    assert environment.context.shape == (3, len(CONTEXT_NAMES))
    assert environment.mask.shape == (3, 5)
    assert environment.nodes.dtype == environment.pods.dtype == np.float32


def test_rounds_show_who_comes_next_in_the_order_of_the_queue():
    world = World.of(*line(1, 2, 3, 4, 5, 6), protocol=Rounds(), seeds=[0])
    environment = Placement(world, look_ahead=3, seed=0)
    assert ahead(environment) == [2, 3, 4]
    environment.step(np.array([0]))
    assert ahead(environment) == [3, 4, 5]
    environment.step(np.array([1]))  # held: it waits for the next round
    assert ahead(environment) == [4, 5, 6]


def test_the_queue_goes_by_priority_before_arrival():
    cluster, _ = line(1)
    pods = Workload.of(
        PodSpec(f"p{i}", 0, 0, gpu, 1000, priority=priority)
        for i, (gpu, priority) in enumerate([(1, 0), (2, 5), (1, 0), (3, 5), (4, 0)])
    )
    world = World.of(cluster, pods, protocol=Rounds(), seeds=[0])
    environment = Placement(world, look_ahead=5, seed=0)
    assert round(8 * environment.pods[0, 0, GPUS]) == 2
    assert ahead(environment) == [3, 1, 1, 4, 0]


def test_arrivals_show_who_waits_and_not_who_is_yet_to_come():
    order = np.arange(4)
    protocol = Inflation(order=_order(order, 1), holding=Holding(hold_limit=3))
    environment = Placement(World.of(*line(1, 2, 3, 4), protocol=protocol, seeds=[0]), seed=0)
    assert ahead(environment) == [0, 0, 0, 0]
    environment.step(np.array([1]))
    environment.step(np.array([1]))
    assert ahead(environment) == [1, 2, 0, 0]


def _order(arrivals, nodes):
    from podium.sim import Order

    return Order(arrivals.astype(np.int64), np.arange(nodes))


def test_an_episode_that_is_over_is_followed_by_the_next_seed_of_the_environment():
    environment = Placement(small(), 3)
    found = [[], [], []]
    while min(map(len, found)) < 5:
        for i in range(3):
            if not found[i] or environment.is_done[i]:
                found[i].append(environment.plan(i).seed)
        environment.step(first_fit(environment))
    assert [seeds[:5] for seeds in found] == [
        [1000, 1003, 1006, 1009, 1000],
        [1001, 1004, 1007, 1010, 1001],
        [1002, 1005, 1008, 1011, 1002],
    ]


def test_more_environments_than_seeds_share_them():
    environment = Placement(small(seeds=[1000, 1001]), 5)
    assert [environment.plan(i).seed for i in range(5)] == [1000, 1001, 1000, 1001, 1000]
    environment.step(first_fit(environment))
    np.testing.assert_array_equal(environment.nodes[0], environment.nodes[2])


@pytest.mark.parametrize("protocol", [Rounds(), Inflation(), Replay(load=50.0)])
def test_the_same_seed_shows_the_same_episodes(protocol):
    world = small(protocol=protocol, pods=60)
    one, other = Placement(world, 4, seed=1003), Placement(world, 4)
    other.step(first_fit(other))
    other.reset(seed=1003)
    random, again = np.random.default_rng(1), np.random.default_rng(1)
    for _ in range(300):
        one.step(at_random(one, random))
        other.step(at_random(other, again))
        for name in ("nodes", "pods", "context", "mask", "reward", "is_done"):
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


def test_results_of_episodes_are_given_once():
    environment = Placement(small(), 2)
    while not environment.is_done.all():
        environment.step(first_fit(environment))
    results = environment.finished()
    assert {result.plan.seed for result in results} >= {1000, 1001}
    assert environment.finished() == []
    assert results[-1].metrics.gpu_allocation == pytest.approx(
        environment.final_allocation[results[-1].plan.seed % 2]
    )


def test_holding_a_pod_for_too_long_is_not_allowed():
    protocol = Rounds(5, Holding(max_holds=2))
    environment = Placement(World.of(*line(1), protocol=protocol, seeds=[0]), seed=0)
    allowed = []
    for _ in range(2):
        allowed.append(bool(environment.mask[0, 1]))
        environment.step(np.array([1]))
    assert allowed == [True, True]
    assert environment.mask.tolist() == [[True, False]]
    environment.step(np.array([1]))  # as in simulate: it goes to the first node that fits
    assert environment.finished()[0].is_placed.all()


def test_a_refused_action_moves_nothing():
    environment = Placement(small(), 2)
    before = environment.nodes.copy(), environment.mask.copy()
    for wrong, said in ((-1, "neither a node nor 4"), (5, "neither"), (99, "neither")):
        with pytest.raises(UsageError, match=said):
            environment.step(np.array([first_fit(environment)[0], wrong]))
    np.testing.assert_array_equal(environment.nodes, before[0])
    np.testing.assert_array_equal(environment.mask, before[1])


def test_a_node_that_does_not_fit_is_named():
    environment = Placement(World.of(*line(8, 8), protocol=Rounds(), seeds=[0]), seed=0)
    big = Placement(World.of(*line(8, 8, nodes=2), protocol=Rounds(), seeds=[0]), seed=0)
    big.step(np.array([0]))
    with pytest.raises(UsageError, match=r"does not fit node 0") as caught:
        big.step(np.array([0]))
    assert "p1" in caught.value.where
    with pytest.raises(UsageError, match="actions are float64"):
        environment.step(np.array([0.0]))


def test_an_episode_ends_after_so_many_steps():
    environment = Placement(small(), 2, max_steps=3)
    for _ in range(3):
        assert not environment.is_done.any()
        environment.step(first_fit(environment))
    assert environment.is_done.all()
    assert environment.is_truncated.all()
    assert environment.final_steps.tolist() == [3, 3]
    assert environment.final[0]["nodes"].any()
    assert [result.is_placed.sum() for result in environment.finished()] == [3, 3]


def test_smaller_clusters_leave_empty_rows_behind():
    sizes = {1000: 3, 1001: 2, 1002: 1, 1003: 3}

    def draw(seed):
        return line(1, 2, 8, nodes=sizes[seed])

    environment = Placement(World(draw, seeds=sorted(sizes)), 2)
    assert environment.nodes[1, 2].sum() == 0
    assert environment.mask[1].tolist() == [True, True, False, True]
    while environment.plan(0).seed != 1002:
        environment.step(first_fit(environment))
    assert environment.nodes[0, 1:].sum() == 0
    assert environment.mask[0].tolist() == [True, False, False, True]
    with pytest.raises(UsageError, match="neither a node nor 3"):
        environment.step(np.array([2, first_fit(environment)[1]]))


def test_a_larger_cluster_than_the_first_ones_is_refused():
    environment = Placement(World(lambda seed: line(8, nodes=1 + seed % 2), seeds=[1000, 1001]), 1)
    with pytest.raises(UsageError, match="seed 1001 has 2 nodes, there is room for 1"):
        environment.step(np.array([0]))


def test_plans_with_nothing_to_decide_are_passed_over():
    environment = Placement(World(lambda seed: line(9 if seed % 2 else 8), seeds=range(1000, 1004)))
    environment.step(np.array([0]))
    assert environment.is_done[0]
    assert environment.plan(0).seed == 1002


def test_a_world_in_which_no_pod_fits_is_refused():
    with pytest.raises(UsageError, match="no pod of this world fits any node"):
        Placement(World.of(*line(9), seeds=[0, 1]))


def test_rewards_are_mixed_by_weights():
    random = np.random.default_rng(0)
    names = ("gpu-allocation", "fragmentation", "balance")
    alone = {name: Placement(small(), 2, reward=name) for name in names}
    mixed = Placement(small(), 2, reward=dict(zip(names, (1.0, 0.5, -2.0), strict=True)))
    for _ in range(50):
        actions = at_random(mixed, random)
        for each in (*alone.values(), mixed):
            each.step(actions)
        a, b, c = (alone[name].reward for name in names)
        np.testing.assert_allclose(mixed.reward, a + 0.5 * b - 2.0 * c, rtol=1e-4, atol=1e-7)


def test_spreading_is_balanced_and_filling_is_compact():
    protocol = Rounds()
    paid = {}
    for reward in ("balance", "compactness"):
        for way, node in (("fill", 0), ("spread", 1)):
            world = World.of(*line(1, 1, nodes=2), protocol=protocol, seeds=[0])
            environment = Placement(world, reward=reward, seed=0)
            environment.step(np.array([0]))
            environment.step(np.array([node]))
            paid[reward, way] = environment.reward[0]
    assert paid["balance", "spread"] > paid["balance", "fill"]
    assert paid["compactness", "fill"] > paid["compactness", "spread"]


def test_a_function_pays_by_what_the_step_brought():
    seen = []

    def pay(outcome):
        seen.append((outcome.is_held.copy(), outcome.final_allocation.copy()))
        return np.where(outcome.is_held, -1.0, outcome.gpu_allocation)

    environment = Placement(World.of(*line(8), protocol=Rounds(), seeds=[0]), reward=pay, seed=0)
    environment.step(np.array([1]))
    assert environment.reward.tolist() == [-1.0]
    environment.step(np.array([0]))
    assert environment.reward.tolist() == [1.0]
    assert [each[0].tolist() for each in seen] == [[True], [False]]
    assert np.isnan(seen[0][1]).all()
    assert seen[1][1].tolist() == [1.0]


@pytest.mark.parametrize(
    ("pay", "said"),
    [
        (lambda outcome: outcome.final_allocation, "the reward function returned nan"),
        (lambda _outcome: np.inf, "the reward function returned inf"),
        (lambda _outcome: [1.0, 2.0], "returned float64 of shape"),
        (lambda _outcome: "much", "returned <U4 of shape"),
    ],
)
def test_what_is_no_reward_is_refused(pay, said):
    environment = Placement(World.of(*line(8), protocol=Rounds(), seeds=[0]), reward=pay, seed=0)
    with pytest.raises(UsageError, match=said):
        environment.step(np.array([1]))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"environments": 0}, "environments is 0"),
        ({"look_ahead": 17}, "look_ahead is 17"),
        ({"max_steps": 0}, "max_steps is 0"),
        ({"reward": {"balance": float("nan")}}, "the weight of balance is nan"),
    ],
)
def test_what_cannot_be_is_refused(given, said):
    with pytest.raises(UsageError, match=said):
        Placement(small(), **given)


def test_an_unknown_reward_is_told_with_the_closest():
    with pytest.raises(UnknownName, match='unknown reward "gpu-alocation"') as caught:
        Placement(small(), reward="gpu-alocation")
    assert "gpu-allocation" in caught.value.hint


def scored(environment, sessions):
    """Decides as sessions of a policy score: the best node, or a hold where all refuse."""
    actions, slots = [], []
    for i in range(len(environment)):
        offer = environment.offer(i)
        found = sessions[environment.plan(i)].scores(offer.pod, offer.nodes)
        best = int(found.scores.argmax())
        is_held = found.scores[best] == HOLD
        actions.append(environment.num_nodes if is_held else best)
        slots.append(-1 if is_held else int(found.gpu_slots[best]))
    return np.array(actions), np.array(slots)


@pytest.mark.parametrize("protocol", [Rounds(4), Inflation(), Replay(load=50.0)])
@pytest.mark.parametrize("name", ["best-fit", "fgd", "fed-gpu", "patient-84"])
def test_an_episode_by_the_scores_of_a_policy_is_its_run(name, protocol):
    policy = load(name)
    world = World.of_trace("openb", nodes=8, pods=90, protocol=protocol, seeds=range(1000, 1006))
    environment = Placement(world, 6)
    plans = [environment.plan(i) for i in range(6)]
    sessions = {plan: policy.session(plan.trace.shapes()) for plan in plans}
    found = {}
    while len(found) < 6:
        environment.step(*scored(environment, sessions))
        for result in environment.finished():
            found.setdefault(result.plan.seed, result.digest)
    for seed in world.seeds:
        run = simulate(*world.draw(seed), policy, protocol, Setup(seed))
        assert found[seed] == run.digest
