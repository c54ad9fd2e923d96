import json
import math
import random
import threading
from dataclasses import replace

import numpy as np
import pytest

from podium.errors import UsageError
from podium.online import Agent, Observation, Parameters, Place, Request
from podium.online import agent as room
from podium.online.runtime import RuntimeModel
from podium.settings import default_settings, load_settings

PARAMETERS = Parameters(gamma_interference=0.5, enable_interference=True)


def known(agent, gpu_type, runtime_s, count=20, job_type="j"):
    agent.replay([Observation(job_type, gpu_type, runtime_s)] * count)


def test_the_cost_is_the_sum_of_its_terms():
    agent = Agent(PARAMETERS)
    known(agent, "a", 20.0)
    agent.replay([Observation("j", "a", 40.0, {}, ("c",))] * 20)
    answer = agent.score(Request("j", ("a", "b"), {}, ("c",)))
    for each in answer.candidates:
        whole = each.mu + 0.3 * each.sigma - 0.7 * each.ig + 0.5 * each.penalty
        assert each.cost == pytest.approx(whole)
        relative = each.sigma / each.mu
        assert each.ig_nats == pytest.approx(0.5 * math.log(1.0 + relative**2 / 0.04))
    assert answer.chosen.penalty == pytest.approx(answer.chosen.mu, rel=0.1)
    assert answer.slowdown == pytest.approx(1.0, rel=0.1)


def test_information_gain_falls_to_nothing_with_data():
    agent = Agent()
    known(agent, "a", 20.0, count=2000)
    (found,) = agent.candidates(Request("j", ("a",)))
    assert found.ig / found.mu < 1e-3


def test_information_is_worth_nothing_where_it_cannot_change_a_choice():
    agent = Agent()
    for factor in (0.8, 1.25) * 4:
        known(agent, "fast", 10.0 * factor, count=1)
        known(agent, "rival", 11.0 * factor, count=1)
    known(agent, "slow", 400.0, count=2)
    fast, rival, slow = agent.candidates(Request("j", ("fast", "rival", "slow")))
    assert slow.ig_nats > 3.0 * rival.ig_nats
    assert slow.ig < 1e-3 * rival.ig
    assert 0.0 < rival.ig == pytest.approx(fast.ig)


@pytest.mark.parametrize("scale", [1e-4, 1.0, 1e6])
def test_the_unit_of_time_changes_no_decision(scale):
    def choices(factor):
        rng = np.random.default_rng(1000)
        agent, found = Agent(), []
        true = {"a": 30.0, "b": 20.0, "c": 50.0}
        for _ in range(60):
            answer = agent.score(Request("j", tuple(true)))
            found.append((answer.chosen_gpu_type, answer.decision_type))
            runtime_s = true[answer.chosen_gpu_type] * math.exp(rng.normal(0.0, 0.2)) * factor
            agent.observe(Observation("j", answer.chosen_gpu_type, runtime_s))
        return found

    assert choices(scale) == choices(0.1)


def test_an_unseen_type_is_not_chosen_above_the_cap_though_it_is_never_observed():
    agent = Agent()
    known(agent, "a", 20.0, count=1)
    chosen = [agent.score(Request("j", ("a", "b"))).chosen_gpu_type for _ in range(200)]
    assert chosen.count("b") == 50


def test_when_the_cap_binds_the_best_is_taken_by_what_is_known():
    agent = Agent(Parameters(exploration_cap=0.0))
    known(agent, "slow", 40.0)
    known(agent, "fast", 20.0)
    answer = agent.score(Request("j", ("slow", "new", "fast")))
    assert answer.chosen_gpu_type == "fast"
    assert answer.decision_type == "exploitation"
    assert answer.candidates[1].cost < answer.chosen.cost


def test_a_new_type_that_is_best_by_what_is_known_is_no_exploration():
    agent = Agent(Parameters(exploration_cap=0.0))
    known(agent, "slow", 40.0)
    known(agent, "fast", 20.0)
    for other in ("k", "l", "m"):
        for gpu_type, runtime_s in (("slow", 80.0), ("fast", 40.0), ("new", 10.0)):
            known(agent, gpu_type, runtime_s, job_type=other)
    answer = agent.score(Request("j", ("slow", "new", "fast")))
    assert (answer.chosen_gpu_type, answer.decision_type) == ("new", "exploitation")
    assert not answer.chosen.observations


def test_a_decision_without_an_observed_candidate_is_forced():
    agent = Agent(Parameters(exploration_cap=0.0))
    known(agent, "a", 20.0)
    answer = agent.score(Request("j", ("b", "c")))
    assert answer.decision_type == "forced"
    assert not answer.exploration
    assert agent.figures().decisions == {"exploration": 0, "exploitation": 0, "forced": 1}


def test_the_answer_has_the_documented_shape():
    agent = Agent()
    known(agent, "A100-80GB", 73.4)
    features = {"gpu_mem_gb": 40, "batch_size": 16, "colour": 3}
    found = agent.score(Request("j", ("A100-80GB", "L4-24GB"), features)).as_object()
    json.dumps(found, allow_nan=False)
    assert list(found)[:2] == ["avoid_co_locate_with", "terms"]
    assert list(found["terms"]) == ["mu", "sigma", "ig", "penalty", "failure", "cost"]
    assert {"gpu_type", "mu", "sigma", "ig", "penalty", "cost", "observations"} <= set(
        found["candidates"][0]
    )
    assert found["candidates"][0]["observations"] == 20


def test_candidates_named_twice_are_one():
    assert len(Agent().score(Request("j", ("a", "b", "a"))).candidates) == 2


def test_weighing_candidates_counts_no_decision():
    agent = Agent()
    known(agent, "a", 20.0)
    before = agent.as_object()
    agent.candidates(Request("j", ("a", "b")))
    agent.figures()
    assert agent.as_object() == before


def test_an_observation_is_heeded_by_the_next_score():
    agent = Agent(Parameters(exploration_cap=0.0))
    known(agent, "a", 20.0)
    request = Request("j", ("a", "b"))
    assert agent.score(request).chosen_gpu_type == "a"
    known(agent, "b", 2.0)
    assert agent.score(request).chosen_gpu_type == "b"


def test_a_check_raises_what_learning_would_and_learns_nothing():
    agent = Agent()
    before = agent.as_object()
    agent.check(Observation("j", "g", 1.0, {"batch_size": 8.0}))
    with pytest.raises(UsageError, match="is not a valid size"):
        agent.check(Observation("j", "g", 1.0, {"batch_size": -8.0}))
    assert agent.as_object() == before


def test_a_batch_is_assigned_by_what_is_known_within_capacities():
    agent = Agent()
    for job_type, fast_s in (("j", 10.0), ("k", 30.0)):
        known(agent, "fast", fast_s, job_type=job_type)
        known(agent, "slow", 40.0, job_type=job_type)
    jobs = [Request("k", ("fast", "slow")), Request("j", ("slow", "fast"))]
    before = agent.as_object()
    found = agent.assign(jobs, {"fast": 1, "slow": 4}).as_object()
    assert found["assignment"] == ["slow", "fast"]
    assert found["cost"] == pytest.approx(50.0, rel=0.1)
    assert agent.as_object() == before


def test_a_batch_keeps_to_the_candidates_of_each_job():
    jobs = [Request("j", ("a",)), Request("j", ("a", "b"))]
    assert Agent().assign(jobs, {"a": 1, "b": 1}).as_object()["assignment"] == ["a", "b"]
    with pytest.raises(UsageError, match="may use no GPU type"):
        Agent().assign(jobs, {"b": 5})
    with pytest.raises(UsageError, match="not all jobs fit"):
        Agent().assign([jobs[0], jobs[0]], {"a": 1, "b": 5})


def test_figures_tell_uncertainty_and_the_price_of_exploration():
    agent = Agent()
    assert agent.figures().average_uncertainty_s == 0.0
    known(agent, "a", 20.0)
    known(agent, "b", 60.0)
    for _ in range(10):
        agent.score(Request("j", ("a", "b")))
    figures = agent.figures()
    assert figures.exploration_price == 0.0
    assert figures.observations == 40
    sigmas = [each.sigma for each in agent.candidates(Request("j", ("a", "b")))]
    assert figures.average_uncertainty_s == pytest.approx(sum(sigmas) / 2.0)


def test_threads_lose_no_observation_and_keep_to_the_cap():
    agent = Agent(Parameters(exploration_window=20))
    known(agent, "a", 20.0, count=1)
    order, together = [], threading.Lock()

    def work(number):
        for step in range(100):
            with together:
                order.append(agent.score(Request("j", ("a", "b", "c"))).exploration)
            agent.score(Request(f"other-{number}", ("a", "b")))
            agent.observe(Observation(f"new-{number}", "a", 1.0 + step))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    figures = agent.figures()
    assert figures.observations == 801
    assert figures.decisions["exploration"] <= 0.25 * (
        figures.decisions["exploration"] + figures.decisions["exploitation"]
    )
    assert any(order)


def test_decisions_are_made_while_the_state_is_read(monkeypatch):
    agent = Agent()
    known(agent, "a", 20.0)
    scored = []

    def decide():
        scored.append(agent.score(Request("j", ("a", "b"))).chosen_gpu_type)

    def read(_model):
        thread = threading.Thread(target=decide)
        thread.start()
        thread.join(30.0)
        return {"gpu_types": [], "cells": {}}

    monkeypatch.setattr(RuntimeModel, "as_object", read)
    agent.as_object()
    assert scored == ["a"]


def test_a_state_of_another_format_is_refused():
    state = {**Agent().as_object(), "format": 99}
    with pytest.raises(UsageError, match="another version"):
        Agent.from_object(Parameters(), state)


def test_parameters_are_the_defaults_of_the_settings():
    assert Parameters.of(default_settings().online) == Parameters()


def test_names_of_the_environment_that_other_agents_use_are_heeded(tmp_path):
    environ = {
        "SCHEDULER_LAMBDA_UNCERTAINTY": "0.1",
        "SCHEDULER_BETA_EXPLORATION": "0.2",
        "SCHEDULER_GAMMA_INTERFERENCE": "0.4",
        "SCHEDULER_TAU_SQUARED": "0.5",
        "SCHEDULER_EXPLORATION_CAP": "0.05",
        "scheduler_enable_interference": "true",
        "XDG_CONFIG_HOME": str(tmp_path),
    }
    settings = load_settings(environ=environ, folder=tmp_path)
    assert Parameters.of(settings.online) == replace(
        Parameters(),
        lambda_uncertainty=0.1,
        beta_exploration=0.2,
        gamma_interference=0.4,
        tau_squared=0.5,
        exploration_cap=0.05,
        enable_interference=True,
    )


@pytest.mark.parametrize("first", [(3600.0, 3_600_000.0), (1e10, 1e-6)])
def test_first_runs_in_different_units_do_not_mean_ages(first):
    agent = Agent()
    agent.replay([Observation("typo", "a", runtime_s) for runtime_s in first])
    (found,) = agent.candidates(Request("typo", ("a",)))
    middle_s = math.sqrt(math.prod(first))
    assert middle_s / 10.0 < found.mu < 10.0 * middle_s
    agent.score(Request("typo", ("a", "b")))
    assert agent.as_object()["floor"]["expected_s"] < 10.0 * middle_s


def test_answers_with_many_places_do_not_pile_up(monkeypatch):
    monkeypatch.setattr(room, "MOST_PLACES", 500)
    agent = Agent(PARAMETERS)
    known(agent, "a", 20.0)
    for number in range(50):
        places = tuple(Place("a", (f"c{number}-{at}",)) for at in range(100))
        agent.candidates(Request("j", (), {}, (), places))
        kept = [*agent._options.values(), *agent._weighed.values()]
        assert sum(map(len, kept)) <= 600


def steep():
    """Returns an agent that saw a feature make a thousandfold difference within a tenth."""
    agent = Agent(Parameters(enable_interference=True))
    for _ in range(40):
        agent.observe(Observation("j", "g", 1000.0, {"gpu_mem_gb": 0.0}))
        agent.observe(Observation("j", "g", 1.0, {"gpu_mem_gb": 0.1}))
        agent.observe(Observation("j", "h", 1.0, {"gpu_mem_gb": 0.1}, success=False))
    return agent


@pytest.mark.parametrize("job_type", ["j", "never seen"])
@pytest.mark.parametrize("size", [80.0, 1e9, 1e15])
def test_no_run_is_expected_to_take_a_time_that_none_may_take(job_type, size):
    agent = steep()
    for _ in range(80):
        answer = agent.score(Request(job_type, ("g", "h"), {"gpu_mem_gb": size}, ("j",)))
    for each in answer.candidates:
        assert 1e-6 <= each.mu <= 1e10
        assert all(math.isfinite(value) for value in each.terms().values())
    assert math.isfinite(answer.slowdown)
    assert math.isfinite(agent.figures().exploration_price)
    assert math.isfinite(agent.as_object()["floor"]["expected_s"])


def test_an_answer_is_kept_for_the_features_that_count_when_it_is_given(monkeypatch):
    agent = Agent()
    agent.replay([Observation("j", "g", 100.0)] * 4)
    first = Observation("j", "g", 3.0, {"batch_size": 4.0})
    other, used = threading.Thread(target=agent.observe, args=(first,)), RuntimeModel.used

    def late(model, features):
        found = used(model, features)
        if other.ident is None:
            other.start()
            other.join(0.2)  # learns meanwhile, unless it has to wait for the answer
        return found

    monkeypatch.setattr(RuntimeModel, "used", late)
    agent.candidates(Request("j", ("g",), {"batch_size": 4000.0}))
    other.join()
    plain = agent.candidates(Request("j", ("g",)))
    alone = Agent.from_object(agent.parameters, agent.as_object())
    assert plain == alone.candidates(Request("j", ("g",)))


def test_job_types_that_go_with_a_gpu_type_are_no_longer_counted():
    agent = Agent()
    for number in range(20):
        agent.observe(Observation(f"j{number}", "gone", 100.0))
        agent.score(Request(f"j{number}", ("gone",)))
    agent.observe(Observation("stays", "g", 100.0))
    agent.score(Request("stays", ("g",)))
    agent.forget(gpu_type="gone")
    assert set(agent.as_object()["floor"]["decisions"]) == {"stays"}


@pytest.mark.parametrize("seed", [1, 2, 4])
def test_answers_do_not_depend_on_who_was_asked_before(seed):
    """Also where the common noise stays as it is and only becomes known better."""
    rng = random.Random(seed)
    often, once = Agent(Parameters()), Agent(Parameters())
    requests = [Request(f"job-{each}", ("A", "B", "C")) for each in range(5)]
    for _ in range(40):
        job, gpu = f"job-{int(5 * rng.random() ** 3)}", "ABC"[rng.randrange(3)]
        seen = Observation(job, gpu, 100.0 * math.exp(rng.gauss(0.0, 0.2)))
        often.observe(seen)
        once.observe(seen)
        for request in requests:
            often.candidates(request)
    assert [often.candidates(each) for each in requests] == [
        once.candidates(each) for each in requests
    ]


def test_figures_do_not_wait_for_what_takes_long(monkeypatch):
    monkeypatch.setattr(room, "BUSY_S", 0.01)
    agent = Agent(PARAMETERS)
    known(agent, "A", 60.0)
    before = agent.figures()
    is_learning, may_end = threading.Event(), threading.Event()

    def learn():
        with agent._learning:
            is_learning.set()
            may_end.wait(30)

    thread = threading.Thread(target=learn)
    thread.start()
    is_learning.wait(30)
    assert agent.figures() is before
    may_end.set()
    thread.join()
    known(agent, "A", 60.0)
    assert agent.figures().observations == 40
