import asyncio
import contextlib
import itertools
import random
import sqlite3
import threading

import numpy as np
import pytest

from podium.online.priority import priority_score
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
    assert told.priority_score == priority_score(told.expected_s)
    assert told.selector_on_nodes is None  # nobody knows the cluster
    assert told.missing_features == ["model_params_m"]
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


@pytest.mark.parametrize("ending", [{"success": False}, {"timed_out": True}])
def test_a_job_that_failed_is_kept_and_counts_against_its_pair(service, ending):
    service.post("/v1/observe", OBSERVE)
    reply = service.post("/v1/observe", {**OBSERVE, **ending})
    told = ObserveReply.model_validate_json(reply.body)
    assert (told.updated, told.observations, told.failures) == (True, 1, 1)
    assert told.success_chance < told.before.success_chance
    assert told.mu == told.before.mu  # a failure says nothing about run times
    scored = ScoreReply.model_validate_json(service.post("/v1/score", SCORE).body)
    pair = scored.candidates[0]
    assert (pair.failures, pair.success_chance) == (1, told.success_chance)
    assert pair.failure > 0.0
    _, record = service.store.observations.since(0)
    assert record.outcome == ("timed_out" if "timed_out" in ending else "failed")
    text = service.get("/metrics").body.decode()
    assert 'podium_online_failed_total{gpu_type="A100-80GB",job_type="train-bert"} 1.0' in text


def test_a_run_that_timed_out_and_succeeded_is_refused(service):
    reply = service.post("/v1/observe", {**OBSERVE, "success": True, "timed_out": True})
    assert reply.status == 422
    assert "did not succeed" in reply.body.decode()
    assert not service.store.observations.since(0)


def test_runs_beside_any_number_of_job_types_are_stored_and_closed(service):
    for number in range(80):
        job_id = f"r{number}"
        service.post("/v1/score", {**SCORE, "job_id": job_id})
        beside = [f"team-{number}", f"team-{number + 1}"]
        body = {**OBSERVE, "job_id": job_id, "colocated_job_types": beside}
        assert service.post("/v1/observe", body).json["observations"] == number + 1
    assert "podium_online_in_flight 0.0" in service.get("/metrics").body.decode()


def test_a_repeat_closes_a_job_that_was_scored_again(service):
    body = {**OBSERVE, "job_id": "again"}
    service.post("/v1/observe", body)
    service.post("/v1/score", {**SCORE, "job_id": "again"})
    assert "podium_online_in_flight 1.0" in service.get("/metrics").body.decode()
    assert service.post("/v1/observe", body).json["repeated"] is True
    assert "podium_online_in_flight 0.0" in service.get("/metrics").body.decode()


def test_a_batch_is_not_sent_where_its_jobs_fail(service):
    for gpu_type, runtime_s in (("a", 200.0), ("b", 600.0)):
        for _ in range(5):
            run = {"job_type": "oom", "gpu_type": gpu_type, "measured_runtime_s": runtime_s}
            service.post("/v1/observe", run)
    failed = {"job_type": "oom", "gpu_type": "h", "measured_runtime_s": 1.0, "success": False}
    for _ in range(9):
        service.post("/v1/observe", failed)
    batch = {"jobs": [{"job_type": "oom"}] * 3, "gpu_types": ["h", "a", "b"]}
    told = service.post("/v1/assign", {**batch, "capacities": [4, 4, 4]}).json
    assert told["assignment"] == ["a", "a", "a"]
    assert told["cost"] < 1000.0


def test_a_mistake_in_a_batch_names_its_job(service):
    jobs = [{"job_type": "a"}, {"job_type": "b", "candidate_gpu_types": ["none"]}]
    reply = service.post("/v1/assign", {"jobs": jobs, "gpu_types": ["g"], "capacities": [4]})
    assert reply.status == 422
    assert reply.json["error"]["fields"][0]["name"] == "jobs[1].candidate_gpu_types"


def test_many_places_are_scored_as_few_are(service):
    service.post("/v1/observe", OBSERVE)
    places = [
        {
            "gpu_type": OBSERVE["gpu_type"],
            "node": f"n{number}",
            "colocated_job_types": [f"c{number}"],
        }
        for number in range(100)
    ]
    told = service.post("/v1/score", {"job_type": OBSERVE["job_type"], "places": places}).json
    assert told["chosen_node"] == "n0"
    assert len(told["candidates"]) == 100


def test_an_observation_tells_what_it_taught(service):
    told = [
        ObserveReply.model_validate_json(service.post("/v1/observe", OBSERVE).body)
        for _ in range(3)
    ]
    for one, next_one in itertools.pairwise(told):
        assert next_one.before.mu == one.mu
        assert next_one.before.mean_interval_s == one.mean_interval_s
        assert next_one.new_uncertainty < one.new_uncertainty
    low, high = told[-1].mean_interval_s
    assert low < 73.4 < high
    run_low, run_high = told[-1].run_interval_s
    assert run_low < low < high < run_high


def test_neighbours_of_each_place_change_the_choice(tmp_path):
    flags = {"online.enable_interference": True, "online.gamma_interference": 1.0}
    with Service(tmp_path, flags) as service:
        for number in range(40):
            beside = ["noisy"] if number % 2 else []
            for gpu_type, runtime_s in (("fast", 10.0), ("slow", 15.0)):
                body = {
                    "job_type": "a", "gpu_type": gpu_type, "colocated_job_types": beside,
                    "measured_runtime_s": runtime_s * (3.0 if beside else 1.0),
                }  # fmt: skip
                assert service.post("/v1/observe", body).status == 200
        places = [
            {"gpu_type": "fast", "node": "n1", "colocated_job_types": ["noisy"]},
            {"gpu_type": "slow", "node": "n2"},
        ]
        told = service.post("/v1/score", {"job_type": "a", "places": places}).json
        assert (told["chosen_gpu_type"], told["chosen_node"]) == ("slow", "n2")
        alone = [{**place, "colocated_job_types": []} for place in places]
        told = service.post("/v1/score", {"job_type": "a", "places": alone}).json
        assert (told["chosen_gpu_type"], told["chosen_node"]) == ("fast", "n1")


def test_a_scored_job_is_in_flight_until_it_is_observed(service):
    job = {"job_id": "j1", "job_type": "train-bert"}
    sent = service.post("/v1/score", {**SCORE, **job}).json["chosen_gpu_type"]

    def in_flight():
        told = service.post("/v1/score", SCORE).json["candidates"]
        return {each["gpu_type"]: each["in_flight"] for each in told}[sent]

    assert in_flight() == 1
    service.post("/v1/observe", {**OBSERVE, **job, "gpu_type": sent})
    assert in_flight() == 0


def test_jobs_that_start_at_once_are_spread(service):
    chosen = {
        service.post("/v1/score", {**SCORE, "job_id": f"j{n}"}).json["chosen_gpu_type"]
        for n in range(4)
    }
    assert chosen == set(SCORE["candidate_gpu_types"])


@pytest.mark.parametrize(
    "body",
    [
        {"job_type": "a"},
        {"job_type": "a", "candidate_gpu_types": ["g"], "places": [{"gpu_type": "g"}]},
        {"job_type": "a", "places": [{"gpu_type": "g"}], "colocated_job_types": ["b"]},
        {"job_type": "a", "places": [{"gpu_type": ""}]},
        {"job_type": "a", "candidate_gpu_types": ["g"], "waited_s": -1},
        {"job_type": "a", "candidate_gpu_types": ["g"], "weight": 0},
    ],
)
def test_a_score_names_its_candidates_in_one_way(service, body):
    before = service.state()
    reply = service.post("/v1/score", body)
    assert (reply.status, bool(reply.error.fields)) == (422, True)
    assert service.state() == before


def test_no_places_are_a_bad_request(service):
    reply = service.post("/v1/score", {"job_type": "a", "places": []})
    assert (reply.status, reply.error.fields[0].name) == (400, "places")


def test_jobs_are_ordered_by_what_waiting_costs_against_their_time(service):
    for job_type, runtime_s in (("short", 10.0), ("long", 1000.0)):
        for _ in range(5):
            body = {"job_type": job_type, "gpu_type": "g", "measured_runtime_s": runtime_s}
            service.post("/v1/observe", body)

    def priority(job_type, **more):
        body = {"job_type": job_type, "candidate_gpu_types": ["g"], **more}
        return service.post("/v1/score", body).json["priority_score"]

    assert priority("short") > priority("long")
    assert priority("long", waited_s=86_400) > priority("short")
    assert priority("long", weight=1000) > priority("short")


def test_a_cost_may_be_negative_and_the_expected_time_is_not(service):
    for gpu_type in ("A100-80GB", "L4-24GB"):
        for _ in range(3):
            service.post("/v1/observe", {**OBSERVE, "gpu_type": gpu_type})
    body = {**SCORE, "candidate_gpu_types": [*SCORE["candidate_gpu_types"], "new"]}
    told = service.post("/v1/score", body).json
    assert min(each["cost"] for each in told["candidates"]) < 0.0
    assert all(each["expected_s"] > 0.0 for each in told["candidates"])


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
    counted = b'podium_online_observed_total{gpu_type="A100-80GB",job_type="train-bert"} 1.0'
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


def test_another_body_under_the_same_key_is_a_conflict_whatever_differs(service):
    key = {**JSON, "idempotency-key": "k1"}
    first = {**OBSERVE, "features": {"tenant": "a"}}
    assert service.post("/v1/observe", first, key).json["updated"] is True
    assert service.post("/v1/observe", first, key).json["repeated"] is True
    for features in ({"tenant": "b"}, {}, {"tenant": "a", "zone": 1}):
        reply = service.post("/v1/observe", {**OBSERVE, "features": features}, key)
        assert (reply.status, reply.error.fields[0].name) == (409, "Idempotency-Key")
    # The same job may be told of in other words: who watches it twice, counts it once.
    job = {**OBSERVE, "job_id": "j1"}
    assert service.post("/v1/observe", {**job, "features": {"tenant": "a"}}).status == 200
    told = service.post("/v1/observe", {**job, "features": {"tenant": "b"}}).json
    assert told["repeated"] is True


def test_a_failed_run_keeps_its_name(service):
    body = {**OBSERVE, "job_id": "j1"}
    assert service.post("/v1/observe", {**body, "success": False}).status == 200
    assert service.post("/v1/observe", {**body, "success": False}).json["repeated"] is True
    reply = service.post("/v1/observe", body)
    assert (reply.status, reply.error.fields[0].name) == (409, "job_id")


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
    for name, label in (
        ("gpu.nvidia.com/class", "gpu.nvidia.com/class"),
        ("nvidia", "nvidia.com/gpu.product"),
        ("gke", "cloud.google.com/gke-accelerator"),
    ):
        with Service(tmp_path, {"online.gpu_label": name}) as service:
            selector = service.post("/v1/score", SCORE).json["gpu_selector"]["nodeSelector"]
            assert list(selector) == [label]


def test_run_times_under_both_names_are_refused(service):
    reply = service.post("/v1/observe", {**OBSERVE, "actual_runtime": 1.0})
    assert reply.status == 422
    assert "measured_runtime_s or actual_runtime" in reply.error.fields[0].message


def test_features_that_nothing_is_learned_from_are_named(service):
    body = {**SCORE, "features": {"tenant": "a", "batch_size": 4, "is_fast": True}}
    assert service.post("/v1/score", body).json["ignored_features"] == ["tenant", "is_fast"]
    told = service.post("/v1/observe", {**OBSERVE, "features": body["features"]}).json
    assert told["ignored_features"] == ["tenant", "is_fast"]


def test_a_feature_that_is_null_is_missing(service):
    body = {**SCORE, "features": {"gpu_mem_gb": None, "batch_size": 4}}
    told = service.post("/v1/score", body).json
    assert told["missing_features"] == ["gpu_mem_gb", "model_params_m"]
    service.post("/v1/observe", {**OBSERVE, "features": body["features"]})
    assert service.store.observations.since(0)[0].features == {"batch_size": 4.0}


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
    assert "plan" not in reply.json


def test_a_plan_is_sent_to_whoever_asks_for_it(service):
    reply = service.post("/v1/assign", {**ASSIGN, "plan": True})
    told = AssignReply.model_validate_json(reply.body)
    np.testing.assert_allclose(told.plan, np.eye(2), atol=1e-6)
    body = {"jobs": [{"job_type": "a"}], "gpu_types": ["x"], "capacities": [1], "plan": True}
    assert service.post("/v1/assign", body).json["plan"] == [[1.0]]


def test_null_marks_a_pair_that_may_not_be(service):
    costs = [[1.0, 2.0], [1.0, None], [None, 5.0]]
    told = service.post("/v1/assign", {"costs": costs, "capacities": [1, 2]}).json
    assert (told["assignment"], told["cost"]) == ([1, 0, 1], 8.0)
    reply = service.post("/v1/assign", {"costs": [[None]], "capacities": [1]})
    assert (reply.status, "job 0 may use no GPU type" in reply.error.message) == (422, True)


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
            "jobs[0].candidate_gpu_types",
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


def test_what_is_not_learned_or_forgotten_in_time_is_said(tmp_path, monkeypatch):
    with Service(tmp_path, {"serve.store_limit_s": 1.0}) as service:
        other, may_go_on = {**OBSERVE, "job_id": "j7"}, threading.Event()
        learner = service.learning.learner
        service.post("/v1/observe", {**OBSERVE, "job_type": "typo"})
        service.post("/v1/observe", OBSERVE)
        forget = learner.forget
        monkeypatch.setattr(learner, "forget", lambda names: may_go_on.wait() and forget(names))
        reply = service.post("/v1/forget", {"job_types": ["typo"]})
        told = ForgetReply.model_validate_json(reply.body)
        assert (reply.status, told.done, told.forgotten.job_types) == (202, False, ["typo"])
        reply = service.post("/v1/observe", other)
        told = ObserveReply.model_validate_json(reply.body)
        assert (reply.status, told.learned, told.updated) == (202, False, False)
        assert (told.observations, told.mu) == (1, told.before.mu)
        assert service.post("/v1/score", SCORE).status == 200
        may_go_on.set()
        assert service.runner.run(service.learning.journal.learn(4))
        reply = service.post("/v1/observe", other)
        told = ObserveReply.model_validate_json(reply.body)
        assert (reply.status, told.learned, told.repeated) == (200, True, True)
        assert told.observations == 2
        gone = service.post("/v1/forget", {"job_types": ["typo"]})
        assert (gone.status, gone.json["done"]) == (200, True)
        assert gone.json["forgotten"] == {"job_types": [], "gpu_types": []}


def test_what_the_status_of_unfinished_work_means_is_documented(service):
    paths = service.app.openapi()["paths"]
    posted = {path: each["post"]["responses"] for path, each in paths.items() if "post" in each}
    later = {path for path, replies in posted.items() if "202" in replies}
    assert later == {"/v1/observe", "/v1/forget"}
    page = service.get("/docs").body.decode()
    assert page.count("<p>Status 202: ") == 2
    assert "Errors: 202" not in page


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
