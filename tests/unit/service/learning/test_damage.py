"""What the service does with rows in its store that somebody else spoiled."""

import json
import sqlite3

import pytest

from podium.store.upkeep import Upkeep
from support.observed import seen
from support.service import OBSERVE, Service

DEEP = "[" * 3000 + "]" * 3000


def spoil(folder, statement, *values):
    with sqlite3.connect(folder / "podium.db") as connection:
        connection.execute(statement, values)
    connection.close()


def kept(folder, count=4):
    """Keeps observations and a checkpoint of them all."""
    with Service(folder) as service:
        service.store.observations.add(seen(number) for number in range(count))


def damages(service):
    said = [line for line in service.logged() if line["message"].startswith("a row in the")]
    return [(line["table"], line["id"]) for line in said]


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("features", "nope"),
        ("features", "[1]"),
        ("features", '{"gpu_mem_gb":"x"}'),
        ("features", '{"batch_size":1' + "0" * 400 + "}"),
        ("features", DEEP),
        ("runtime_s", "abc"),
        ("job_type", b"\xff"),
        ("colocated_job_types", "5"),
        ("colocated_job_types", '["\\ud800"]'),
        ("forgets", "zzz"),
        ("id", 2**63 - 1),
    ],
)
def test_a_damaged_observation_is_passed_over_and_told_of(tmp_path, column, value):
    kept(tmp_path)
    spoil(tmp_path, "DELETE FROM checkpoints")
    spoil(tmp_path, f"UPDATE observations SET {column} = ? WHERE id = 2", value)
    with Service(tmp_path) as service:
        assert service.get("/readyz").status == 200
        assert service.learning.journal.refused == 1
        assert service.post("/v1/observe", OBSERVE).json["updated"] is True
        assert service.post("/v1/forget", {"job_types": ["job-0"]}).status == 200
        assert service.store.observations.newest() == 6
        assert damages(service) == [("observations", value if column == "id" else 2)]


def test_a_damaged_observation_of_another_replica_keeps_nothing_from_being_learned(tmp_path):
    with Service(tmp_path) as service:
        assert service.post("/v1/observe", OBSERVE).status == 200
        spoil(
            tmp_path,
            "INSERT INTO observations SELECT 2, recorded_s, job_type, gpu_type, runtime_s,"
            " colocated_job_types, 'nope', source, NULL, NULL, forgets, outcome, ''"
            " FROM observations",
        )
        assert service.post("/v1/observe", OBSERVE).json["observations"] == 2
        assert service.get("/readyz").status == 200
        assert damages(service) == [("observations", 2)]


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("state", "nope"),
        ("state", "[]"),
        ("state", "null"),
        ("state", "{}"),
        ("state", b"\x00\xff"),
        ("state", DEEP),
        ("state", {"runtime": 5}),
        ("state", {"exploration": []}),
        ("state", {"observations": "many"}),
        ("last_id", 2**63 - 1),
        ("last_id", "x"),
    ],
)
def test_a_damaged_checkpoint_is_passed_over_and_replaced(tmp_path, column, value):
    kept(tmp_path)
    if isinstance(value, dict):
        with sqlite3.connect(tmp_path / "podium.db") as connection:
            (state,) = connection.execute("SELECT state FROM checkpoints").fetchone()
        connection.close()
        value = json.dumps({**json.loads(state), **value})
    spoil(tmp_path, f"UPDATE checkpoints SET {column} = ?", value)
    with Service(tmp_path) as service:
        assert service.learning.learner.agent.figures().observations == 4
        assert service.post("/v1/observe", OBSERVE).json["updated"] is True
        assert damages(service) == [("checkpoints", "online")]
    with Service(tmp_path) as service:
        assert service.learning.journal.last_id == 5
        assert damages(service) == []


def test_a_failure_that_nobody_expected_is_told_of_at_once(tmp_path, monkeypatch):
    def fail(_upkeep, _now_s):
        raise TypeError("spoiled")

    monkeypatch.setattr(Upkeep, "step", fail)
    with Service(tmp_path) as service:
        service.learning.journal._upkeep.nudge()
        service.learning.journal._upkeep.close()
        refused = service.get("/readyz")
        assert (refused.status, refused.error.message) == (
            503, "learning is not ready: learning failed: TypeError",
        )  # fmt: skip
        assert service.get("/healthz").error.message == "learning is beyond recovery: TypeError"
        assert isinstance(service.components.breakdown(), TypeError)
        assert "learning failed" in [line["message"] for line in service.logged()]


def test_a_replay_that_fails_unexpectedly_ends_the_service(tmp_path):
    with Service(tmp_path, is_started=False) as service:
        service.learning.journal.replay = None  # nobody can call it
        service.runner.run(service.components.start())
        assert isinstance(service.components.failure, TypeError)
        assert service.get("/readyz").status == 503
        assert "a component failed to start" in [each["message"] for each in service.logged()]
