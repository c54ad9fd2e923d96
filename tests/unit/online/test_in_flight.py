from collections import Counter

import pytest

from podium.online import Agent, Observation, Parameters, Request
from podium.online import in_flight as room
from podium.online.in_flight import InFlight

GPUS = ("a", "b", "c", "d", "e")


def ask(agent, number, now_s=0.0, gpu_types=GPUS):
    return agent.score(Request("j", gpu_types, job_id=f"id-{number}"), now_s)


def test_a_cold_start_is_spread_over_all_candidates():
    agent = Agent()
    chosen = Counter(ask(agent, number).chosen_gpu_type for number in range(50))
    assert len(chosen) == 5
    assert max(chosen.values()) == 10


def test_a_cold_start_among_known_job_types_is_shared_by_how_fast_they_are():
    agent = Agent()
    for other in range(4):
        agent.replay([Observation(f"k{other}", gpu, s) for gpu, s in (("a", 100.0), ("b", 200.0))])
    chosen = Counter(
        ask(agent, number, gpu_types=("a", "b")).chosen_gpu_type for number in range(60)
    )
    assert chosen["a"] > chosen["b"] >= 10


def test_a_pair_that_is_being_tried_is_not_tried_again():
    agent = Agent()
    agent.replay([Observation("j", "a", 100.0)] * 3)
    answers = [ask(agent, number) for number in range(100)]
    tried = Counter(each.chosen_gpu_type for each in answers if each.exploration)
    assert set(tried) == {"b", "c", "d", "e"}
    assert max(tried.values()) == 1


def test_candidates_tell_how_many_are_in_flight_until_they_are_observed():
    agent = Agent()
    first = ask(agent, 1, gpu_types=("a",))
    assert first.chosen.in_flight == 0
    assert ask(agent, 2, gpu_types=("a",)).chosen.in_flight == 1
    assert agent.figures().in_flight == 2
    agent.observe(Observation("j", "a", 10.0, job_id="id-1"))
    agent.close("id-2")
    agent.close("never known")
    assert agent.figures().in_flight == 0
    assert ask(agent, 3, gpu_types=("a",)).chosen.in_flight == 0


def test_a_job_that_is_asked_for_again_is_in_flight_once():
    agent = Agent()
    for _ in range(5):
        ask(agent, 1)
    assert agent.figures().in_flight == 1


def test_a_decision_of_which_nothing_is_heard_is_forgotten_after_a_time():
    agent = Agent(Parameters(in_flight_limit_s=60.0))
    ask(agent, 1, now_s=1000.0)
    ask(agent, 2, now_s=1050.0)
    assert agent.figures().in_flight == 2
    ask(agent, 3, now_s=1070.0)
    assert agent.figures().in_flight == 2


def test_a_failed_run_is_no_longer_in_flight():
    agent = Agent()
    ask(agent, 1)
    agent.observe(Observation("j", "a", 10.0, success=False, job_id="id-1"))
    assert agent.figures().in_flight == 0


def test_only_so_many_are_remembered(monkeypatch):
    monkeypatch.setattr(room, "MOST", 3)
    kept = InFlight(60.0)
    for number in range(10):
        kept.begin(f"id-{number}", "j", "a", 0.0)
    assert len(kept) == 3
    assert kept.of("j") == {"a": 3}
    kept.expire(61.0)
    assert kept.of("j") == {}


@pytest.mark.parametrize("limit_s", [1.0, 60.0])
def test_what_is_in_flight_is_no_part_of_the_state(limit_s):
    agent = Agent(Parameters(in_flight_limit_s=limit_s))
    ask(agent, 1)
    again = Agent.from_object(agent.parameters, agent.as_object())
    assert again.figures().in_flight == 0
