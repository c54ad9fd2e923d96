"""Batches are worked on one after another, as long as somebody wants them."""

import asyncio
import itertools
import json
import threading

import pytest

from podium.service.components import BytesRoute
from podium.service.http.batches import MOST_BATCHES, Batches, Wanted
from podium.service.http.body import IS_GONE, BodyReader, Gone
from podium.service.http.route import bytes_app
from podium.service.learning.routes import MANY_PLACES
from support.service import ANSWER_S, ASSIGN, JSON, SCORE, Service, scope_of

JOBS = b'{"jobs":[{"job_type":"a"}],"gpu_types":["g"],"capacities":[4]}'


@pytest.fixture
def batches():
    made = Batches()
    yield made
    made.close()


def test_what_is_worked_on_is_given(batches):
    assert asyncio.run(batches.work(lambda _: 7, lambda: False)) == 7


def test_an_error_is_passed_on(batches):
    with pytest.raises(ZeroDivisionError):
        asyncio.run(batches.work(lambda _: 1 // 0, lambda: False))


def test_a_batch_whose_caller_is_gone_is_not_begun_and_the_next_one_is(batches):
    may_end, begun = threading.Event(), []

    def slow(_):
        assert may_end.wait(ANSWER_S)
        return "slow"

    async def run():
        first = asyncio.create_task(batches.work(slow, lambda: False))
        await asyncio.sleep(0)
        with pytest.raises(Gone):
            await batches.work(begun.append, lambda: True)
        third = asyncio.create_task(batches.work(lambda _: "third", lambda: False))
        await asyncio.sleep(0)
        may_end.set()
        return await first, await third

    assert asyncio.run(run()) == ("slow", "third")
    assert begun == []


def test_a_batch_ends_once_its_caller_is_gone(batches):
    def endless(is_unwanted):
        for _ in Wanted(itertools.count(), is_unwanted):
            pass

    with pytest.raises(Gone):
        asyncio.run(batches.work(endless, lambda: True))
    assert asyncio.run(batches.work(lambda _: "next", lambda: False)) == "next"


def test_an_assignment_that_nobody_waits_for_ends_and_answers_nothing(tmp_path, monkeypatch):
    def endless(requests, _capacities):
        while True:
            list(requests)

    async def ask(service):
        sent = []

        async def receive():
            return {"type": "http.request", "body": JOBS, "more_body": False}

        async def send(message):
            sent.append(message)

        gone = {"extensions": {IS_GONE: lambda: True}}
        await service.app(scope_of("POST", "/v1/assign", JSON) | gone, receive, send)
        return sent

    with Service(tmp_path) as service:
        with monkeypatch.context() as patch:
            patch.setattr(service.learning.learner.agent, "assign", endless)
            assert service.runner.run(asyncio.wait_for(ask(service), ANSWER_S)) == []
        assert service.post("/v1/assign", ASSIGN).status == 200


def test_assignments_that_wait_take_no_place_of_others(tmp_path, monkeypatch):
    may_end = threading.Event()

    def slow(*_):
        assert may_end.wait(ANSWER_S)
        raise RuntimeError("it ends")

    async def ask(service):
        waiting = [
            asyncio.create_task(service.answer("POST", "/v1/assign", JOBS, JSON))
            for _ in range(MOST_BATCHES)
        ]
        await asyncio.sleep(0)
        refused = await service.answer("POST", "/v1/assign", JOBS, JSON)
        others = [await service.answer("GET", "/healthz"), await service.answer("GET", "/")]
        may_end.set()
        return refused, others, await asyncio.gather(*waiting)

    with Service(tmp_path, {"serve.max_in_flight": 1}) as service:
        monkeypatch.setattr(service.learning.learner.agent, "assign", slow)
        refused, others, answered = service.runner.run(ask(service))
        assert (refused.status, refused.headers["retry-after"]) == (503, "1")
        assert [each.status for each in others] == [200, 200]
        assert {each.status for each in answered} == {500}
        assert service.post("/v1/score", SCORE).status == 200


def test_bodies_that_do_not_end_take_no_place(tmp_path):
    async def ask(service):
        async def receive():
            await asyncio.sleep(0)
            return {"type": "http.request", "body": b"", "more_body": True}

        async def send(_):
            raise AssertionError("nothing is answered")

        waiting = [
            asyncio.create_task(service.app(scope_of("POST", "/v1/assign", JSON), receive, send))
            for _ in range(MOST_BATCHES)
        ]
        await asyncio.sleep(0)
        answered = await service.answer("POST", "/v1/assign", JOBS, JSON)
        for each in waiting:
            each.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        return answered.status

    with Service(tmp_path) as service:
        assert service.runner.run(ask(service)) == 200


def test_a_score_of_many_places_that_nobody_waits_for_is_not_begun(tmp_path, monkeypatch):
    may_end, begun = threading.Event(), []
    places = [{"gpu_type": "g", "node": str(number)} for number in range(MANY_PLACES + 1)]
    body = json.dumps({"job_type": "a", "places": places}).encode()

    def slow(*asked):
        begun.append(asked)
        assert may_end.wait(ANSWER_S)
        raise RuntimeError("it ends")

    async def ask(service):
        async def receive():
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(_):
            raise AssertionError("nobody is there")

        first = asyncio.create_task(service.answer("POST", "/v1/score", body, JSON))
        while not begun:
            await asyncio.sleep(0)
        gone = {"extensions": {IS_GONE: lambda: True}}
        await service.app(scope_of("POST", "/v1/score", JSON) | gone, receive, send)
        may_end.set()
        return await first

    with Service(tmp_path) as service:
        with monkeypatch.context() as patch:
            patch.setattr(service.learning.learner.agent, "score", slow)
            assert service.runner.run(ask(service)).status == 500
        assert len(begun) == 1
        assert service.post("/v1/score", SCORE).status == 200


def test_a_slow_route_is_answered_beside_all_others():
    asked = threading.Event()

    def answer(body):
        assert asked.wait(ANSWER_S)  # the loop goes on meanwhile
        return body

    async def ask():
        sent = []

        async def receive():
            asyncio.get_running_loop().call_later(0.01, asked.set)
            return {"type": "http.request", "body": b"{}", "more_body": False}

        async def send(message):
            sent.append(message)

        route = BytesRoute("/slow", None, None, answer, 10, is_slow=True)
        app = bytes_app(route, BodyReader(10, 5.0))
        await app(scope_of("POST", "/slow", JSON), receive, send)
        return sent

    assert asyncio.run(ask())[-1]["body"] == b"{}"
