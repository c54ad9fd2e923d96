import json
import logging
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

from podium.errors import MissingExtra, UsageError
from podium.search.generators.generator import UNANSWERED, Proposal, Request, Spent
from podium.search.generators.llm import LlmSettings, Price, Secret, open_llm
from podium.search.generators.llm.budget import Charge
from podium.search.generators.llm.client import (
    LONGEST_WAIT_S,
    MOST_CUT_SHORT,
    MOST_SILENT,
    MOST_UNREACHED,
    wait_s,
)
from podium.search.generators.llm.exchange import TIMEOUT, UNREACHABLE, Reply, Try
from support.chat_server import KEY, POLICY, Answer, error, fenced

NOW_S = 1_800_000_000.0  # Fri, 15 Jan 2027 08:00:00 GMT


def waited(retry_after, failures=1, seed=0):
    return wait_s(retry_after, failures, np.random.default_rng(seed), NOW_S)


@pytest.mark.parametrize(
    ("retry_after", "expected"),
    [
        ("7", 7.0), ("0.5", 0.5), (" 3 ", 3.0), ("0", 0.0), ("-4", 0.0), ("86400", LONGEST_WAIT_S),
        ("Fri, 15 Jan 2027 08:00:12 GMT", 12.0), ("Fri, 15 Jan 2027 07:00:00 GMT", 0.0),
        ("Sat, 16 Jan 2027 08:00:00 GMT", LONGEST_WAIT_S),
    ],
)  # fmt: skip
def test_the_service_is_obeyed_within_reason(retry_after, expected):
    assert waited(retry_after) == expected


@pytest.mark.parametrize("retry_after", ["", "soon", "nan", "inf", "Fri, 99 Jan"])
def test_otherwise_waits_double_and_are_drawn(retry_after):
    for failures, most in ((1, 1.0), (2, 2.0), (3, 4.0), (20, LONGEST_WAIT_S)):
        assert most / 2 <= waited(retry_after, failures) <= most
    assert waited(retry_after, seed=1) == waited(retry_after, seed=1) != waited(retry_after, seed=2)


REQUEST = Request((7, 1))
GARBLED = [b"{not json", b"", b"<html>no</html>", b"\xff\xfe\x00"]
WRONG_SHAPES = [b"null", b"[]", b"3", b'"text"']
NO_ANSWERS = [
    b"{}", b'{"choices": []}', b'{"choices": null}', b'{"choices": [{}]}',
    b'{"choices": [{"message": {"content": null}}]}', b'{"choices": [{"message": 3}]}',
    b'{"choices": [{"message": {"content": {"a": 1}}}], "usage": [1]}',
]  # fmt: skip


def propose(generator, seed=(7, 1)):
    """Asks once; whatever the service does, a proposal comes and the budget is kept."""
    proposal = generator.propose(Request(seed))
    assert isinstance(proposal, Proposal)
    caps, spent = generator.settings.caps, generator.spent
    assert caps.tokens is None or spent.tokens <= caps.tokens
    assert caps.usd is None or spent.usd <= caps.usd
    return proposal


def goes_on(generator, server):
    """Tells whether the next candidate is written as if nothing had happened."""
    server.script = lambda _body: Answer()
    return propose(generator, (7, 2)).text == POLICY


def test_a_good_answer_becomes_a_proposal(opened, server):
    proposal = propose(opened())
    assert proposal.text == POLICY
    assert proposal.thought == "fill nodes up"
    assert proposal.source == "llm:small"
    assert proposal.problem == ""
    assert proposal.operators == ("start",)
    assert proposal.cost.calls == 1
    assert proposal.cost.tokens_in + proposal.cost.tokens_out == server.charged_tokens
    assert proposal.cost.usd is None
    sent = server.calls[0]
    assert sent["messages"][0]["content"] in proposal.prompt
    assert (sent["model"], sent["temperature"], sent["max_tokens"]) == ("small", 1.0, 4096)
    assert server.keys == [f"Bearer {KEY}"]


def test_the_seed_that_is_sent_follows_from_that_of_the_request(opened, server):
    generator = opened()
    for seed in ((7, 1), (7, 1), (7, 2)):
        propose(generator, seed)
    first, again, other = (call["seed"] for call in server.calls)
    assert first == again != other


@pytest.mark.parametrize(
    ("retry_after", "expected"),
    [("7", 7.0), ("Fri, 15 Jan 2027 08:00:12 GMT", 12.0), ("9999", LONGEST_WAIT_S)],
)
def test_a_busy_service_is_left_alone_for_as_long_as_it_asks(
    opened, server, slept, retry_after, expected
):
    server.script = [error(429, "slow down", {"Retry-After": retry_after}), Answer()]
    proposal = propose(opened())
    assert proposal.text == POLICY
    assert proposal.cost.calls == 2
    assert slept == [expected]


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504, 529, 408])
def test_a_failing_service_is_asked_again_a_few_times(opened, server, slept, status):
    server.script = lambda _body: error(status, "try later")
    generator = opened(tries=3)
    proposal = propose(generator)
    assert proposal.text == ""
    assert f"error {status}: try later (after 3 tries)" in proposal.problem
    assert (proposal.cost.tokens_in, proposal.cost.usd) == (0, 0.0)
    assert len(server.calls) == 3
    assert len(slept) == 2
    assert slept[0] <= 1.0 <= slept[1] <= 2.0
    assert goes_on(generator, server)


def test_waits_are_drawn_by_the_seed_of_the_request(opened, server, slept):
    for seed in ((7, 1), (7, 1), (7, 2)):
        server.script = [error(500, "try later"), Answer()]
        propose(opened(), seed)
    assert slept[0] == slept[1] != slept[2]


def test_an_error_that_comes_as_a_success_is_an_error(opened, server, slept):
    body = {"error": {"code": 429, "message": "upstream is busy"}}
    server.script = [Answer(raw=json.dumps(body).encode()), Answer()]
    assert propose(opened()).text == POLICY
    assert len(slept) == 1


@pytest.mark.parametrize("answer", [Answer(hang_s=30), Answer(drip_s=30)], ids=["hangs", "drips"])
def test_a_service_that_takes_too_long_is_given_up_and_charged_the_bound(opened, server, answer):
    server.script = lambda _body: answer
    generator = opened(tries=1, timeout_s=1.0)
    proposal = propose(generator)
    assert "time-out" in proposal.problem
    assert proposal.cost.tokens_out == generator.settings.max_tokens
    assert goes_on(generator, server)


@pytest.mark.parametrize(
    "answer",
    [Answer(sent_share=0.5), *[Answer(raw=raw) for raw in (*GARBLED, *WRONG_SHAPES)]],
)  # fmt: skip
def test_a_garbled_answer_is_charged_the_bound_and_asked_for_again(opened, server, answer):
    server.script = [answer, Answer()]
    generator = opened()
    proposal = propose(generator)
    assert proposal.text == POLICY
    assert proposal.cost.calls == 2
    assert proposal.cost.tokens_out > generator.settings.max_tokens
    server.script = lambda _body: answer
    assert propose(generator, (7, 3)).problem != ""
    assert goes_on(generator, server)


@pytest.mark.parametrize("raw", NO_ANSWERS)
def test_an_answer_of_the_wrong_shape_is_a_problem(opened, server, raw):
    server.script = [Answer(raw=raw)]
    generator = opened()
    proposal = propose(generator)
    assert proposal.text == ""
    assert "the answer " in proposal.problem
    assert len(server.calls) == 1
    assert goes_on(generator, server)


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (Answer("I'd suggest packing nodes tightly."), "holds no program"),
        (Answer(None, message={"refusal": "I cannot do that."}), "refused: I cannot do that."),
        (Answer("", finish="content_filter"), "content filter"),
        (Answer(fenced()[:-40], finish="length"), "cut off"),
        (Answer(None, finish="length"), "the limit on its length"),
    ],
)
def test_an_answer_without_a_program_is_a_problem_with_its_cost(opened, server, answer, problem):
    server.script = [answer]
    generator = opened()
    proposal = propose(generator)
    assert problem in proposal.problem
    assert proposal.cost.tokens_in > 0
    assert goes_on(generator, server)


@pytest.mark.parametrize("fence", ["~~~", "````"])
def test_wrong_fences_are_understood(opened, server, fence):
    server.script = [Answer(fenced(fence=fence, info="py")), Answer(fenced().rstrip("`\n"))]
    generator = opened()
    assert propose(generator).text == POLICY
    assert propose(generator).text == POLICY


@pytest.mark.parametrize("count", [0, -7, 10**15, "400", None, 1.5])
def test_wrong_counts_are_bounded(opened, server, count):
    usage = {"prompt_tokens": count, "completion_tokens": count}
    server.script = lambda _body: Answer(usage=usage)
    generator = opened(tokens=30_000)
    bound = len(propose(generator).prompt.encode()) + 256 + 4096
    assert generator.spent.tokens == bound
    results = [generator.propose(Request((7, i))) for i in range(8)]
    assert isinstance(results[-1], Spent)
    assert server.charged_tokens <= generator.spent.tokens <= 30_000


def test_an_answer_without_counts_is_bounded(opened, server):
    server.script = lambda _body: Answer(usage=None)
    assert propose(opened()).cost.tokens_out == 4096


@pytest.mark.parametrize("status", [401, 403, 402, 404])
def test_a_service_that_will_never_answer_is_asked_once(opened, server, status):
    server.script = lambda _body: error(status, f"no, not with {KEY}")
    generator = opened()
    proposal = propose(generator)
    assert f"({status})" in proposal.problem
    assert proposal.cost.calls == 1
    spent = generator.propose(REQUEST)
    assert isinstance(spent, Spent)
    assert f"({status})" in spent.reason
    assert spent.where == server.url
    assert len(server.calls) == 1
    assert KEY not in f"{proposal}{spent}{generator.state()}{generator.stopped}"


def test_an_account_without_credit_is_not_waited_for(opened, server, slept):
    server.script = [error(429, "You exceeded your quota", code="insufficient_quota")]
    generator = opened()
    assert "no credit" in propose(generator).problem
    assert isinstance(generator.propose(REQUEST), Spent)
    assert slept == []


def test_a_model_that_is_unknown_leaves_the_work_to_the_others(opened, server):
    server.script = lambda body: (
        error(404, "no such model") if body["model"] == "gone" else Answer()
    )
    generator = opened(models=("gone", "small"))
    proposals = [propose(generator, (7, i)) for i in range(6)]
    assert sum(proposal.text == POLICY for proposal in proposals) >= 5
    assert [call["model"] for call in server.calls].count("gone") == 1
    assert "no such model" in generator.stopped["gone"]


def refusing(*names):
    """Answers as a model that does not take some parameters."""

    def script(body):
        for name in names:
            if name in body:
                return error(400, f"Unsupported parameter: '{name}'. Use 'other' instead.")
        return Answer()

    return script


@pytest.mark.parametrize("names", [["temperature"], ["seed"], ["temperature", "seed"]])
def test_parameters_that_a_model_refuses_are_left_out_from_then_on(opened, server, names):
    server.script = refusing(*names)
    generator = opened()
    assert propose(generator).text == POLICY
    assert propose(generator).text == POLICY
    assert len(server.calls) == len(names) + 2
    assert not set(names) & server.calls[-1].keys()
    assert generator.state()["dropped"] == {"small": sorted(names)}
    restored = opened()
    restored.restore(json.loads(json.dumps(generator.state())))
    propose(restored)
    assert len(server.calls) == len(names) + 3


def test_newer_models_get_the_limit_under_its_newer_name(opened, server):
    told = "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."
    server.script = lambda body: (
        error(400, told, param="max_tokens") if "max_tokens" in body else Answer()
    )
    assert propose(opened(max_tokens=777)).text == POLICY
    assert server.calls[-1]["max_completion_tokens"] == 777
    assert "max_tokens" not in server.calls[-1]


def test_a_model_without_a_limit_on_its_answers_cannot_be_kept_in_budget(opened, server):
    server.script = refusing("max_tokens", "max_completion_tokens")
    generator = opened()
    assert "no limit on the length of answers" in propose(generator).problem
    assert isinstance(generator.propose(REQUEST), Spent)
    assert len(server.calls) == 2


def test_a_bad_request_for_another_reason_is_a_problem(opened, server):
    server.script = [error(400, "context too long")]
    generator = opened()
    assert "error 400: context too long" in propose(generator).problem
    assert len(server.calls) == 1
    assert goes_on(generator, server)


def test_a_service_that_refuses_everything_is_asked_a_bounded_number_of_times(opened, server):
    server.script = lambda body: error(400, "wrong: " + " ".join(body))
    assert propose(opened()).text == ""
    assert len(server.calls) <= 6


def test_a_service_that_is_not_there_costs_nothing(opened, slept):
    generator = opened(base_url="http://127.0.0.1:9/v1")
    proposal = propose(generator)
    assert "not reachable (after 4 tries)" in proposal.problem
    assert proposal.cost.tokens_in == 0
    assert len(slept) == 3


def test_a_service_that_is_not_there_for_long_is_given_up(opened):
    url = "http://127.0.0.1:9/v1"
    generator = opened(base_url=url, models=("small", "large"))
    for i in range(MOST_UNREACHED):
        assert "not reachable" in propose(generator, (7, i)).problem
    assert generator.propose(REQUEST) == Spent("the service cannot be reached", url)


def test_a_service_that_never_answers_in_time_is_given_up(opened, server):
    server.script = lambda _body: Answer(hang_s=30)
    generator = opened(tries=1, timeout_s=0.1, models=("small", "large"))
    for i in range(MOST_SILENT):
        assert propose(generator, (7, i)).problem.startswith(UNANSWERED)
    spent = generator.propose(REQUEST)
    assert isinstance(spent, Spent)
    assert f"no answer to {MOST_SILENT} proposals in a row within 0.1 s" in spent.reason
    assert spent.where == generator.settings.place


def test_a_service_that_is_late_now_and_then_is_asked_on(opened, server):
    generator = opened()
    for code in [*[0] * (MOST_SILENT - 1), 200, 0]:
        reply = Reply(code, failure="" if code else TIMEOUT)
        generator._client._heed(Try("small", (), reply, Charge(), 0.0))
    assert goes_on(generator, server)


def test_a_service_that_comes_back_is_forgiven(opened, server):
    generator = opened()
    for code in [*[0] * (MOST_UNREACHED - 1), 200, 0]:
        reply = Reply(code, failure="" if code else UNREACHABLE)
        generator._client._heed(Try("small", (), reply, Charge(), 0.0))
    assert goes_on(generator, server)


PRICES = {"small": Price(1.0, 4.0), "large": Price(10.0, 40.0)}


@pytest.mark.parametrize("behaviour", ["honest", "dear", "cut", "failing", "uncounted"])
def test_eight_threads_never_exceed_the_budget(opened, server, behaviour):
    server.price = (1e-6, 4e-6)
    dear = Answer(tokens_out=1000, hang_s=0.05)
    answers = {
        "honest": lambda: Answer(hang_s=0.05), "dear": lambda: dear,
        "cut": lambda: Answer(hang_s=0.05, sent_share=0.5) if len(server.calls) % 3 else dear,
        "failing": lambda: error(500, "no") if len(server.calls) % 2 else dear,
        "uncounted": lambda: replace(dear, usage={"prompt_tokens": 0}),
    }  # fmt: skip
    server.script = lambda _body: answers[behaviour]()
    generator = opened(usd=0.08, tokens=60_000, prices=PRICES, max_tokens=1000)
    with ThreadPoolExecutor(8) as threads:
        results = list(threads.map(lambda i: generator.propose(Request((7, i))), range(60)))
    assert round(server.charged_usd, 9) <= round(generator.spent.usd, 9) <= 0.08
    assert server.charged_tokens <= generator.spent.tokens <= 60_000
    assert server.most_in_flight > 1
    assert any(isinstance(result, Spent) for result in results)
    assert any(isinstance(result, Proposal) and result.text for result in results)
    made = [result.cost for result in results if isinstance(result, Proposal)]
    assert sum(cost.tokens_in + cost.tokens_out for cost in made) == generator.spent.tokens
    assert sum(cost.calls for cost in made) == len(server.calls)


def test_a_spent_budget_says_what_was_spent(opened):
    spent = opened(tokens=100).propose(REQUEST)
    assert isinstance(spent, Spent)
    assert "0 of 100 tokens" in spent.reason
    assert spent.where == ""


def test_two_models_without_budget_are_told_once(opened):
    prices = {"small": Price(1.0, 4.0), "large": Price(8.0, 32.0)}
    spent = opened(models=("small", "large"), usd=0.001, tokens=None, prices=prices).propose(
        REQUEST
    )
    assert spent.reason.count("the budget is used up") == 1


def test_a_model_that_is_too_dear_leaves_the_rest_of_the_budget_to_a_cheaper_one(opened, server):
    generator = opened(models=("small", "large"), usd=0.05, tokens=None, prices=PRICES)
    proposal = generator.propose(Request((7, 1), is_stagnant=True))
    assert proposal.source == "llm:small"
    assert [call["model"] for call in server.calls] == ["small"]


def test_the_cost_that_a_service_reports_is_charged(opened, server):
    usage = {"prompt_tokens": 1500, "completion_tokens": 50, "cost": 0.002}
    server.script = lambda _body: Answer(usage=usage)
    assert propose(opened(usd=1.0, prices=PRICES)).cost.usd == 0.002
    assert propose(opened()).cost.usd == 0.002


def test_prices_are_asked_of_the_service_where_the_user_gives_none(opened, server):
    server.models = {"data": [{"id": "small", "pricing": {"prompt": "1e-6", "completion": "4e-6"}}]}
    server.price = (1e-6, 4e-6)
    assert propose(opened(usd=1.0)).cost.usd == pytest.approx(server.charged_usd)


def test_a_budget_in_dollars_needs_prices(opened):
    with pytest.raises(UsageError, match="needs the price of small"):
        opened(usd=1.0)


def test_the_package_is_needed_to_ask(monkeypatch):
    monkeypatch.setitem(sys.modules, "openai", None)
    with pytest.raises(MissingExtra, match="'search'"):
        open_llm(LlmSettings(("m",), "http://127.0.0.1:9/v1", tokens=1))


def test_the_key_is_never_logged(opened, server, caplog):
    caplog.set_level(logging.DEBUG)
    server.script = [error(500, f"key {KEY}"), Answer()]
    propose(opened(key=Secret(KEY)))
    assert caplog.records
    assert KEY not in caplog.text


def thinking(tokens_out=4096):
    """Answers with nothing but thinking, until the limit is reached."""
    message = {"reasoning_content": "Let me think about it. " * 20}
    return Answer("", finish="length", message=message, tokens_out=tokens_out)


def test_a_model_that_thinks_to_the_end_of_its_answers_is_not_asked_for_long(opened, server):
    server.script = lambda _body: thinking()
    generator = opened()
    for number in range(MOST_CUT_SHORT):
        assert "--max-tokens" in propose(generator, (7, number)).problem
    spent = generator.propose(Request((7, 99)))
    assert isinstance(spent, Spent)
    assert "3 answers in a row ended at their limit of 4,096 tokens" in spent.reason
    assert "--max-tokens (search.max_tokens)" in spent.reason
    assert spent.where  # nobody is left to ask
    assert len(server.calls) == MOST_CUT_SHORT


def test_a_program_now_and_then_keeps_a_model(opened, server):
    server.script = [thinking(), thinking(), Answer(), thinking(), thinking(), Answer(), thinking()]
    generator = opened()
    problems = [bool(propose(generator, (7, number)).problem) for number in range(7)]
    assert problems == [True, True, False, True, True, False, True]


def test_another_model_goes_on_where_one_runs_out_of_length(opened, server):
    server.script = lambda body: thinking() if body["model"] == "small" else Answer()
    generator = opened(models=("small", "large"))
    for number in range(20):
        propose(generator, (7, number))
    assert list(generator.stopped) == ["small"]
    assert sum(call["model"] == "small" for call in server.calls) == MOST_CUT_SHORT


def test_settings_of_how_models_answer_are_sent(opened, server):
    extra = {"top_p": 0.9, "provider": {"order": ["a", "b"]}}
    propose(opened(max_tokens=9000, reasoning_effort="low", temperature=None, parameters=extra))
    (sent,) = server.calls
    assert (sent["max_tokens"], sent["reasoning_effort"]) == (9000, "low")
    assert (sent["top_p"], sent["provider"]) == (0.9, {"order": ["a", "b"]})
    assert "temperature" not in sent


def test_a_parameter_of_the_user_s_that_a_model_refuses_is_left_out(opened, server):
    server.script = [error(400, "top_k is not supported", param="top_k"), Answer()]
    generator = opened(parameters={"top_k": 5})
    assert propose(generator).text == POLICY
    assert ["top_k" in call for call in server.calls] == [True, False]


def test_of_several_temperatures_each_call_draws_one_by_its_seed(opened, server):
    generator = opened(temperature=(0.2, 0.8, 1.4))
    for number in range(12):
        propose(generator, (7, number))
    first = [call["temperature"] for call in server.calls]
    assert set(first) == {0.2, 0.8, 1.4}
    again = opened(temperature=(0.2, 0.8, 1.4))
    for number in range(12):
        propose(again, (7, number))
    assert [call["temperature"] for call in server.calls[12:]] == first


def test_no_more_calls_are_in_flight_than_allowed(opened, server):
    server.script = lambda _body: Answer(hang_s=0.05)
    generator = opened(concurrency=3)
    with ThreadPoolExecutor(9) as threads:
        list(threads.map(lambda number: propose(generator, (7, number)), range(9)))
    assert server.most_in_flight == 3


def sse(text, usage=True, is_ended=True):
    """Streams an answer in pieces."""
    pieces = [text[i : i + 40] for i in range(0, len(text), 40)]
    chunks = [{"choices": [{"index": 0, "delta": {"content": piece}}]} for piece in pieces]
    chunks += (
        [{"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}] if is_ended else []
    )
    if usage:
        counts = {"prompt_tokens": 900, "completion_tokens": 50}
        chunks.append({"choices": [], "usage": counts})
    lines = [f"data: {json.dumps(chunk)}\n\n" for chunk in chunks]
    return Answer(raw="".join([*lines, "data: [DONE]\n\n" if is_ended else ""]).encode())


def test_a_streamed_answer_is_read_and_its_last_message_is_charged(opened, server):
    server.script = lambda _body: sse(fenced())
    proposal = propose(opened(parameters={"stream": True}))
    assert (proposal.text, proposal.thought) == (POLICY, "fill nodes up")
    assert (proposal.cost.tokens_in, proposal.cost.tokens_out) == (900, 50)
    assert server.calls[0]["stream"] is True


def test_a_stream_that_ends_early_is_charged_in_full_and_gives_no_half_program(opened, server):
    server.script = lambda _body: sse(fenced()[:-30], usage=False, is_ended=False)
    proposal = propose(opened(parameters={"stream": True}))
    assert proposal.text == ""
    assert proposal.cost.tokens_out == 4096
