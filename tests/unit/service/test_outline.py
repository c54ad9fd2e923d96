"""Bodies with very many mistakes are refused before each mistake is described."""

import json

import pytest
from pydantic import ValidationError

from podium.service.http import route
from podium.service.http.outline import FEW, outlined
from podium.service.http.problem import Problem
from support.service import SCORE, Service

_HEAD = b'{"job_type":"a","candidate_gpu_types":["a"]'


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

    def counted(error: ValidationError, known):
        found.append(error.error_count())
        return refusal(error, known)

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
