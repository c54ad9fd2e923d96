import asyncio
import json
from dataclasses import replace

import pytest

from podium.online import Parameters, Request
from podium.online.runtime import RuntimeModel
from podium.service.learning.learner import AgentLearner
from podium.store import ObservationRecord, open_store
from support.observed import PARAMETERS, seen
from support.service import OBSERVE, SCORE, Service


def record(job_type, gpu_type, colocated=()):
    return ObservationRecord(job_type, gpu_type, 5.0, 0.0, colocated)


def test_a_state_is_taken_up_again():
    first = AgentLearner(Parameters())
    for gpu_type in ("a", "a", "b"):
        first.observe(record("job", gpu_type))
    first.observe(record("other", "c", ("job",)))
    first.observe(replace(record("job", "b"), outcome="failed"))
    second = AgentLearner(Parameters())
    second.restore(json.loads(json.dumps(first.state())))
    asked = Request("job", ("a", "b", "c"))
    assert second.agent.candidates(asked) == first.agent.candidates(asked)
    for learner in (first, second):
        figures = learner.agent.figures()
        assert (figures.job_types, figures.pairs, figures.failures) == (2, 3, 1)


def test_a_state_that_is_not_what_was_saved_is_refused():
    learner = AgentLearner(Parameters())
    learner.observe(record("job", "a"))
    text = json.dumps(learner.state())
    assert text.count('"observations": 1,') == 1
    other = AgentLearner(Parameters())
    with pytest.raises(ValueError, match="checksum"):
        other.restore(json.loads(text.replace('"observations": 1,', '"observations": 3,')))
    assert other.agent.figures().observations == 0
    with pytest.raises(KeyError):
        other.restore({name: v for name, v in json.loads(text).items() if name != "sha256"})


def test_an_observation_of_any_replica_closes_the_decision_of_its_job():
    learner = AgentLearner(Parameters())
    learner.agent.score(Request("job", ("a", "b"), job_id="j7"))
    assert learner.agent.figures().in_flight == 1
    learner.observe(replace(record("job", "a"), job_id="j7"))
    assert learner.agent.figures().in_flight == 0


def test_checkpoints_and_retention_follow_the_settings(tmp_path):
    flags = {
        "serve.retention_observations": 3, "serve.checkpoint_interval_s": 0.1, "serve.poll_s": 0.05,
    }  # fmt: skip
    with Service(tmp_path, flags) as service:
        for _ in range(10):
            assert service.post("/v1/observe", OBSERVE).status == 200
        known = service.post("/v1/score", SCORE).json["candidates"]
        for _ in range(2400):
            if service.store.observations.count() == 3:
                break
            service.runner.run(asyncio.sleep(0.05))
        assert service.store.observations.count() == 3
    with Service(tmp_path, flags) as service:
        assert service.post("/v1/score", SCORE).json["candidates"] == known
    with open_store(str(tmp_path / "podium.db")) as store:
        assert store.checkpoints.load("online").last_id == 10


def test_names_that_are_forgotten_together_leave_what_each_alone_would(monkeypatch):
    together, apart = AgentLearner(PARAMETERS), AgentLearner(PARAMETERS)
    for number in range(120):
        record = seen(number, job_type=f"job-{number % 7}", gpu_type=f"gpu-{number % 5}")
        together.observe(record)
        apart.observe(record)
    names = [("job_type", "job-3"), ("gpu_type", "gpu-1"), ("job_type", "job-0")]
    for name in names:
        apart.forget([name])
    made = []
    without = RuntimeModel.without
    monkeypatch.setattr(
        RuntimeModel, "without", lambda *given: made.append(given) or without(*given)
    )
    together.forget(names)
    assert together.state() == apart.state()
    assert together.agent.names()[1] == {"gpu-0", "gpu-2", "gpu-3", "gpu-4"}
    assert len(made) == 1
