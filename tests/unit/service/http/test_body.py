import asyncio
import json

import pytest
from pydantic import ValidationError

from podium.service.http import route
from podium.service.http.body import FEW, BodyReader, Gone, outlined
from podium.service.http.budget import BodyBudget
from podium.service.http.problem import Problem
from support.service import JSON, OBSERVE, SCORE, Service, scope_of

READER = BodyReader(max_bytes=10, limit_s=5.0)
_HEAD = b'{"job_type":"a","candidate_gpu_types":["a"]'


def read(chunks, headers=JSON, reader=READER, share=None):
    """Reads a body that arrives in pieces; nothing stands for silence, text for an event."""
    messages = list(chunks)

    async def receive():
        if not messages:
            await asyncio.sleep(60)
        chunk = messages.pop(0)
        if isinstance(chunk, str):
            return {"type": chunk}
        return {"type": "http.request", "body": chunk, "more_body": chunk != b""}

    share = share or reader.share()
    return asyncio.run(reader.read(scope_of("POST", "/", headers), receive, share))


def test_pieces_are_put_together():
    assert read([b"abc", b"def", b""]) == b"abcdef"


def test_a_body_of_the_largest_size_is_read_and_one_byte_more_is_not():
    assert read([b"x" * 10, b""]) == b"x" * 10
    with pytest.raises(Problem) as caught:
        read([b"x" * 10, b"y", b""])
    assert caught.value.status == 413
    assert caught.value.headers["connection"] == "close"


def test_all_bodies_together_are_bounded_and_small_ones_have_room_all_the_same():
    reader = BodyReader(2**20, 5.0, BodyBudget(2**18))
    first, second = reader.share(), reader.share()
    large = [b"x" * 2**17] * 2
    assert len(read([*large, b""], reader=reader, share=first)) == 2**18
    with pytest.raises(Problem) as caught:
        read(large, reader=reader, share=second)  # it would wait for more
    assert caught.value.status == 503
    assert caught.value.headers == {"retry-after": "1", "connection": "close"}
    assert read([b"x" * 2**16, b""], reader=reader) == b"x" * 2**16
    second.give_back()
    first.give_back()
    assert len(read([*large, b""], reader=reader)) == 2**18


@pytest.mark.parametrize(
    "body", [b"{" + b" " * 2**17, json.dumps({**SCORE, "x": "y" * 2**17}).encode()]
)
def test_what_a_request_took_is_free_once_it_is_answered(tmp_path, body):
    with Service(tmp_path) as service:
        budget = service.app.middleware_app.at_once.budget
        before = budget.left
        assert service.post("/v1/score", body).status in {400, 422}
        assert budget.left == before


def test_a_length_that_is_too_large_is_refused_before_anything_arrives():
    with pytest.raises(Problem) as caught:
        read([], {**JSON, "content-length": 11})
    assert caught.value.status == 413


def test_a_body_that_does_not_come_is_not_waited_for():
    with pytest.raises(Problem) as caught:
        read([b"x"], reader=BodyReader(10, 0.05))
    assert caught.value.status == 408


def test_a_caller_that_hangs_up_needs_no_answer(tmp_path):
    with pytest.raises(Gone):
        read([b"x", "http.disconnect"])
    with Service(tmp_path) as service:
        gone = [{"type": "http.disconnect"}]
        exchange = service.exchange("POST", "/v1/score", JSON, gone)
        assert service.runner.run(exchange) is None


@pytest.mark.parametrize(
    "kind",
    [
        "application/json",
        "application/json; charset=utf-8",
        'Application/JSON; charset="UTF-8"',
        "application/vnd.podium+json",
    ],
)
def test_json_may_be_declared_in_several_ways(kind):
    assert read([b"{}", b""], {"content-type": kind}) == b"{}"


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"content-type": "text/json"},
        {"content-type": "application/json; charset=latin-1"},
        {**JSON, "content-encoding": "gzip"},
    ],
)
def test_what_is_not_declared_as_plain_json_is_refused(headers):
    with pytest.raises(Problem) as caught:
        read([b"{}", b""], headers)
    assert caught.value.status == 415


def test_chunks_reach_the_route(tmp_path):
    import json

    text = json.dumps(OBSERVE).encode()
    chunks = [
        {"type": "http.request", "body": text[i : i + 7], "more_body": True}
        for i in range(0, len(text), 7)
    ]
    with Service(tmp_path) as service:
        end = {"type": "http.request", "body": b"", "more_body": False}
        reply = service.runner.run(service.exchange("POST", "/v1/observe", JSON, [*chunks, end]))
        assert reply.status == 200


def _list(entry, count):
    return b"[" + b",".join([entry] * count) + b"]"


def _flood(count):
    many = {f"f{number}": [] for number in range(count)}
    return {
        "names": ("/v1/score", b'{"job_type":"a","candidate_gpu_types":%b}' % _list(b"1", count)),
        "unknown": ("/v1/score", json.dumps({**SCORE, **many}).encode()),
        "features": ("/v1/score", json.dumps({**SCORE, "features": many}).encode()),
        "repeated": ("/v1/score", _HEAD + b',"features":{"a":0' + b',"x":[]' * count + b"}}"),
        "observed": ("/v1/observe", b'{"colocated_job_types":%b}' % _list(b"1", count)),
        "forgotten": ("/v1/forget", b'{"gpu_types":%b}' % _list(b"1", count)),
        "jobs": ("/v1/assign", b'{"jobs":%b}' % _list(b"{}", count)),
        "rows": ("/v1/assign", b'{"costs":%b,"capacities":[]}' % _list(b"[]", count)),
        "costs": ("/v1/assign", b'{"costs":[%b],"capacities":[]}' % _list(b"[]", count)),
        "lists": ("/v1/assign", b'{"costs":%b}' % _list(_list(b"[]", 900), count // 900)),
        "body": ("/v1/score", _list(b"1", count)),
    }


@pytest.mark.parametrize("count", [FEW - 10, 40_000])
@pytest.mark.parametrize("kind", list(_flood(0)))
def test_few_mistakes_are_described_however_many_there_are(tmp_path, monkeypatch, kind, count):
    found = [0]

    def counted(error: ValidationError, known, skipped):
        found.append(error.error_count())
        return refusal(error, known, skipped)

    refusal = route.refusal
    monkeypatch.setattr(route, "refusal", counted)
    with Service(tmp_path) as service:
        path, body = _flood(count)[kind]
        reply = service.post(path, body)
        assert reply.status in {413, 422}
        assert len(reply.error.fields) <= route.MOST_FIELDS
        assert max(found) <= 4 * FEW
        assert len(reply.body) < 10_000


def test_a_crowded_body_is_checked_as_it_was_sent():
    body = {"costs": [[0.1 + 0.2, 5e-324, -0.0, 2**70]] * FEW, "é\u2028": ["\x00", None, True]}
    assert json.loads(outlined(json.dumps(body).encode(), 1000)) == body


def test_a_long_list_is_refused_wherever_it_stands():
    raw = json.dumps({"jobs": [{"candidate_gpu_types": ["a"] * 1001}]}).encode()
    with pytest.raises(Problem, match="candidate_gpu_types has 1,001 entries") as caught:
        outlined(raw, 1000)
    assert caught.value.status == 413


def test_very_many_lists_are_refused_before_they_are_made():
    with pytest.raises(Problem, match="lists and objects") as caught:
        outlined(_list(_list(b"[]", 100), 100), 1000)
    assert caught.value.status == 413


@pytest.mark.parametrize("name", ["[[{", '\\"[', '"\\\\[["'])
def test_brackets_in_names_are_no_lists(name):
    body = [{"names": [name] * 100}] * 100
    assert json.loads(outlined(json.dumps(body).encode(), 1000)) == body


def test_a_text_without_an_end_is_left_to_the_check():
    raw = b'["' + b',\\"[' * 100_000
    assert outlined(raw, 1000) == raw
