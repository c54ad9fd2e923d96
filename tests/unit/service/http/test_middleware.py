import asyncio
import json
from collections import Counter

import pytest

from podium.service.http.logs import MOST_OF_A_KIND
from support.service import JSON, OBSERVE, SCORE, Service, scope_of

TOKEN = "0123456789abcdef0123456789abcdef"


@pytest.fixture
def service(tmp_path):
    with Service(tmp_path) as made:
        yield made


def test_the_callers_name_of_a_request_is_kept(service):
    reply = service.get("/healthz", {"x-request-id": "deploy-42/a"})
    assert reply.headers["x-request-id"] == "deploy-42/a"


@pytest.mark.parametrize("name", ["", "a b", "x" * 129, "ä", '"'])
def test_a_request_without_a_plain_name_is_given_one(service, name):
    first, second = (
        service.get("/healthz", {"x-request-id": name}).headers["x-request-id"] for _ in range(2)
    )
    assert first != second
    assert name not in (first, second)


def test_errors_carry_the_name_too(service):
    reply = service.post("/v1/score", b"{", {**JSON, "x-request-id": "r1"})
    assert (reply.status, reply.headers["x-request-id"]) == (400, "r1")
    (line,) = [line for line in service.logged() if line["message"] == "request"]
    assert (line["request_id"], line["status"], line["path"]) == ("r1", 400, "/v1/score")
    assert {"time", "level", "seconds", "method", "client"} <= set(line)


@pytest.mark.parametrize("wanted", ["problems", "all"])
def test_strangers_cannot_fill_the_log_nor_push_others_out_of_it(tmp_path, wanted):
    with Service(tmp_path, {"serve.log_requests": wanted}, token=TOKEN) as service:
        for _ in range(MOST_OF_A_KIND + 70):
            assert service.post("/v1/score", SCORE).status == 401
        known = {**JSON, "authorization": f"Bearer {TOKEN}"}
        assert service.post("/v1/score", b"{", known).status == 400
        lines = service.logged()
    assert Counter(line["status"] for line in lines if line["message"] == "request") == {
        401: MOST_OF_A_KIND,
        400: 1,
    }
    (told,) = [line for line in lines if line["message"] == "log lines were suppressed"]
    assert (told["kind"], told["times"]) == ("requests answered with 401", 70)


def test_a_failure_that_anybody_can_repeat_does_not_fill_the_log(service, monkeypatch):
    def burst(_request, _now_s):
        raise RuntimeError("secret detail")

    monkeypatch.setattr(service.learning.learner.agent, "score", burst)
    for _ in range(MOST_OF_A_KIND + 5):
        service.post("/v1/score", SCORE)
    lines = service.logged()
    assert sum("exception" in line for line in lines) == MOST_OF_A_KIND
    assert sum(line["message"] == "request" for line in lines) == MOST_OF_A_KIND


def test_answers_without_problems_are_all_logged_on_request(tmp_path):
    with Service(tmp_path, {"serve.log_requests": "all"}) as service:
        for _ in range(MOST_OF_A_KIND + 5):
            service.get("/healthz")
        lines = service.logged()
    assert sum(line["message"] == "request" for line in lines) == MOST_OF_A_KIND + 5


@pytest.mark.parametrize("wanted", ["problems", "all"])
def test_answers_without_problems_are_logged_on_request(tmp_path, wanted):
    with Service(tmp_path, {"serve.log_requests": wanted}) as service:
        service.post("/v1/score", SCORE)
        lines = [line for line in service.logged() if line["message"] == "request"]
        assert len(lines) == (wanted == "all")


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/nope", 404, "not_found"),
        ("POST", "/v1/score/", 404, "not_found"),
        ("GET", "/v1/score", 405, "method_not_allowed"),
        ("DELETE", "/v1/observe", 405, "method_not_allowed"),
        ("POST", "/healthz", 405, "method_not_allowed"),
        ("TRACE", "/", 405, "method_not_allowed"),
        ("HEAD", "/v1/score", 405, "method_not_allowed"),
    ],
)
def test_what_is_not_there_is_said_in_the_one_shape(service, method, path, status, code):
    reply = service.ask(method, path)
    assert (reply.status, reply.error.code) == (status, code)
    assert ("allow" in reply.headers) == (status == 405)


def test_probes_may_ask_for_the_head_alone(service):
    for path in ("/healthz", "/readyz", "/"):
        reply = service.ask("HEAD", path)
        assert (reply.status, reply.headers["content-type"]) == (200, "application/json")


def test_a_failure_tells_nothing_of_the_inside(service, monkeypatch):
    def burst(_request, _now_s):
        raise RuntimeError("secret detail")

    monkeypatch.setattr(service.learning.learner.agent, "score", burst)
    reply = service.post("/v1/score", SCORE)
    assert (reply.status, reply.error.code) == (500, "internal")
    assert b"secret" not in reply.body
    assert reply.headers["x-request-id"] in reply.error.hint
    assert any("secret detail" in line.get("exception", "") for line in service.logged())


def test_a_token_is_asked_for_everywhere_but_at_the_probes(tmp_path):
    with Service(tmp_path, token=TOKEN) as service:
        before = service.state()
        for wrong in ({}, {"authorization": "Bearer x"}, {"authorization": f"Basic {TOKEN}"}):
            for path in ("/", "/metrics", "/docs", "/openapi.json", "/nope"):
                reply = service.get(path, wrong)
                assert (reply.status, reply.error.code) == (401, "unauthorized")
                assert reply.headers["www-authenticate"] == "Bearer"
            assert service.post("/v1/observe", OBSERVE, {**JSON, **wrong}).status == 401
        assert service.state() == before
        assert service.get("/healthz").status == service.get("/readyz").status == 200
        right = {"authorization": f"bearer {TOKEN}"}
        assert service.get("/", right).status == 200
        assert service.post("/v1/observe", OBSERVE, {**JSON, **right}).status == 200


def test_the_description_names_the_token(tmp_path):
    with Service(tmp_path, token=TOKEN) as service:
        document = service.get("/openapi.json", {"authorization": f"Bearer {TOKEN}"}).json
        assert document["security"] == [{"bearer": []}]
        assert document["paths"]["/healthz"]["get"]["security"] == []


def test_a_token_is_never_shown(tmp_path):
    with Service(tmp_path, {"serve.token": TOKEN}, token=TOKEN) as service:
        right = {"authorization": f"Bearer {TOKEN}"}
        for path in ("/", "/metrics", "/docs", "/openapi.json"):
            assert TOKEN.encode() not in service.get(path, right).body
        service.get("/nope", {"authorization": f"Bearer {TOKEN}x"})
        assert TOKEN not in str(service.logged())


def test_more_requests_than_are_borne_are_put_off(tmp_path):
    with Service(tmp_path, {"serve.max_in_flight": 1}) as service:
        assert service.app.middleware_app._shared_limit.enter()
        reply = service.post("/v1/score", SCORE)
        assert (reply.status, reply.headers["retry-after"]) == (503, "1")
        assert reply.error.code == "unavailable"
        assert service.get("/healthz").status == 200
        service.app.middleware_app._shared_limit.leave()
        assert service.post("/v1/score", SCORE).status == 200


def test_answers_that_nobody_reads_take_no_place(tmp_path):
    async def unread(service, count):
        has_answered = asyncio.Event()

        async def send(_message):
            has_answered.set()
            await asyncio.sleep(3600)

        body = json.dumps(SCORE).encode()
        asked = [{"type": "http.request", "body": body, "more_body": False}] * count

        async def receive():
            return asked.pop()

        scope = scope_of("POST", "/v1/score", JSON)
        tasks = [asyncio.create_task(service.app(scope, receive, send)) for _ in range(count)]
        await has_answered.wait()
        replies = [await service.answer("POST", "/v1/score", body, JSON) for _ in range(3)]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return [reply.status for reply in replies]

    with Service(tmp_path, {"serve.max_in_flight": 1}) as service:
        assert service.runner.run(unread(service, 1)) == [200, 200, 200]


def test_observations_that_wait_take_no_place_of_scores(tmp_path):
    with Service(tmp_path, {"serve.max_in_flight": 1, "serve.max_observing": 1}) as service:
        (lane,) = {service.app.middleware_app._route_limits["/v1/observe"]}
        assert lane.enter()
        reply = service.post("/v1/observe", OBSERVE)
        assert (reply.status, reply.headers["retry-after"]) == (503, "1")
        assert service.post("/v1/score", SCORE).status == 200
        lane.leave()
        assert service.post("/v1/observe", OBSERVE).status == 200


def test_nothing_is_decided_or_kept_before_the_store_is_read(tmp_path):
    with Service(tmp_path, is_started=False) as service:
        for path, body in (("/v1/score", SCORE), ("/v1/observe", OBSERVE)):
            reply = service.post(path, body)
            assert (reply.status, reply.error.code) == (503, "unavailable")
        assert service.get("/healthz").status == 200
        assert service.get("/readyz").status == 503
        service.runner.run(service.components.start())
        assert service.get("/readyz").json == {"status": "ready", "store": "ok"}


def test_what_comes_while_draining_is_still_done(service):
    service.components.is_draining = True
    assert service.get("/readyz").error.message == "the service is shutting down"
    assert service.post("/v1/observe", OBSERVE).status == 200


def test_an_end_that_comes_before_the_store_is_read_is_not_forgotten(tmp_path):
    with Service(tmp_path, is_started=False) as service:
        service.components.is_draining = True
        assert service.post("/v1/score", SCORE).status == 503
        service.runner.run(service.components.start())
        assert service.get("/readyz").status == 503
