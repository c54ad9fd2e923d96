import asyncio
import contextlib
import random
import sqlite3

import pytest

from podium.service.learning.replies import AssignReply, ForgetReply, ObserveReply, ScoreReply
from podium.store import ObservationRecord
from support.malformed import malformed
from support.service import ASSIGN, JSON, OBSERVE, SCORE, Service


@pytest.fixture
def service(tmp_path):
    with Service(tmp_path) as made:
        yield made


def test_a_score_has_the_documented_shape(service):
    reply = service.post("/v1/score", SCORE)
    assert reply.status == 200
    told = ScoreReply.model_validate_json(reply.body)
    assert told.chosen_gpu_type in SCORE["candidate_gpu_types"]
    assert told.gpu_selector == {
        "nodeSelector": {"nvidia.com/gpu.product": told.chosen_gpu_type},
        "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}],
    }
    assert told.avoid_co_locate_with == []
    assert told.decision_type == "forced"
    assert not told.exploration
    assert told.priority_score == 50.0
    chosen = next(c for c in told.candidates if c.gpu_type == told.chosen_gpu_type)
    assert told.terms.model_dump() == chosen.model_dump(include=set(told.terms.model_dump()))


def test_an_observation_is_kept_and_learned_before_it_is_acknowledged(service):
    reply = service.post("/v1/observe", OBSERVE)
    assert reply.status == 200
    told = ObserveReply.model_validate_json(reply.body)
    assert (told.status, told.updated, told.observations) == ("ok", True, 1)
    assert told.new_uncertainty > 0
    (record,) = service.store.observations.since(0)
    assert (record.job_type, record.gpu_type, record.runtime_s) == ("train-bert", "A100-80GB", 73.4)
    scored = service.post("/v1/score", SCORE).json
    assert [each["observations"] for each in scored["candidates"]] == [1, 0]


def test_the_other_documented_form_of_an_observation_is_taken(service):
    body = {
        "job_id": "7", "job_type": "a", "gpu_type": "b", "features": {"tenant": "default"},
        "actual_runtime": 12, "success": True,
    }  # fmt: skip
    assert service.post("/v1/observe", body).json["updated"] is True
    assert service.store.observations.since(0)[0].runtime_s == 12.0


def test_a_job_that_failed_teaches_nothing(service):
    before = service.state()
    reply = service.post("/v1/observe", {**OBSERVE, "success": False})
    assert (reply.status, reply.json["updated"], reply.json["observations"]) == (200, False, 0)
    assert service.state() == before


def test_what_is_told_twice_counts_once(service):
    for _ in range(2):
        assert service.post("/v1/observe", {**OBSERVE, "job_id": "j1"}).status == 200
        key = {**JSON, "idempotency-key": "k1"}
        assert service.post("/v1/observe", OBSERVE, key).status == 200
    assert service.store.observations.count() == 2


def test_a_repeat_says_so_and_is_not_counted(service):
    body, key = {**OBSERVE, "job_id": "j1"}, {**JSON, "idempotency-key": "k1"}
    first, again = service.post("/v1/observe", body, key), service.post("/v1/observe", body, key)
    assert (first.json["updated"], first.json["repeated"]) == (True, False)
    assert (again.status, again.json["updated"], again.json["repeated"]) == (200, False, True)
    assert again.json["observations"] == 1
    counted = b'scheduler_observe_events_total{gpu_type="A100-80GB",job_type="train-bert"} 1.0'
    assert counted in service.get("/metrics").body


def test_a_job_and_a_request_of_the_same_name_are_two_observations(service):
    assert service.post("/v1/observe", OBSERVE, {**JSON, "idempotency-key": "K1"}).status == 200
    other = {**OBSERVE, "job_type": "other", "job_id": "K1"}
    reply = service.post("/v1/observe", other)
    assert (reply.status, reply.json["updated"], reply.json["observations"]) == (200, True, 1)
    assert service.store.observations.count() == 2


@pytest.mark.parametrize(
    "change", [{"measured_runtime_s": 73.5}, {"gpu_type": "L4-24GB"}, {"success": False}]
)
@pytest.mark.parametrize("name", ["job_id", "Idempotency-Key"])
def test_another_observation_under_the_same_name_is_a_conflict(service, name, change):
    body = {**OBSERVE, "job_id": "n1"} if name == "job_id" else OBSERVE
    headers = {**JSON, "idempotency-key": "n1"} if name != "job_id" else JSON
    assert service.post("/v1/observe", body, headers).status == 200
    before = service.state()
    reply = service.post("/v1/observe", {**body, **change}, headers)
    assert (reply.status, reply.error.code) == (409, "conflict")
    assert reply.error.fields[0].name == name
    assert service.state() == before


def test_a_failed_run_leaves_its_name_free(service):
    body = {**OBSERVE, "job_id": "j1"}
    assert service.post("/v1/observe", {**body, "success": False}).status == 200
    assert service.post("/v1/observe", body).json["updated"] is True


@pytest.mark.parametrize("character", ["\x00", "\n", "\x1b", "\x7f", "\x85", "\u2028"])
def test_names_have_no_control_characters(service, character):
    name = f"a{character}b"
    for path, body in (
        ("/v1/score", {**SCORE, "candidate_gpu_types": [name]}),
        ("/v1/score", {**SCORE, "job_type": name}),
        ("/v1/observe", {**OBSERVE, "gpu_type": name}),
        ("/v1/observe", {**OBSERVE, "job_type": f"{name}\n"}),
    ):
        assert service.post(path, body).status == 422
    assert b"a%sb" % character.encode() not in service.get("/metrics").body


def test_the_label_of_gpu_types_can_be_set(tmp_path):
    with Service(tmp_path, {"online.gpu_label": "gpu.nvidia.com/class"}) as service:
        selector = service.post("/v1/score", SCORE).json["gpu_selector"]["nodeSelector"]
        assert list(selector) == ["gpu.nvidia.com/class"]


def test_run_times_under_both_names_are_refused(service):
    reply = service.post("/v1/observe", {**OBSERVE, "actual_runtime": 1.0})
    assert reply.status == 422
    assert "measured_runtime_s or actual_runtime" in reply.error.fields[0].message


def test_features_that_nothing_is_learned_from_are_named(service):
    body = {**SCORE, "features": {"tenant": "a", "batch_size": 4, "is_fast": True}}
    assert service.post("/v1/score", body).json["ignored_features"] == ["tenant", "is_fast"]


def test_a_size_that_is_no_number_is_refused(service):
    reply = service.post("/v1/score", {**SCORE, "features": {"batch_size": "large"}})
    assert (reply.status, reply.error.fields[0].name) == (422, "features.batch_size")


def test_no_candidates_are_a_bad_request(service):
    reply = service.post("/v1/score", {**SCORE, "candidate_gpu_types": []})
    assert (reply.status, reply.error.fields[0].name) == (400, "candidate_gpu_types")


def test_costs_are_assigned(service):
    reply = service.post("/v1/assign", ASSIGN)
    told = AssignReply.model_validate_json(reply.body)
    assert (told.assignment, told.cost) == ([0, 1], 2.0)


def test_jobs_are_assigned_by_what_was_learned(service):
    for gpu, runtime_s in (("fast", 10.0), ("slow", 100.0)):
        for _ in range(5):
            body = {"job_type": "a", "gpu_type": gpu, "measured_runtime_s": runtime_s}
            service.post("/v1/observe", body)
    body = {
        "jobs": [{"job_type": "a"}, {"job_type": "a", "candidate_gpu_types": ["slow"]}],
        "gpu_types": ["slow", "fast"],
        "capacities": [2, 2],
    }
    assert service.post("/v1/assign", body).json["assignment"] == ["fast", "slow"]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"costs": [[1, 2], [1]], "capacities": [1, 1]}, "costs[1]"),
        ({"jobs": [], "gpu_types": ["a"], "capacities": []}, "gpu_types"),
        ({"jobs": [], "gpu_types": ["a", "a"], "capacities": [1, 1]}, "gpu_types"),
        (
            {
                "jobs": [{"job_type": "j", "candidate_gpu_types": ["b"]}],
                "gpu_types": ["a"],
                "capacities": [1],
            },
            "jobs.candidate_gpu_types",
        ),
        ({"costs": [[1, "x"]], "capacities": [1, 1]}, "costs[0][1]"),
        ({"jobs": [{}], "gpu_types": ["a"], "capacities": [1]}, "jobs[0].job_type"),
    ],
)
def test_an_assignment_that_does_not_add_up_is_refused(service, body, field):
    reply = service.post("/v1/assign", body)
    assert (reply.status, reply.error.fields[0].name) == (422, field)


def test_too_little_room_is_said(service):
    reply = service.post("/v1/assign", {"costs": [[1.0], [1.0]], "capacities": [1]})
    assert reply.status == 422
    assert reply.error.hint


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/score", {**SCORE, "candidate_gpu_types": ["a"] * 11}),
        ("/v1/observe", {**OBSERVE, "colocated_job_types": ["a"] * 11}),
        ("/v1/assign", {"costs": [[1.0]] * 11, "capacities": [20]}),
        ("/v1/assign", {"jobs": [{"job_type": "a"}] * 11, "gpu_types": ["a"], "capacities": [20]}),
    ],
)
def test_batches_are_bounded(tmp_path, path, body):
    with Service(tmp_path, {"serve.max_batch": 10}) as service:
        before = service.state()
        reply = service.post(path, body)
        assert (reply.status, reply.error.code) == (413, "too_large")
        assert service.state() == before


def test_more_gpu_types_than_can_be_learned_are_not_kept(service):
    for number in range(64):
        body = {"job_type": "j", "gpu_type": f"g{number}", "measured_runtime_s": 1.0}
        assert service.post("/v1/observe", body).status == 200
    before = service.state()
    reply = service.post("/v1/observe", {**OBSERVE, "job_type": "j"})
    assert (reply.status, reply.error.code) == (409, "conflict")
    assert service.state() == before


def _observe_new(services, count):
    """Tells replicas of a run on each of many new GPU types, all at the same time."""

    async def tell_all():
        return await asyncio.gather(
            *(
                services[n % len(services)].answer(
                    "POST",
                    "/v1/observe",
                    b'{"job_type":"a","gpu_type":"g%d","measured_runtime_s":2}' % n,
                    JSON,
                )
                for n in range(count)
            )
        )

    return services[0].runner.run(tell_all())


@pytest.mark.parametrize("replicas", [1, 2])
def test_as_many_gpu_types_are_kept_as_can_be_learned_however_many_come_at_once(tmp_path, replicas):
    with contextlib.ExitStack() as stack:
        services = [stack.enter_context(Service(tmp_path)) for _ in range(replicas)]
        statuses = [reply.status for reply in _observe_new(services, 100)]
        assert (statuses.count(200), statuses.count(409)) == (64, 36)
        assert services[0].store.observations.count() == 64
        assert [service.learning.journal.refused for service in services] == [0] * replicas


def test_names_that_were_kept_but_never_learned_can_be_forgotten(service):
    service.store.observations.add(
        ObservationRecord("a", f"g{n}", 2.0, recorded_s=1.0) for n in range(70)
    )
    service.runner.run(service.learning.journal.learn(70))
    assert service.learning.journal.refused == 6
    asked = {"gpu_types": ["g69", "g3", "unheard-of"]}
    told = service.post("/v1/forget", asked).json
    assert told["forgotten"]["gpu_types"] == ["g69", "g3"]
    assert service.post("/v1/forget", asked).json["forgotten"]["gpu_types"] == []


def test_mistaken_gpu_types_are_forgotten_and_make_room(service):
    service.post("/v1/observe", OBSERVE)
    before = service.learning.learner.state()
    for number in range(63):
        body = {"job_type": f"j{number}", "gpu_type": f"g{number}", "measured_runtime_s": 1.0}
        assert service.post("/v1/observe", body).status == 200
    refused = service.post("/v1/observe", {**OBSERVE, "gpu_type": "H100-80GB"})
    assert (refused.status, "/v1/forget" in refused.error.hint) == (409, True)
    names = [f"g{number}" for number in range(63)]
    reply = service.post("/v1/forget", {"gpu_types": [*names, "unheard-of"]})
    assert ForgetReply.model_validate_json(reply.body).forgotten.gpu_types == names
    assert service.learning.learner.state() == before
    assert service.post("/v1/observe", {**OBSERVE, "gpu_type": "H100-80GB"}).status == 200
    again = service.post("/v1/forget", {"gpu_types": names, "job_types": ["j0"]}).json
    assert again["forgotten"] == {"gpu_types": [], "job_types": []}


def test_what_is_forgotten_stays_forgotten_after_a_restart(tmp_path):
    with Service(tmp_path) as service:
        service.post("/v1/observe", OBSERVE)
        before = service.learning.learner.state()
        service.post("/v1/observe", {**OBSERVE, "gpu_type": "typo", "job_type": "typo"})
        service.post("/v1/forget", {"job_types": ["typo"]})
        assert service.learning.learner.state() == before
    with Service(tmp_path) as service:
        assert service.learning.learner.state() == before


def test_a_store_in_trouble_is_said_and_nothing_acknowledged(service, tmp_path):
    with contextlib.closing(sqlite3.connect(tmp_path / "podium.db")) as other:
        other.execute("DROP TABLE observations")
        other.commit()
    reply = service.post("/v1/observe", OBSERVE)
    assert (reply.status, reply.error.code) == (503, "unavailable")
    assert reply.error.message == "database error"
    assert b"table" not in reply.body
    assert service.post("/v1/score", SCORE).status == 200
    assert any("no such table" in line.get("problem", "") for line in service.logged())


def test_a_misspelt_field_is_refused_with_a_suggestion(service):
    reply = service.post("/v1/score", {**SCORE, "colocated_job_type": []})
    assert reply.status == 422
    assert "colocated_job_types" in reply.error.hint


def test_ten_thousand_malformed_bodies_are_refused_and_change_nothing(service):
    service.post("/v1/observe", OBSERVE)
    service.post("/v1/score", SCORE)
    before = service.state()

    async def send_all():
        return [
            (await service.answer("POST", path, body, headers), path, body[:80], headers)
            for path, body, headers in malformed(random.Random(7), 10_000)
        ]

    replies = service.runner.run(send_all())
    wrong = [row for row in replies if not 400 <= row[0].status < 500]
    assert not wrong, wrong[:5]
    assert all(reply.error.message and reply.error.hint for reply, *_ in replies)
    assert {reply.status for reply, *_ in replies} == {400, 413, 415, 422}
    assert service.state() == before


def test_many_at_once_are_all_kept_and_learned(service):
    async def tell_all():
        bodies = [
            b'{"job_type":"a","gpu_type":"b","measured_runtime_s":%d}' % n for n in range(1, 201)
        ]
        return await asyncio.gather(
            *(service.answer("POST", "/v1/observe", body, JSON) for body in bodies)
        )

    assert {reply.status for reply in service.runner.run(tell_all())} == {200}
    assert service.store.observations.count() == 200
    assert service.learning.learner.agent.figures().observations == 200
