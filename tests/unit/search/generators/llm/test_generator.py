import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from podium.errors import InputError
from podium.search.generators.generator import Cost, Exemplar, Failure, Proposal, Request, Spent
from podium.search.generators.llm import LlmSettings, Price, open_llm
from support.chat_server import KEY, POLICY, Answer, error, fenced, running_chat_server

BROKEN = POLICY.replace("node.cpu_milli_left", "node.free_cpu")
PRICES = {"small": Price(1.0, 4.0), "large": Price(2.0, 8.0)}
REQUESTS = [Request((7, i), is_stagnant=i == 5) for i in range(9)]


def replaying(tape, **more):
    return open_llm(LlmSettings(("small", "large"), mode="replay", cassette=tape, **more))


@pytest.fixture
def recorded(opened, server, tmp_path):
    """Records a run in which much goes wrong; gives its cassette and what came of it."""
    tape = tmp_path / "tape.jsonl"
    script = [
        Answer(), error(500, f"key {KEY}"), error(429, "slow", {"Retry-After": "3"}),
        Answer("no program"), Answer(raw=b"{"), error(400, "temperature"), Answer(sent_share=0.4),
    ]  # fmt: skip
    server.script = lambda _body: script.pop(0) if script else Answer(fenced(thought="last"))
    generator = opened(
        models=("small", "large"), mode="record", cassette=tape, prices=PRICES, usd=0.15
    )
    with ThreadPoolExecutor(4) as threads:
        results = list(threads.map(generator.propose, REQUESTS))
    while not isinstance(results[-1], Spent):
        results.append(generator.propose(Request((7, len(results)))))
    generator.close()
    return tape, results, generator


def requests_of(results):
    return [*REQUESTS, *(Request((7, i)) for i in range(len(REQUESTS), len(results)))]


def test_a_replay_gives_equal_proposals_without_a_service(recorded, server):
    tape, results, live = recorded
    server.server.server_close()
    generator = replaying(tape)
    asked = list(zip(requests_of(results), results, strict=True))
    for request, result in reversed(asked):  # whatever the order of threads
        assert generator.propose(request) == result
    assert generator.spent == live.spent
    assert {type(result) for result in results} == {Proposal, Spent}
    generator.close()


def test_the_key_is_not_on_the_cassette(recorded):
    assert KEY not in recorded[0].read_text()


def test_a_replay_of_other_settings_says_what_differs(recorded):
    generator = replaying(recorded[0], temperature=0.5)
    with pytest.raises(InputError, match=r"temperature is 0\.5, recorded 1\.0"):
        generator.propose(REQUESTS[0])


REPLAY = """
import json, os, sys
from pathlib import Path
sys.modules["openai"] = None
assert not any("KEY" in name for name in os.environ)
from podium.search.generators.llm import LlmSettings, open_llm
from podium.search.generators.generator import Request
settings = LlmSettings(("small", "large"), mode="replay", cassette=Path(sys.argv[1]))
generator = open_llm(settings)
print(json.dumps([generator.propose(Request((7, i), is_stagnant=i == 5)).text for i in range(9)]))
"""


def test_a_replay_needs_no_key_and_no_package(recorded):
    tape, results, _ = recorded
    done = subprocess.run(
        [sys.executable, "-c", REPLAY, str(tape)], env={}, capture_output=True, check=True
    )
    texts = [getattr(result, "text", None) for result in results[:9]]
    assert json.loads(done.stdout) == texts


def judged(judge, generator, requests):
    """Drives rounds as a run does: propose, judge, repair once, learn."""
    rows = []
    for request in requests:
        proposal = generator.propose(request)
        verdict = judge.judge(proposal.text).verdict
        rows.append((proposal, verdict))
        if proposal.text and not verdict.accepted and generator.can_repair:
            failure = Failure(proposal.text, verdict.gate, verdict.reason)
            proposal = generator.propose(Request((*request.seed, 1), request.parents, failure))
            rows.append((proposal, judge.judge(proposal.text).verdict))
        generator.learn(proposal.source, 1.0 if rows[-1][1].accepted else None, proposal.cost)
    return rows


def test_what_a_service_answers_is_judged_and_repaired(judge, opened, server):
    server.script = [Answer(), Answer(fenced(BROKEN)), Answer(), Answer("I give up.")]
    parents = (Exemplar(1, POLICY, 90.0),)
    rows = judged(judge, opened(), [Request((9, i), parents) for i in range(3)])
    assert [verdict.accepted for _, verdict in rows] == [True, False, True, False]
    assert rows[1][1].gate == "allow-list"
    repair = server.calls[2]["messages"][1]["content"]
    assert "Gate: allow-list" in repair
    assert "reads node.free_cpu" in repair
    assert BROKEN in repair
    assert rows[2][0].operators == ("repair",)
    assert rows[3][0].problem != ""


def test_the_better_of_two_models_is_asked_more_often(judge, opened, server):
    server.script = lambda body: Answer(fenced(POLICY if body["model"] == "large" else BROKEN))
    generator = opened(models=("small", "large"), prices=PRICES, usd=10.0)
    rows = []
    for i in range(30):
        proposal = generator.propose(Request((9, i)))
        accepted = judge.judge(proposal.text).verdict.accepted
        generator.learn(proposal.source, 0.5 if accepted else None, proposal.cost)
        rows.append(proposal.source)
    assert rows.count("llm:large") > 20
    assert "llm:small" in rows[:2]


def test_a_stagnant_search_asks_the_last_model(opened, server):
    generator = opened(models=("small", "large"))
    for i in range(5):
        generator.propose(Request((9, i), is_stagnant=True))
    assert {call["model"] for call in server.calls} == {"large"}


def test_a_resumed_generator_goes_on_as_if_never_stopped(opened, server):
    def play(generator, numbers):
        sources = []
        for i in numbers:
            sources.append(generator.propose(Request((9, i))).source)
            generator.learn(sources[-1], 0.1 * (i % 3), Cost(tokens_in=100 * (i % 2)))
        return sources

    models = ("a", "b", "c")
    whole = opened(models=models)
    expected = play(whole, range(20))
    first, second = opened(models=models), opened(models=models)
    begun = play(first, range(9))
    second.restore(json.loads(json.dumps(first.state())))
    assert begun + play(second, range(9, 20)) == expected
    assert second.state() == whole.state()
    assert len(server.calls) == 40


def test_a_resumed_generator_has_spent_what_was_spent(opened):
    first, second = opened(tokens=12_000), opened(tokens=12_000)
    first.propose(Request((9, 1)))
    second.restore(first.state())
    assert second.spent.tokens == first.spent.tokens > 0


def test_a_generator_that_is_closed_twice_is_closed():
    with running_chat_server() as server:
        generator = open_llm(LlmSettings(("m",), server.url, tokens=1))
        generator.close()
        generator.close()
        assert not server.calls
