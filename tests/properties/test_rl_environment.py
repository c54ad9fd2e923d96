"""Holds environments to `simulate`, placement by placement, and what they show to plain Python."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from podium.model.records import node_view
from podium.policies.networks import features
from podium.rl import Placement, World
from podium.rl.environment.rewards import PARTS
from podium.sim import Setup, simulate
from podium.sim.stepping import HOLD_ACTION
from support import constrained
from support.agreement import same_result
from support.instances import clusters, inflations, replays, rounds, single_workloads, workloads
from support.probes import PROBES
from support.stepped import decider

probes = st.sampled_from(sorted(PROBES)).map(PROBES.get)
holding_probes = st.sampled_from(
    ["holding", "holding-slots", "holding-any", "refusing", "wanderer"]
).map(PROBES.get)
seeds = st.sampled_from((0, 1, 1000))


def thoroughly(examples):
    return settings(
        max_examples=examples, deadline=None, suppress_health_check=[HealthCheck.too_slow]
    )


def offers_nothing(run):
    """Tells whether no pod is ever offered; a world has to offer something."""
    return not (run.is_placed & ~run.is_bound).any() and not run.holds.any()


def world_of(cluster, workload, protocol, seed, gpu_choice="best"):
    return World.of(cluster, workload, protocol=protocol, seeds=[seed], gpu_choice=gpu_choice)


def decided_by(environment, policy):
    """Decides offers of one environment as a policy does in a run; gives its result."""
    decide = decider(replace(environment.plan(0), policy=policy))
    while True:
        node, slot = decide(environment.offer(0))
        action = environment.num_nodes if node == HOLD_ACTION else node
        environment.step(np.array([action]), np.array([slot]))
        if environment.is_done[0]:
            return environment.finished()[0]


def assert_episode_is_the_run(cluster, workload, policy, protocol, seed):
    run = simulate(cluster, workload, policy, protocol, Setup(seed))
    if offers_nothing(run):
        return
    environment = Placement(
        world_of(cluster, workload, protocol, seed, policy.gpu_choice), seed=seed
    )
    for _ in range(2):  # the same episode again, on memory that has been used
        assert same_result(decided_by(environment, policy), run)


@thoroughly(50)
@given(clusters, workloads, probes, replays, seeds)
def test_an_episode_of_a_replay_is_the_run_of_the_policy(cluster, workload, policy, protocol, seed):
    assert_episode_is_the_run(cluster, workload, policy, protocol, seed)


@thoroughly(50)
@given(clusters, workloads, holding_probes, replays | rounds, seeds)
def test_an_episode_with_holds_is_the_run_of_the_policy(cluster, workload, policy, protocol, seed):
    assert_episode_is_the_run(cluster, workload, policy, protocol, seed)


@thoroughly(40)
@given(st.data(), clusters, workloads, probes, seeds)
def test_an_episode_of_an_inflation_is_the_run_of_the_policy(data, cluster, workload, policy, seed):
    protocol = data.draw(inflations(cluster, workload))
    assert_episode_is_the_run(cluster, workload, policy, protocol, seed)


@thoroughly(40)
@given(clusters, workloads, probes, rounds, seeds)
def test_an_episode_of_rounds_is_the_run_of_the_policy(cluster, workload, policy, protocol, seed):
    assert_episode_is_the_run(cluster, workload, policy, protocol, seed)


@pytest.mark.deep
@thoroughly(30)
@given(st.data(), constrained.clusters, probes, replays | rounds)
def test_an_episode_keeps_constraints_and_pods_that_run_already(data, cluster, policy, protocol):
    workload = data.draw(constrained.occupied_workloads(cluster))
    if workload.on(cluster).gpu_shares is not None and policy.kind == "pair":
        return  # offers show the pod as it is on most nodes, and it is another share on some
    assert_episode_is_the_run(cluster, workload, policy, protocol, 1000)


def acted_at_random(environment, random):
    allowed = np.flatnonzero(environment.mask[0])
    environment.step(np.array([random.choice(allowed)]))


def as_in_python(environment):
    """Writes what an environment should show of its nodes and of the offered pod."""
    offer, plan = environment.offer(0), environment.plan(0)
    shown = plan.cluster.nodes
    rows = np.zeros((environment.num_nodes, features.NODE_FEATURES), np.float32)
    for row, record, fits in zip(rows, offer.nodes, offer.feasible, strict=True):
        node = node_view(record)
        of_model = shown["gpu_count"][shown["gpu_model"] == node.gpu_model].sum()
        share = of_model / max(1, shown["gpu_count"].sum()) if node.gpu_model >= 0 else 0.0
        slots = len(node.gpu_milli_left)
        features.write_state(row, node, node.gpu_milli_left, slots, share)
        if fits:
            features.write_pair(row, offer.pod, node, node.gpu_milli_left, slots)
    pod = np.zeros(features.POD_FEATURES, np.float32)
    features.write_pod(pod, offer.pod, 0)
    return rows, pod[:-1]


def cluster_in_python(environment):
    nodes, offer = environment.plan(0).cluster.nodes, environment.offer(0)
    gpus = max(1, 1000 * int(nodes["gpu_count"].sum()))
    return [
        offer.nodes["gpu_milli_left"].sum() / gpus,
        offer.nodes["cpu_milli_left"].sum() / max(1, nodes["cpu_milli_total"].sum()),
        offer.nodes["memory_mib_left"].sum() / max(1, nodes["memory_mib_total"].sum()),
        1000 * (offer.nodes["gpu_milli_left"] == 1000).sum() / gpus,
        offer.feasible.mean(),
    ]


@thoroughly(40)
@given(clusters, workloads, replays | rounds, seeds)
def test_what_is_shown_is_what_plain_python_makes_of_the_nodes(cluster, workload, protocol, seed):
    if offers_nothing(simulate(cluster, workload, "first-fit", protocol, Setup(seed))):
        return
    environment = Placement(world_of(cluster, workload, protocol, seed), seed=seed)
    random = np.random.default_rng(seed)
    for _ in range(60):
        rows, pod = as_in_python(environment)
        np.testing.assert_allclose(environment.nodes[0], rows, atol=1e-6)
        np.testing.assert_array_equal(environment.pods[0, 0, :-1], pod)
        np.testing.assert_allclose(environment.context[0, :5], cluster_in_python(environment), 1e-6)
        assert environment.mask[0, -1] == environment.offer(0).may_hold
        acted_at_random(environment, random)


@thoroughly(40)
@given(clusters, single_workloads, replays | rounds, seeds)
def test_rewards_of_an_episode_add_up_to_what_the_run_came_to(cluster, workload, protocol, seed):
    if offers_nothing(simulate(cluster, workload, "first-fit", protocol, Setup(seed))):
        return
    paid = []

    def pay(outcome):
        paid.append([getattr(outcome, name.replace("-", "_"))[0] for name in PARTS])
        return outcome.gpu_allocation

    environment = Placement(world_of(cluster, workload, protocol, seed), reward=pay, seed=seed)
    random = np.random.default_rng(seed)
    while not environment.is_done[0]:
        acted_at_random(environment, random)
    found = dict(zip(PARTS, np.sum(paid, axis=0), strict=True))
    result = environment.finished()[0]
    metrics, gpus = result.metrics, max(1, cluster.gpu_milli_total)
    asked = result.plan.gpu_weight_milli[result.is_placed].sum() / gpus
    np.testing.assert_allclose(found["gpu-allocation"], asked)
    np.testing.assert_allclose(environment.final_return[0], asked, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(environment.final_allocation[0], metrics.gpu_allocation, atol=1e-12)
    if protocol.name == "rounds":
        np.testing.assert_allclose(
            found["fragmentation"], idle_fragmentation(result) - metrics.fragmentation, atol=1e-9
        )
        waits = np.where(result.is_placed, result.start_s, protocol.max_rounds)
        np.testing.assert_allclose(found["waiting"], -waits.mean() / protocol.max_rounds)
    else:
        # What left is as it was: nothing is in use at the end.
        for name in ("fragmentation", "balance", "compactness"):
            np.testing.assert_allclose(found[name], 0.0, atol=1e-9)


@thoroughly(30)
@given(st.data(), constrained.clusters, replays | rounds)
def test_a_reward_counts_a_pod_the_same_whichever_node_it_is_on(data, cluster, protocol):
    workload = data.draw(constrained.occupied_workloads(cluster))
    if offers_nothing(simulate(cluster, workload, "first-fit", protocol, Setup(3))):
        return
    environment = Placement(world_of(cluster, workload, protocol, 3), seed=3)
    random = np.random.default_rng(3)
    while not environment.is_done[0]:
        acted_at_random(environment, random)
    metrics = environment.finished()[0].metrics
    np.testing.assert_allclose(environment.final_allocation[0], metrics.gpu_allocation, atol=1e-12)


def idle_fragmentation(result):
    from podium.policies.fragmentation import fragmentation, typical_pods

    table = typical_pods(result.plan.trace.shapes())
    nodes = result.plan.cluster.nodes
    lost = sum(fragmentation(node_view(node), table) for node in nodes)
    return lost / max(1, result.plan.cluster.gpu_milli_total)
