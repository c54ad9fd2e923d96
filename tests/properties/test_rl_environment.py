"""Holds what is stepped in an environment to `simulate`, placement by placement."""

from dataclasses import replace

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from podium.rl import Placement, World
from podium.sim import Setup, simulate
from podium.sim.stepping import HOLD_ACTION
from support.agreement import same_result
from support.instances import clusters, inflations, replays, rounds, workloads
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


def played(environment, policy):
    """Plays one episode of each environment with a policy; gives the results by seed."""
    deciders = {}
    results = {}
    while len(results) < len(environment):
        actions, slots = [], []
        for i in range(len(environment)):
            plan = environment.plan(i)
            if plan not in deciders:
                deciders[plan] = decider(replace(plan, policy=policy))
            node, slot = deciders[plan](environment.offer(i))
            actions.append(environment.num_nodes if node == HOLD_ACTION else node)
            slots.append(slot)
        environment.step(np.array(actions), np.array(slots))
        for result in environment.finished():
            results.setdefault(result.plan.seed, result)
    return results


def assert_episode_is_the_run(cluster, workload, policy, protocol, seed):
    run = simulate(cluster, workload, policy, protocol, Setup(seed))
    if not run.is_placed.any() and not run.holds.any():
        return  # nothing is ever offered, and a world has to offer something
    world = World.of(
        cluster, workload, protocol=protocol, seeds=[seed], gpu_choice=policy.gpu_choice
    )
    environment = Placement(world, seed=seed)
    assert same_result(played(environment, policy)[seed], run)


@thoroughly(60)
@given(clusters, workloads, probes, replays, seeds)
def test_an_episode_of_a_replay_is_the_run_of_the_policy(cluster, workload, policy, protocol, seed):
    assert_episode_is_the_run(cluster, workload, policy, protocol, seed)


@thoroughly(60)
@given(clusters, workloads, holding_probes, replays | rounds, seeds)
def test_an_episode_with_holds_is_the_run_of_the_policy(cluster, workload, policy, protocol, seed):
    assert_episode_is_the_run(cluster, workload, policy, protocol, seed)


@thoroughly(50)
@given(st.data(), clusters, workloads, probes, seeds)
def test_an_episode_of_an_inflation_is_the_run_of_the_policy(data, cluster, workload, policy, seed):
    protocol = data.draw(inflations(cluster, workload))
    assert_episode_is_the_run(cluster, workload, policy, protocol, seed)


@thoroughly(50)
@given(clusters, workloads, probes, rounds, seeds)
def test_an_episode_of_rounds_is_the_run_of_the_policy(cluster, workload, policy, protocol, seed):
    assert_episode_is_the_run(cluster, workload, policy, protocol, seed)
