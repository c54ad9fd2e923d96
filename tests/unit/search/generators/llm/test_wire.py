import gzip
import json
import tracemalloc

import pytest

from podium.search.generators.generator import Request
from podium.search.generators.llm import Price
from podium.search.generators.llm.wire import LARGEST_ANSWER_BYTES
from support.chat_server import Answer, running_chat_server

BOMB = gzip.compress(b" " * 200_000_000)
PACKED = {"Content-Encoding": "gzip"}


def propose(generator):
    return generator.propose(Request(seed=(7, 0)))


@pytest.mark.parametrize("status", [200, 400, 404, 500])
def test_an_answer_that_grows_without_bound_is_not_unpacked_whole(opened, server, status):
    server.script = lambda _body: Answer(status=status, raw=BOMB, headers=PACKED)
    generator = opened(tries=1)
    tracemalloc.start()
    try:
        found = propose(generator)
        most_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert found.problem
    assert most_bytes < 150_000_000
    for each in server.calls:
        assert each["messages"]


@pytest.mark.parametrize("encoding", ["gzip, gzip", "br", "zstd"])
def test_an_answer_packed_in_a_way_that_nobody_asked_for_is_left(opened, server, encoding):
    server.script = [Answer(raw=gzip.compress(BOMB), headers={"Content-Encoding": encoding})]
    assert "nobody asked for" in propose(opened(tries=1)).problem


def test_an_error_is_cut_off(opened, server):
    server.script = [Answer(status=500, raw=b"x" * (LARGEST_ANSWER_BYTES + 9))]
    assert "error 500: xxx" in propose(opened(tries=1)).problem


def test_a_packed_answer_is_read(opened, server):
    message = {"role": "assistant", "content": "def score(pod, node):\n    return 1.0"}
    whole = {"choices": [{"message": message, "finish_reason": "stop"}]}
    server.script = [Answer(raw=gzip.compress(json.dumps(whole).encode()), headers=PACKED)]
    assert "return 1.0" in propose(opened()).text


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_no_redirection_takes_a_prompt_elsewhere(opened, server, status):
    with running_chat_server() as other:
        place = f"{other.url}/chat/completions"
        server.script = lambda _body: Answer(status=status, raw=b"", headers={"Location": place})
        generator = opened()
        found = propose(generator)
        assert other.calls == []
        assert f"redirects ({status})" in found.problem
        assert place in found.problem
        assert "small" in generator.stopped


def test_a_long_list_of_prices_is_no_list(opened, server):
    server.models = {"data": [{"id": "small"}], "rest": "x" * LARGEST_ANSWER_BYTES}
    opened(usd=1.0, prices={"small": Price(1.0, 1.0)}).close()
    with pytest.raises(Exception, match="needs the price of small"):
        opened(usd=1.0)


def test_what_the_environment_holds_for_openai_goes_nowhere_else(opened, server, monkeypatch):
    monkeypatch.setenv("OPENAI_ORG_ID", "org-of-mine")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "project-of-mine")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "X-Mine: header-of-mine")
    assert propose(opened()).text
    (headers,) = server.headers
    assert "of-mine" not in str(headers)
    assert {name.lower() for name in headers if not name.lower().startswith("x-stainless-")} <= {
        "accept", "accept-encoding", "authorization", "connection", "content-length",
        "content-type", "host", "user-agent",
    }  # fmt: skip
