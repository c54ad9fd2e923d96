"""PPO: its arithmetic, learning, exact resume, and how what it learned is served."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

pytest.importorskip("jax", reason="training needs JAX")
pytest.importorskip("optax", reason="training needs optax")

import jax

from podium.errors import InputError, PodiumError, UsageError
from podium.policies import HOLD
from podium.policies.networks.attention import AttentionNetwork
from podium.policies.networks.features import CONTEXT_FEATURES, NODE_FEATURES, POD_FEATURES
from podium.policies.weights import write_weights
from podium.rl.configuration import as_object, configuration_of, create_config, template
from podium.rl.environment.placement import Placement
from podium.rl.ppo import ablation, network
from podium.rl.ppo.ablation import WHOLE, ablate, ablations, without
from podium.rl.ppo.algorithm import Configuration, make_judge, make_learner, make_world
from podium.rl.ppo.judging import figures_of_run, played, policy_of_trained
from podium.rl.ppo.learner import ROUNDS_LEFT
from podium.rl.ppo.network import CRITIC, IMPOSSIBLE, Observations, first_parameters, forward
from podium.rl.ppo.update import act, advantages_of, imitate, update, values_of

SMALL = {
    "cluster": {"nodes": 4},
    "workload": {"demands": [1.2]},
    "environment": {"environments": 16, "max_rounds": 4, "max_holds": 2},
    "network": {"width": 16, "heads": 2},
    "ppo": {"steps": 64, "minibatches": 4, "epochs": 3},
    "warm_start": {"teacher": ""},
    "training": {"episodes": 4, "save_interval": 1000},
}


def small(**changes):
    sections = {name: dict(keys) for name, keys in SMALL.items()}
    for name, keys in changes.items():
        sections.setdefault(name, {}).update(keys)
    return create_config("ppo", **sections)


def observations(rng, batch=6, nodes=5):
    mask = rng.random((batch, nodes + 1)) < 0.6
    mask[:, 0] = True
    shown = rng.random((batch, nodes, NODE_FEATURES), np.float32)
    shown[..., 0] = 1
    pods = rng.random((batch, 4, POD_FEATURES), np.float32)
    return Observations(shown, pods, rng.random((batch, CONTEXT_FEATURES), np.float32), mask)


@pytest.mark.parametrize("attention", ["cross", "self", "none"])
def test_the_network_in_batches_is_the_one_that_serves(attention):
    rng = np.random.default_rng(0)
    w = first_parameters(rng, 8, 2, attention, -0.5)
    seen = observations(rng)
    found = np.asarray(forward(w, seen).log_chances)
    network = AttentionNetwork(w, attention=attention, may_hold=True)
    for i, mask in enumerate(seen.mask):
        logits, holding = network.decide(seen.nodes[i], seen.pods[i], seen.context[i])
        fitting = logits[mask[:-1]]
        expected = fitting - np.log(np.exp(fitting).sum())
        expected = expected - (np.log1p(np.exp(holding)) if mask[-1] else 0)
        assert np.allclose(found[i, :-1][mask[:-1]], expected, atol=1e-4)
        assert (found[i, :-1][~mask[:-1]] < -1e8).all()
        held = -np.log1p(np.exp(-holding)) if mask[-1] else -1e9
        assert found[i, -1] == pytest.approx(held, abs=1e-4)
        assert np.exp(found[i].astype(np.float64)).sum() == pytest.approx(1)


def test_absent_nodes_change_nothing():
    rng = np.random.default_rng(1)
    w = first_parameters(rng, 8, 2, "cross", 0.0)
    seen = observations(rng)
    more = np.concatenate([seen.nodes, np.zeros((6, 3, NODE_FEATURES), np.float32)], axis=1)
    mask = np.concatenate([seen.mask[:, :-1], np.zeros((6, 3), bool), seen.mask[:, -1:]], axis=1)
    before, after = forward(w, seen), forward(w, seen._replace(nodes=more, mask=mask))
    assert np.allclose(before.log_chances[:, :-1], after.log_chances[:, :5], atol=1e-5)
    assert np.allclose(before.values, after.values, atol=1e-5)


def test_advantages_are_those_of_the_definition():
    rng = np.random.default_rng(2)
    rewards, values = rng.random((2, 7, 3)).astype(np.float32)
    is_done, last = rng.random((7, 3)) < 0.3, rng.random(3).astype(np.float32)
    found = advantages_of(rewards, values, is_done, last, 0.9, 0.8)
    expected = np.zeros((8, 3))
    for step in reversed(range(7)):
        following = last if step == 6 else values[step + 1]
        goes_on = 1 - is_done[step]
        surprise = rewards[step] + 0.9 * following * goes_on - values[step]
        expected[step] = surprise + 0.9 * 0.8 * goes_on * expected[step + 1]
    assert np.allclose(found, expected[:-1], atol=1e-5)


def test_a_restored_learner_goes_on_to_the_bit():
    whole, first = (make_learner(small(), 7, "cpu") for _ in range(2))
    for _ in range(2):
        whole.iterate()
    first.iterate()
    state = {name: np.array(each) for name, each in first.state().items()}
    second = make_learner(small(), 7, "cpu")
    second.restore(state)
    figures = second.iterate()
    assert figures["steps"] == 16 * 64
    for name, array in whole.state().items():
        assert np.array_equal(array, second.state()[name]), name


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("iterations", np.array(-1)),
        ("weight/pod_b", np.zeros(3, np.float32)),
        ("weight/pod_b", None),
        ("moment/1", np.zeros(3, np.float32)),
    ],
)
def test_a_state_that_no_learner_returned_is_not_taken_up(name, wrong):
    learner = make_learner(small(), 7, "cpu")
    state = {each: array for each, array in learner.state().items() if each != name}
    with pytest.raises(InputError):
        learner.restore(state if wrong is None else {**state, name: wrong})


def test_the_same_seed_learns_the_same_and_another_does_not():
    one, same, other = (make_learner(small(), seed, "cpu") for seed in (1, 1, 2))
    for learner in (one, same, other):
        learner.iterate()
    assert all(np.array_equal(one.state()[name], same.state()[name]) for name in one.state())
    assert not np.array_equal(one.state()["weight/node_w"], other.state()["weight/node_w"])


def greedy(environment, network, max_rounds):
    """Chooses as the policy serves, by what the environment shows."""
    actions = np.zeros(len(environment), np.int64)
    for i in range(len(environment)):
        logits, holding = network.decide(
            environment.nodes[i], environment.pods[i], environment.context[i]
        )
        may_wait = (
            environment.mask[i, -1] and environment.context[i, ROUNDS_LEFT] > 1.5 / max_rounds
        )
        best = np.where(environment.mask[i, :-1], logits, -np.inf).argmax()
        actions[i] = environment.num_nodes if may_wait and holding > 0 else best
    return actions


@pytest.mark.parametrize("look_ahead", [0, 3])
def test_what_is_served_plays_the_episode_of_the_environment(look_ahead):
    configuration = small(
        environment={"look_ahead": look_ahead}, warm_start={"hold_bias": 0.0}, cluster={"nodes": 7}
    )
    world, holds, placements = make_world(configuration), 0, 0
    for seed in range(3):
        trained = make_learner(configuration, seed, "cpu").trained()  # any weights will do
        environment = Placement(world, 2, look_ahead=look_ahead, seed=world.seeds[0])
        network = AttentionNetwork(trained.arrays, attention="cross", may_hold=True)
        ended = []
        while len(ended) < 2:
            environment.step(greedy(environment, network, 4))
            ended += environment.finished()
        for result in ended:
            served = played(policy_of_trained(trained), world, result.plan.seed)
            assert np.array_equal(served.node, result.node)
            assert np.array_equal(served.slots, result.slots)
            assert np.array_equal(served.holds, result.holds)
            assert np.array_equal(served.start_s, result.start_s, equal_nan=True)
            holds += result.held_decisions
            placements += int(result.is_placed.sum())
    assert holds > 0
    assert placements > 0


def test_nothing_that_fits_is_held_in_the_end():
    configuration = small(warm_start={"hold_bias": 20.0})
    learner, world = make_learner(configuration, 3, "cpu"), make_world(configuration)
    policy = policy_of_trained(learner.trained())
    for seed in (2000, 2001):
        result = played(policy, world, seed)
        assert result.held_decisions > 0
        assert result.holds.max() <= configuration.environment.max_holds
        assert figures_of_run(result)["held_in_the_end"] == 0


def test_without_holding_no_pod_waits():
    configuration = small(environment={"hold": False}, warm_start={"hold_bias": 20.0})
    learner, world = make_learner(configuration, 3, "cpu"), make_world(configuration)
    assert learner.iterate()["held_share"] == 0
    policy = policy_of_trained(learner.trained())
    assert not policy.may_hold
    assert played(policy, world, 2000).held_decisions == 0
    assert HOLD < 0


def test_training_improves_in_a_tiny_world():
    configuration = small(
        environment={"hold_cost": 0.0}, ppo={"learning_rate": 5e-3, "entropy": 0.0}
    )
    learner = make_learner(configuration, 1, "cpu")
    figures = [learner.iterate() for _ in range(12)]
    first, last = (
        np.mean([f["gpu_allocation"] for f in part]) for part in (figures[:2], figures[-2:])
    )
    assert last > first + 0.01
    assert figures[-1]["explained"] > 0.5


@pytest.mark.deep
def test_a_warm_start_places_as_its_teacher():
    configuration = small(
        warm_start={"teacher": "best-fit", "steps": 64, "epochs": 20},
    )
    warm, cold = make_learner(configuration, 1, "cpu"), make_learner(small(), 1, "cpu")
    warm.iterate()
    cold.iterate()
    world = make_world(configuration)
    teacher = played_by("best-fit", world)
    alike = [
        np.mean(played(policy_of_trained(each.trained()), world, 2000).node == teacher.node)
        for each in (warm, cold)
    ]
    assert alike[0] > alike[1]


def played_by(name, world):
    from podium.policies import load

    return played(load(name), world, 2000)


def test_what_is_trained_is_the_actor_alone():
    trained = make_learner(small(), 1, "cpu").trained()
    assert trained.network == "attention"
    assert not any(name.startswith(CRITIC) for name in trained.arrays)
    assert trained.facts["look_ahead"] == 4
    assert trained.facts["configuration"]["cluster"]["nodes"] == 4


def test_each_ablation_takes_one_part_away():
    names = list(ablations())
    assert names == ["no-attention", "no-hold", "no-look-ahead", "no-shaping", "no-warm-start"]
    whole = small(warm_start={"teacher": "fed-gpu"})
    for path in ablations().values():
        changed = without(whole, path)
        differing = [
            (section.name, key.name)
            for section in dataclasses.fields(whole)
            for key in dataclasses.fields(getattr(whole, section.name))
            if getattr(getattr(whole, section.name), key.name)
            != getattr(getattr(changed, section.name), key.name)
        ]
        assert len(differing) == 1, path


def test_ablations_are_compared_on_the_same_seeds():
    rows = ablate(small(), 1, "cpu", names=["no-hold"], seeds=[3000, 3001])
    assert [row.name for row in rows] == [WHOLE, "no-hold"]
    assert rows[0].difference is None
    assert rows[1].holds_per_pod == 0
    points = 100 * (rows[1].gpu_allocation - rows[0].gpu_allocation)
    assert rows[1].difference.mean == pytest.approx(points)


def test_no_ablation_pays_for_compiling_within_its_minutes(monkeypatch):
    jitted, counts = (act, imitate, update, values_of), []

    class Counted(ablation.Training):
        def run(self):
            before = [each._cache_size() for each in jitted]
            end = super().run()
            counts.append((before, [each._cache_size() for each in jitted]))
            return end

    jax.clear_caches()
    monkeypatch.setattr(ablation, "Training", Counted)
    own = small(
        warm_start={"teacher": "fed-gpu", "epochs": 1}, training={"episodes": 0, "minutes": 1e-6}
    )
    ablate(own, 1, "cpu", names=["no-look-ahead"], seeds=[3000])
    assert len(counts) == 2
    for before, after in counts:
        assert min(before) > 0
        assert before == after


def test_ablations_are_not_measured_on_training_seeds():
    with pytest.raises(PodiumError, match="seed 10000 is one that policies are trained"):
        ablate(small(), 1, "cpu", names=["no-hold"], seeds=[10_000])


def test_the_template_describes_every_key_and_is_read_back():
    import tomllib

    text = template(Configuration())
    assert configuration_of(Configuration, tomllib.loads(text)) == Configuration()
    assert all(line for line in text.splitlines() if line.startswith("#"))
    assert as_object(Configuration())["ppo"]["discount"] == 1.0


def test_a_device_that_is_not_there_is_named():
    if any(each.platform == "gpu" for each in jax.devices()):
        pytest.skip("there is a GPU")
    with pytest.raises(PodiumError, match="no gpu"):
        make_learner(small(), 1, "gpu")


def test_the_slopes_of_attention_are_those_that_jax_derives():
    rng = np.random.default_rng(4)
    hidden, keys = rng.normal(size=(3, 5, 8)), rng.normal(size=(3, 2, 8))
    barred = np.where(rng.random((3, 5)) < 0.3, IMPOSSIBLE, 0.0)
    weights = rng.normal(size=(3, 2, 8))

    def slopes(attend):
        return jax.grad(lambda *given: (attend(*given, barred) * weights).sum(), (0, 1))(
            hidden, keys
        )

    for own, derived in zip(
        slopes(network._attended), slopes(lambda *given: network._attend(*given)[0]), strict=True
    ):
        assert np.abs(own).max() > 0.1
        assert np.allclose(own, derived, atol=1e-5)


def test_iterations_play_on_clusters_of_several_sizes_in_turn():
    learner = make_learner(small(cluster={"nodes": 4, "sizes": [4, 8]}), 1, "cpu")
    played_on = []
    for _ in range(3):
        ground = learner._ground()
        figures = learner.iterate()
        played_on.append((ground.environment.num_nodes, len(ground.environment)))
        assert figures["steps"] == 16 * 64
        assert figures["episodes"] > 0
    assert played_on == [(4, 16), (8, 8), (4, 16)]


def test_a_hold_costs_as_many_gpus_on_every_size():
    learner = make_learner(small(cluster={"nodes": 4, "sizes": [4, 8]}), 1, "cpu")
    costs = [learner._grounds[size].hold_cost for size in (4, 8)]
    assert costs[0] == small().environment.hold_cost
    assert costs[1] == pytest.approx(costs[0] / 2)


def test_more_runs_of_a_validation_take_traces_and_demands_in_turn():
    sections = {"workload": {"demands": [0.5, 1.3]}}
    trained = make_learner(small(**sections), 1, "cpu").trained()

    def score(demands, runs):
        asked = small(workload={"demands": demands}, validation={"runs": runs})
        return make_judge(asked)(trained)["score"]

    assert score([0.5, 1.3], 1) == score([0.5], 1)
    assert score([0.5, 1.3], 21) == pytest.approx(
        (20 * score([0.5, 1.3], 20) + score([0.5], 1)) / 21
    )


def test_episodes_that_never_end_are_refused():
    learner = make_learner(small(ppo={"steps": 2, "minibatches": 1}), 1, "cpu")
    with pytest.raises(UsageError, match="no episode ended within 2 decisions"):
        learner.iterate()


@pytest.mark.parametrize("trace", ["opneb", "openb:nothing", "no/such/file.csv", ""])
def test_unknown_traces_are_refused_at_the_start(trace):
    with pytest.raises(PodiumError, match=r"workload\.traces is"):
        small(workload={"traces": ["openb", trace]})


def test_weights_of_an_earlier_training_are_begun_with(tmp_path):
    earlier = make_learner(small(), 1, "cpu")
    earlier.iterate()
    given, path = earlier.trained(), tmp_path / "given.npz"
    write_weights(path, given.network, given.arrays, dict(given.facts))
    still = {"learning_rate": 1e-9, "entropy": 0.0}
    learner = make_learner(small(warm_start={"weights": str(path)}, ppo=still), 2, "cpu")
    figures, trained = learner.iterate(), learner.trained()
    assert trained.facts["warm_start"] == "weights of given.npz"
    assert figures["explained"] > 0.1  # the critic knows what to expect
    for name, array in given.arrays.items():
        assert np.allclose(trained.arrays[name], array, atol=1e-5), name


def test_weights_of_another_network_are_refused(tmp_path):
    given, path = make_learner(small(), 1, "cpu").trained(), tmp_path / "given.npz"
    write_weights(path, given.network, given.arrays, dict(given.facts))
    other = small(warm_start={"weights": str(path)}, network={"width": 8})
    with pytest.raises(InputError):
        make_learner(other, 1, "cpu").iterate()
    with pytest.raises(PodiumError, match="no such file"):
        small(warm_start={"weights": str(tmp_path / "nowhere.npz")})


def test_fewer_lessons_than_a_minibatch_are_learned_from_all_the_same():
    few = {"teacher": "best-fit", "steps": 4, "epochs": 2, "minibatch": 512}
    still = {"learning_rate": 1e-9, "entropy": 0.0}
    warm, cold = (
        make_learner(small(warm_start=few, ppo=still), 1, "cpu"),
        make_learner(small(ppo=still), 1, "cpu"),
    )
    warm.iterate()
    cold.iterate()
    moved = warm.trained().arrays["node_w"] - cold.trained().arrays["node_w"]
    assert 1e-4 < np.abs(moved).max() < 1
