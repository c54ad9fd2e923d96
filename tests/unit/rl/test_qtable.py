"""The Q-table: states without order, what it falls back to, learning, saving, continuing."""

from dataclasses import replace

import numpy as np
import pytest

from podium.errors import InputError, PodiumError, UnknownName
from podium.model import Cluster, NodeSpec
from podium.model.records import ANY_MODEL, POD, pod_view
from podium.policies import HOLD, load
from podium.policies.networks.qtable import (
    AIMS,
    Care,
    Condensing,
    Table,
    TableChooser,
    Worths,
    decided,
    facts_of,
    make,
)
from podium.policies.weights import Weights, write_weights
from podium.rl.configuration import create_config
from podium.rl.qtable.algorithm import make_judge, make_learner, policy_of, scores
from podium.rl.qtable.world import World, worth_of
from podium.rl.training import Limits, Training

SMALL = {"world": {"pods": 60}, "learning": {"environments": 8, "least_visits": 3}}


def nodes_with(*free):
    nodes = Cluster.of(NodeSpec(f"n{i}", 1000, 1000) for i in range(len(free))).nodes
    nodes["memory_mib_left"] = free
    return nodes


def pods_of(*sizes):
    pods = np.zeros(len(sizes), POD)
    pods["memory_mib"], pods["gpu_models"] = sizes, ANY_MODEL
    return pods


def state_of(condensing, nodes, pods):
    fits = nodes["memory_mib_left"] >= pods["memory_mib"][0]
    keys, orders = condensing.states(nodes[None], pods[None], fits[None])
    return keys[0].tolist(), orders[0].tolist()


def test_clusters_that_differ_in_order_alone_are_one_state():
    of = Condensing()
    first, order = state_of(of, nodes_with(950, 310, 930), pods_of(200))
    other, another = state_of(of, nodes_with(930, 950, 310), pods_of(200))
    assert first == other == [3, 9, 9, 2, 1, 1, 1]
    assert order == [1, 2, 0]  # within a bin the fuller first
    assert another == [2, 0, 1]


def test_any_number_of_bins_and_resources_counts():
    nodes = Cluster.of([NodeSpec("a", 1000, 1000, 2, "V"), NodeSpec("b", 1000, 1000)]).nodes
    of = Condensing(("cpu", "memory", "gpu"), node_bins=100, pod_bins=4, look_ahead=2)
    pods = np.array([(500, 250, 1, 1000, ANY_MODEL, 0, 0), (10, 10, 0, 0, ANY_MODEL, 0, 0)], POD)
    keys, _ = of.states(nodes[None], pods[None], np.ones((1, 2), np.bool_))
    assert keys.shape[1] == of.width(2)
    assert keys[0].tolist() == [99, 99, 0, 99, 99, 99, 2, 1, 2, 0, 0, 0, 1, 1]


@pytest.mark.parametrize(("aim", "heuristic"), [("compact", "compact"), ("balance", "balanced")])
def test_an_unseen_state_is_decided_as_the_heuristic_decides(aim, heuristic):
    random, of = np.random.default_rng(3), Condensing()
    empty = Table(of, aim, np.zeros((0, of.width(3)), np.int16), _worths(0, 3), Care())
    chooser, other = TableChooser(empty), load(heuristic).session()
    for _ in range(50):
        nodes, pod = (
            nodes_with(*random.integers(300, 1001, 3)),
            pods_of(random.integers(50, 300))[0],
        )
        chosen = chooser.choose(pod_view(pod), nodes, np.ones(3, np.bool_))
        assert chosen == other.scores(pod, nodes).scores.argmax()


def _worths(states, nodes, values=0.0, visits=0):
    size = (states, nodes + 1)
    return Worths(np.full(size, values), np.full(size, visits), np.zeros(size))


def one_state(values, visits, spreads=0.0, care=None):
    nodes, pod, of = nodes_with(300, 600, 900), pods_of(200), Condensing()
    keys, _ = of.states(nodes[None], pod[None], np.ones((1, 3), np.bool_))
    worths = Worths(np.array([values], float), np.array([visits]), np.full((1, 4), spreads))
    table = Table(of, "compact", keys, worths, care or Care(10, 2.0))
    return TableChooser(table), pod_view(pod[0]), nodes, np.ones(3, np.bool_)


def test_what_is_surely_better_is_taken_and_nothing_else():
    chooser, *seen = one_state([1.0, 5.0, 2.0, 0.0], [100] * 4, spreads=1.0)
    assert chooser.choose(*seen) == 1
    chooser, *seen = one_state([1.0, 1.1, 1.0, 0.0], [100] * 4, spreads=1.0)
    assert chooser.choose(*seen) == 0  # by two standard errors it is not
    chooser, *seen = one_state([1.0, 5.0, 2.0, 0.0], [100, 9, 100, 100], spreads=0.0)
    assert chooser.choose(*seen) == 2  # tried too seldom


def test_a_pod_is_held_where_that_is_surely_better():
    chooser, *seen = one_state([1.0, 1.0, 1.0, 9.0], [100] * 4)
    assert chooser.choose(*seen) == HOLD
    assert (chooser.scores(*seen) == HOLD).all()


def test_the_chosen_node_has_the_highest_score():
    for values in ([1.0, 5.0, 2.0, 0.0], [1.0, 1.1, 1.0, 0.0]):
        chooser, *seen = one_state(values, [100] * 4, spreads=1.0)
        assert chooser.scores(*seen).argmax() == chooser.choose(*seen)


def test_a_cluster_of_another_size_is_decided_by_the_aim():
    chooser, pod, _, _ = one_state([1.0, 5.0, 2.0, 0.0], [100] * 4)
    assert chooser.choose(pod, nodes_with(900, 300, 600, 700), np.ones(4, np.bool_)) == 1


def test_every_decision_is_one_that_fits():
    random = np.random.default_rng(0)
    worths = Worths(random.normal(size=(9, 4)), random.integers(0, 30, (9, 4)), np.ones((9, 4)))
    allowed = random.random((9, 4)) < 0.5
    allowed[:, 1] = True
    chosen = decided(worths, allowed, np.ones(9, np.int64), Care(3, 1.0))
    assert allowed[np.arange(9), chosen].all()


def test_the_world_is_the_one_of_the_original():
    world = World(pods=4000)
    workload = world.workload(("memory",), 1000)
    shares = workload.pods["memory_mib"] / 1000
    assert len(world.cluster(("memory",))) == 3
    assert shares.min() == 0.05
    assert abs(shares.mean() - 0.2) < 0.01
    assert ((shares * 100) % 1 < 1e-6).sum() + ((shares * 100) % 1 > 1 - 1e-6).sum() == 4000
    assert 0.001 <= workload.duration_s.min() <= workload.duration_s.max() <= 0.01
    rate = 4000 / workload.arrival_s[-1]
    assert abs(rate * 0.0055 * 0.2 / 3 - 0.88) < 0.05


def test_worth_is_the_mean_over_time():
    world = World(pods=2, load=0.01)
    found = world.simulated(load("compact"), ("memory",), 5)
    workload = world.workload(("memory",), 5)
    shares, times = workload.pods["memory_mib"] / 1000, workload.duration_s
    span_s = workload.arrival_s[1] - workload.arrival_s[0]
    assert span_s > times[0]  # the first has left before the second comes
    expected = shares[0] ** 2 * times[0] / span_s / 3
    assert worth_of(found, "compact", Condensing()) == pytest.approx(expected)


def learned(configuration, iterations=3, seed=1000):
    learner = make_learner(configuration, seed)
    for _ in range(iterations):
        learner.iterate()
    return learner


def test_the_same_seed_learns_the_same_table_and_another_one_another():
    of = create_config("qtable", **SMALL)
    first, same, other = learned(of), learned(of), learned(of, seed=1001)
    for name, array in first.trained().arrays.items():
        assert array.tobytes() == same.trained().arrays[name].tobytes()
    assert len(first.trained().arrays["keys"]) != len(other.trained().arrays["keys"])


def test_a_restored_learner_goes_on_to_the_bit():
    of = create_config("qtable", **SMALL)
    whole, parted = learned(of, 4), learned(of, 2)
    other = make_learner(of, seed=77)
    other.restore({name: array.copy() for name, array in parted.state().items()})
    for _ in range(2):
        other.iterate()
    for name, array in whole.state().items():
        assert array.tobytes() == other.state()[name].tobytes()


def test_it_looks_ahead_at_the_pods_that_wait():
    of = create_config("qtable", **SMALL, state={"look_ahead": 3})
    trained = learned(of).trained()
    pods = trained.arrays["keys"][:, 3:6]
    assert (pods[:, 0] >= 0).all()
    assert (pods[:, 1] >= 0).any()
    assert (pods[:, 2] == -1).any()
    assert scores(policy_of(trained), of, range(2000, 2002))[0] > 0


def test_tables_with_cpu_and_gpus_are_learned():
    of = create_config("qtable", **SMALL, state={"resources": ["cpu", "memory", "gpu"]})
    assert scores(policy_of(learned(of, 1).trained()), of, range(2000, 2001))[0] > 0


@pytest.mark.parametrize("aim", AIMS)
def test_a_short_training_beats_chance_and_turns(aim, tmp_path):
    of = create_config("qtable", **{**SMALL, "learning": {**SMALL["learning"], "aim": aim}})
    end = Training(
        make_learner(of, 1000), make_judge(of), tmp_path, Limits(16, save_interval=8)
    ).run()
    seeds = range(3000, 3012)
    own = np.mean(scores(policy_of(end.best), of, seeds))
    assert own > np.mean(scores(load("random"), of, seeds))
    assert own > np.mean(scores(load("round-robin"), of, seeds)) - 1e-9


def test_an_aim_can_be_added(monkeypatch):
    monkeypatch.setitem(AIMS, "full", replace(AIMS["compact"], worth=lambda used: used**4))
    of = create_config("qtable", **{**SMALL, "learning": {**SMALL["learning"], "aim": "full"}})
    assert policy_of(learned(of, 1).trained()).name == "q-table"


@pytest.mark.parametrize("state", [{"look_ahead": 65}, {"resources": ["cpu", "cpu"]}])
def test_a_state_out_of_bounds_is_not_trained(state):
    with pytest.raises(PodiumError):
        make_learner(create_config("qtable", state=state), 1000)


def test_an_unknown_aim_is_refused():
    with pytest.raises(UnknownName, match='unknown aim "compakt"'):
        make_learner(create_config("qtable", learning={"aim": "compakt"}), 1000)


def test_a_saved_table_decides_as_before(tmp_path):
    of = create_config("qtable", **SMALL)
    trained = learned(of).trained()
    file = tmp_path / "table.npz"
    write_weights(file, trained.network, trained.arrays, {**trained.facts, "name": "mine"})
    loaded = load(str(file))
    assert (loaded.name, loaded.kind, loaded.origin) == ("mine", "cluster", "trained")
    seeds = range(2000, 2003)
    assert scores(loaded, of, seeds) == scores(policy_of(trained), of, seeds)
    assert f"{len(trained.arrays['keys']):,} states of 3 nodes" in loaded.text


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"nodes": 4}, "keys has the shape"),
        ({"states": 1}, "keys has the shape"),
        ({"table_version": 9}, "version 1"),
        ({"aim": "compakt"}, "unknown aim"),
        ({"node_bins": 0}, "bins"),
        ({"node_bins": 20.5}, "bins"),
        ({"resources": ["memory", "memory"]}, "each once"),
        ({"look_ahead": None}, "not a Q-table"),
        ({"look_ahead": 10**9}, "1 to 64 pods"),
        ({"errors": 1e400}, "errors is inf"),
        ({"errors": 10**400}, "not a Q-table"),
        ({"errors": 1e308}, r"errors is 1e\+308, not a number from 0 to 1,000,000"),
        ({"nodes": 0}, "nodes is 0"),
        ({"nodes": 10**9}, "nodes is 1000000000"),
        ({"states": 1e400}, "states is inf"),
        ({"least_visits": 1e400}, "least_visits is inf"),
    ],
)
def test_a_card_that_does_not_fit_its_table_is_refused(change, told):
    trained = learned(create_config("qtable", **SMALL), 1).trained()
    with pytest.raises((InputError, UnknownName), match=told):
        make(Weights("mine", trained.arrays, {**trained.facts, **change}))


@pytest.mark.parametrize(
    ("name", "dtype"),
    [("keys", "f8"), ("keys", "U4"), ("values", "c16"), ("visits", "M8[s]"), ("spreads", "V8")],
)
def test_a_table_of_other_things_than_numbers_is_refused(name, dtype):
    table = Table(Condensing(), "compact", np.zeros((0, 7), np.int16), _worths(0, 3), Care())
    known = {"keys": table.keys, "values": table.worths.values, "visits": table.worths.visits,
             "spreads": table.worths.spreads}  # fmt: skip
    assert make(Weights("mine", known, facts_of(table))).name == "mine"
    wrong = {**known, name: known[name].astype(dtype)}
    with pytest.raises(InputError, match=f"the array {name} holds"):
        make(Weights("mine", wrong, facts_of(table)))


def test_a_key_that_is_too_large_is_refused():
    table = Table(Condensing(), "compact", np.zeros((1, 7), np.int64), _worths(1, 3), Care())
    known = {"values": table.worths.values, "visits": table.worths.visits,
             "spreads": table.worths.spreads}  # fmt: skip
    assert make(Weights("mine", {**known, "keys": table.keys}, facts_of(table)))
    with pytest.raises(InputError, match="of the array keys"):
        make(Weights("mine", {**known, "keys": table.keys + 2**16}, facts_of(table)))


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("keys", lambda keys: keys[:, :-1]),
        ("keys", lambda keys: keys[[0, *range(len(keys) - 1)]]),
        ("values", lambda values: values[:-1]),
        ("visits", lambda visits: visits * 0.5),
        ("means", lambda means: means * np.nan),
        ("counts", lambda counts: -counts),
        ("random", lambda state: state[:-1]),
    ],
)
def test_a_state_that_no_learner_returned_is_not_taken_up(name, wrong):
    of = create_config("qtable", **SMALL)
    state = learned(of, 1).state()
    make_learner(of, 1000).restore(state)
    with pytest.raises((InputError, ValueError)):
        make_learner(of, 1000).restore({**state, name: wrong(state[name])})


def test_a_table_with_a_hole_is_refused():
    trained = learned(create_config("qtable", **SMALL), 1).trained()
    values = trained.arrays["values"].copy()
    values[0, 0] = np.nan
    with pytest.raises(InputError, match="not a finite number"):
        make(Weights("mine", {**trained.arrays, "values": values}, trained.facts))


def test_facts_name_what_the_table_is_about():
    table = Table(Condensing(), "compact", np.zeros((0, 7), np.int16), _worths(0, 3), Care())
    assert facts_of(table)["resources"] == ["memory"]


@pytest.mark.parametrize(
    ("name", "value"), [("spreads", -1.0), ("values", 1e308), ("spreads", 1e308), ("visits", -1)]
)
def test_worths_that_nobody_can_reckon_with_are_refused(name, value):
    table = Table(Condensing(), "compact", np.zeros((1, 7), np.int16), _worths(1, 3), Care())
    known = {"keys": table.keys, "values": table.worths.values, "visits": table.worths.visits,
             "spreads": table.worths.spreads}  # fmt: skip
    assert make(Weights("mine", known, facts_of(table)))
    wrong = {**known, name: np.full_like(known[name], value)}
    with pytest.raises(InputError, match="out of range"):
        make(Weights("mine", wrong, facts_of(table)))


def test_a_table_that_knows_too_little_says_so_and_shows_none():
    table = Table(Condensing(), "compact", np.ones((1, 7), np.int16), _worths(1, 3), Care())
    assert "no node was tried" in table.sheet()
    assert "free of nodes" not in table.sheet()
