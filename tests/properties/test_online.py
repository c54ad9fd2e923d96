"""Holds online learning to its laws: order, replicas and restarts do not matter; the cap holds."""

import json
import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from podium.online import (
    Agent,
    Observation,
    Parameters,
    Request,
    assign_costs,
    transport_plan,
)
from podium.online.exploration import EXPLOITATION, EXPLORATION, FORCED, ExplorationCap

PARAMETERS = Parameters(enable_interference=True, gamma_interference=1.0)
JOBS, GPUS = ("a", "b", "c"), ("g", "h", "i")

observation = st.builds(
    Observation,
    job_type=st.sampled_from(JOBS),
    gpu_type=st.sampled_from(GPUS),
    runtime_s=st.floats(1e-3, 1e6),
    features=st.one_of(st.just({}), st.fixed_dictionaries({"batch_size": st.floats(0.0, 1e4)})),
    colocated_job_types=st.one_of(
        st.just(()), st.lists(st.sampled_from(JOBS), max_size=2).map(tuple)
    ),
    success=st.sampled_from((True, True, True, False)),
)
observations = st.lists(observation, max_size=25)
requests = st.builds(
    Request,
    job_type=st.sampled_from((*JOBS, "new")),
    candidate_gpu_types=st.lists(
        st.sampled_from((*GPUS, "new")), min_size=1, max_size=4, unique=True
    ).map(tuple),
    features=st.one_of(st.just({}), st.just({"batch_size": 8.0})),
    colocated_job_types=st.lists(st.sampled_from(JOBS), max_size=1).map(tuple),
)


def learned(*parts):
    agent = Agent(PARAMETERS)
    for part in parts:
        agent.replay(part)
    return agent


def weights(agent):
    """Gives every term of every pair, in every company."""
    found = []
    for job_type in (*JOBS, "new"):
        for beside in ((), ("a",), ("b", "c")):
            for features in ({}, {"batch_size": 8.0}):
                request = Request(job_type, (*GPUS, "new"), features, beside)
                found += [list(each.terms().values()) for each in agent.candidates(request)]
    return np.array(found)


def assert_same(one, other):
    np.testing.assert_allclose(weights(one), weights(other), rtol=1e-6)


# The same examples each time: in rare ones, what is odd enough to count less depends on the order.
@settings(max_examples=50, deadline=None, derandomize=True)
@given(observations, st.randoms(use_true_random=False))
def test_the_order_of_observations_does_not_matter(seen, random):
    shuffled = list(seen)
    random.shuffle(shuffled)
    assert_same(learned(seen), learned(shuffled))


@settings(max_examples=50, deadline=None)
@given(observations, observations)
def test_two_replicas_know_together_what_one_would(here, there):
    merged = learned(here)
    merged.merge(learned(there))
    assert_same(merged, learned(here, there))


@settings(max_examples=50, deadline=None)
@given(observations, observations, st.lists(requests, max_size=20))
def test_a_state_that_was_written_and_read_goes_on_as_if_nothing_had_happened(before, after, asked):
    agent = learned(before)
    for request in asked:
        agent.score(request)
    again = Agent.from_object(PARAMETERS, json.loads(json.dumps(agent.as_object())))
    assert again.as_object() == agent.as_object()
    for each in (agent, again):
        each.replay(after)
    assert again.as_object() == agent.as_object()
    np.testing.assert_array_equal(weights(agent), weights(again))


@settings(max_examples=50, deadline=None)
@given(observations)
def test_the_same_observations_give_the_same_state_bit_by_bit(seen):
    assert learned(seen).as_object() == learned(seen).as_object()


@settings(max_examples=50, deadline=None)
@given(observations, requests)
def test_every_answer_is_finite_and_its_cost_the_sum_of_its_terms(seen, request):
    answer = learned(seen).score(request)
    json.dumps(answer.as_object(), allow_nan=False)
    for each in answer.candidates:
        whole = each.mu + 0.3 * each.sigma - 0.7 * each.ig + each.penalty + each.failure
        assert math.isclose(each.cost, whole, rel_tol=1e-9, abs_tol=1e-9 * each.mu)
        assert min(each.mu, each.sigma, each.ig) >= 0.0


def assert_capped(types, cap, window):
    """Looks at every window, with and without forced decisions, also at the start."""
    for counted in (types, [each for each in types if each != FORCED]):
        explored = np.concatenate([[0], np.cumsum([each == EXPLORATION for each in counted])])
        for end in range(1, len(counted) + 1):
            start = max(end - window, 0)
            assert (explored[end] - explored[start]) / (end - start) <= cap


@settings(max_examples=200, deadline=None)
@given(
    st.floats(0.0, 1.0),
    st.integers(1, 40),
    st.lists(st.sampled_from((EXPLORATION, EXPLOITATION, FORCED)), max_size=200),
)
def test_no_window_of_decisions_exceeds_the_cap_whatever_is_wished(cap, window, wishes):
    counter, types = ExplorationCap(cap, window), []
    for wish in wishes:
        types.append(EXPLOITATION if wish == EXPLORATION and not counter.allows() else wish)
        counter.count(types[-1])
    assert_capped(types, cap + 1e-9, window)


@settings(max_examples=50, deadline=None)
@given(
    st.sampled_from((0.0, 0.1, 0.25, 0.5)),
    st.integers(1, 20),
    st.lists(st.one_of(observation, requests), max_size=60),
)
def test_no_window_of_an_agents_decisions_exceeds_the_cap(cap, window, events):
    agent = Agent(Parameters(exploration_cap=cap, exploration_window=window))
    types = []
    for event in events:
        if isinstance(event, Observation):
            agent.observe(event)
            continue
        answer = agent.score(event)
        types.append(answer.decision_type)
        tried = [each for each in answer.candidates if each.observations or each.failures]
        assert (answer.decision_type == FORCED) == (not tried)
        if answer.decision_type == EXPLOITATION and not any(
            each.is_failing for each in answer.candidates
        ):
            assert answer.chosen == min(answer.candidates, key=lambda each: each.greedy_cost)
    assert_capped(types, cap, window)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_any_costs_are_assigned_within_capacities(data):
    jobs, columns = data.draw(st.integers(0, 8)), data.draw(st.integers(1, 4))
    cost = st.floats(0.0, 1e6)
    costs = np.array(
        [[data.draw(cost) for _ in range(columns)] for _ in range(jobs)], dtype=np.float64
    ).reshape(jobs, columns)
    capacities = [data.draw(st.integers(0, 4)) for _ in range(columns)]
    capacities[0] += max(jobs - sum(capacities), 0)
    found = assign_costs(costs, capacities)
    assert (np.bincount(found.columns, minlength=columns) <= capacities).all()
    lowest = costs.min(axis=1).sum()
    assert found.cost >= lowest - 1e-9 * (1.0 + lowest)
    if jobs:
        plan = transport_plan(costs, capacities)
        np.testing.assert_allclose(plan.sum(axis=1), 1.0, rtol=1e-9)


def assert_only_told(agent, told):
    """Holds an agent to be, to the last bit, the one that was told this alone."""
    other = learned(told)
    assert json.loads(json.dumps(agent.as_object())) == json.loads(json.dumps(other.as_object()))
    np.testing.assert_array_equal(weights(agent), weights(other))
    assert agent.figures() == other.figures()


@settings(max_examples=100, deadline=None)
@given(observations, observations, st.sampled_from(GPUS))
def test_a_forgotten_gpu_type_was_never_there(before, after, gpu_type):
    agent = learned(before)
    agent.forget(gpu_type=gpu_type)
    assert gpu_type not in agent.names()[1]
    agent = Agent.from_object(PARAMETERS, json.loads(json.dumps(agent.as_object())))
    agent.replay(after)
    assert_only_told(agent, [each for each in before if each.gpu_type != gpu_type] + after)


@settings(max_examples=100, deadline=None)
@given(observations, st.sampled_from(JOBS))
def test_a_forgotten_job_type_was_never_there_nor_the_company_it_was_in(told, name):
    agent = learned(told)
    agent.forget(job_type=name)
    met = {
        (each.job_type, each.gpu_type)
        for each in told
        if each.success and name in each.colocated_job_types
    }
    kept = [
        each
        for each in told
        if each.job_type != name
        and not (
            each.success and each.colocated_job_types and (each.job_type, each.gpu_type) in met
        )
    ]
    assert_only_told(agent, kept)
    assert name not in agent.names()[0]


def test_what_never_was_is_forgotten_easily():
    agent = learned([Observation("a", "g", 1.0)])
    before = agent.as_object()
    agent.forget(gpu_type="h")
    agent.forget(job_type="b")
    assert agent.as_object() == before
