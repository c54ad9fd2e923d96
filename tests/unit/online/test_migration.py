import json

import pytest

from podium.online import Agent, Observation, Parameters, Request
from support.binary import TESTS

STATE = json.loads((TESTS / "support" / "agent_sums_1.json").read_text())
PARAMETERS = Parameters(enable_interference=True)
TRUE_S = {
    ("job-0", "gpu-0"): 20.0,
    ("job-0", "gpu-1"): 40.0,
    ("job-1", "gpu-0"): 40.0,
    ("job-1", "gpu-1"): 80.0,
    ("job-2", "gpu-0"): 60.0,
    ("job-2", "gpu-1"): 120.0,
}
"""Of the runs that an agent of format 1 had learned from, give or take a tenth."""


def test_a_state_of_format_1_is_read_with_all_that_was_learned():
    agent = Agent.from_object(PARAMETERS, STATE)
    for (job_type, gpu_type), true_s in TRUE_S.items():
        (found,) = agent.candidates(Request(job_type, (gpu_type,)))
        assert found.mu == pytest.approx(true_s, rel=0.2)
        assert found.observations >= 5
    figures = agent.figures()
    assert figures.observations == STATE["observations"] == 60
    assert figures.decisions == STATE["exploration"]["totals"]


def test_slowdowns_of_format_1_are_kept():
    agent = Agent.from_object(PARAMETERS, STATE)
    met = {
        (job_type, name)
        for job_type, runs in STATE["interference"].items()
        for name in runs["neighbours"]
    }
    for job_type, name in met:
        (found,) = agent.candidates(Request(job_type, ("gpu-1",), {}, (name,)))
        assert 0.2 < found.penalty / found.mu < 0.8


def test_a_migrated_state_is_written_in_the_current_format_and_goes_on():
    agent = Agent.from_object(PARAMETERS, STATE)
    written = json.loads(json.dumps(agent.as_object()))
    assert written["format"] == 2
    assert Agent.from_object(PARAMETERS, written).as_object() == written


def test_a_state_of_format_1_without_the_order_of_pairs_is_read():
    state = json.loads(json.dumps(STATE))
    del state["runtime"]["order"]
    agent = Agent.from_object(PARAMETERS, state)
    assert agent.figures().pairs == 6


def test_a_state_of_format_2_without_what_was_added_since_is_read():
    state = json.loads((TESTS / "support" / "agent_state_2.json").read_text())
    assert len(state["runtime"]["common"]["spreads"]) == 4
    agent = Agent.from_object(PARAMETERS, state)
    assert agent.figures().observations == 94
    for job in range(3):
        for gpu in range(2):
            (found,) = agent.candidates(Request(f"job-{job}", (f"gpu-{gpu}",)))
            assert found.observations == 15
            assert found.mu == pytest.approx(20.0 * (job + 1) * (gpu + 1), rel=0.2)
    (failing,) = agent.candidates(Request("job-0", ("gpu-1",)))
    assert failing.failures == 4
    agent.replay([Observation("job-0", "gpu-0", 20.0, {}, ("job-1",))] * 40)
    again = Agent.from_object(PARAMETERS, json.loads(json.dumps(agent.as_object())))
    assert again.as_object() == agent.as_object()
