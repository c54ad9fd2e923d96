import json

import pytest

from podium.search.generators.llm.budget import Charge, Price
from podium.search.generators.llm.exchange import (
    LOST,
    TIMEOUT,
    UNREACHABLE,
    WRAPPING_TOKENS,
    Reply,
    answer_text,
    charge_of,
    most_charge,
    reasoning_text,
    reported_usd,
)

PRICE = Price(1.0, 10.0)
PROMPT = "x" * 1600
MOST = most_charge(PROMPT, 1000, PRICE)
ABSENT = object()


def charged(price=PRICE, content="y" * 160, **usage):
    given = {name: value for name, value in usage.items() if value is not ABSENT}
    body = {"choices": [{"message": {"content": content}}], "usage": given}
    return charge_of(Reply(200, json.dumps(body)), MOST, price)


def test_the_bound_counts_bytes_and_the_longest_answer():
    assert most_charge("ä", 10, None) == Charge(2 + WRAPPING_TOKENS, 10, None)
    assert pytest.approx((1600 + WRAPPING_TOKENS + 10_000) / 1e6) == MOST.usd


def test_counts_that_can_be_true_are_taken():
    assert charged(prompt_tokens=400, completion_tokens=40) == Charge(400, 40, 800e-6)


@pytest.mark.parametrize(
    "wrong", [0, -5, 10**9, 99, ABSENT, None, "400", "many", 400.5, True, [400], {}]
)
def test_a_wrong_count_of_the_prompt_is_replaced_by_the_bound(wrong):
    assert charged(prompt_tokens=wrong, completion_tokens=40).tokens_in == MOST.tokens_in


@pytest.mark.parametrize("wrong", [0, -5, 10**9, 9, ABSENT, None, "40", 40.5, True])
def test_a_wrong_count_of_the_answer_is_replaced_by_the_bound(wrong):
    assert charged(prompt_tokens=400, completion_tokens=wrong).tokens_out == 1000


def test_an_empty_answer_may_have_no_tokens():
    assert charged(prompt_tokens=400, completion_tokens=0, content=None).tokens_out == 0


def test_a_reported_cost_goes_before_the_price_table():
    assert charged(prompt_tokens=400, completion_tokens=40, cost=0.5).usd == 0.5
    assert charged(prompt_tokens=400, completion_tokens=40, cost=0).usd == 0.0


def test_without_cost_and_price_the_dollars_are_unknown():
    assert charged(price=None, prompt_tokens=400, completion_tokens=40).usd is None


@pytest.mark.parametrize("wrong", [-1, "0.5", None, True, float("nan"), float("inf"), [1]])
def test_a_cost_that_is_none_falls_back_to_the_price_table(wrong):
    assert charged(prompt_tokens=400, completion_tokens=40, cost=wrong).usd == 800e-6


def test_the_vendors_share_is_added_for_a_key_of_the_users_own_alone():
    details = {"upstream_inference_cost": 0.02}
    assert reported_usd({"cost": 0.001, "is_byok": True, "cost_details": details}) == 0.021
    assert reported_usd({"cost": 0.02, "is_byok": False, "cost_details": details}) == 0.02
    assert reported_usd({"cost": 0.02, "cost_details": details}) == 0.02
    assert reported_usd({"cost": 0.001, "is_byok": True}) is None


@pytest.mark.parametrize("usage", [None, "many", [], 7])
def test_an_answer_without_usage_is_charged_the_bound(usage):
    body = {"choices": [{"message": {"content": "y"}}], "usage": usage}
    assert charge_of(Reply(200, json.dumps(body)), MOST, PRICE) == MOST


@pytest.mark.parametrize(
    "reply", [Reply(failure=TIMEOUT), Reply(failure=LOST), Reply(200, "{half"), Reply(200, "[]")]
)
def test_a_call_with_an_unknown_end_is_charged_the_bound(reply):
    assert charge_of(reply, MOST, PRICE) == MOST


@pytest.mark.parametrize(
    "reply",
    [Reply(429, "{}"), Reply(500, "x"), Reply(401), Reply(failure=UNREACHABLE),
     Reply(200, '{"error": {"code": 502, "message": "bad gateway"}}')],
)  # fmt: skip
def test_an_error_is_not_charged(reply):
    assert charge_of(reply, MOST, PRICE) == Charge(0, 0, 0.0)


def streamed(*chunks, is_ended=True):
    lines = [f"data: {json.dumps(each)}\n" for each in chunks]
    return "\n".join([": keep-alive\n", *lines, *(["data: [DONE]\n"] if is_ended else [])])


def delta(finish=None, **parts):
    return {"choices": [{"index": 0, "delta": parts, "finish_reason": finish}]}


def test_a_stream_is_put_together_with_the_usage_of_its_last_message():
    text = streamed(
        delta(role="assistant", content=""), delta(reasoning_content="Pack "),
        delta(reasoning_content="it."), delta(content="Thought: "), delta(content="fill"),
        delta("stop"), {"choices": [], "usage": {"prompt_tokens": 70, "completion_tokens": 9}},
    )  # fmt: skip
    reply = Reply(200, text)
    assert answer_text(reply.body) == "Thought: fill"
    assert reasoning_text(reply.body) == "Pack it."
    assert (reply.problem, reply.body["choices"][0]["finish_reason"]) == ("", "stop")
    assert charge_of(reply, Charge(500, 4096, 0.5), None) == Charge(70, 9, None)


def test_a_stream_that_was_cut_is_charged_the_bound():
    reply = Reply(200, streamed(delta(content="Thought: fi"), is_ended=False))
    assert reply.body["choices"][0]["finish_reason"] == "cut"
    most = Charge(500, 4096, 0.5)
    assert charge_of(reply, most, Price(1.0, 1.0)).tokens == most.tokens
    assert not reply.is_transient


def test_an_error_within_a_stream_is_an_error():
    reply = Reply(200, streamed(delta(content="Th"), {"error": {"code": 429, "message": "slow"}}))
    assert (reply.code, reply.is_transient, reply.error_message) == (429, True, "slow")


@pytest.mark.parametrize("text", ["data: [DONE]", "data:", "data: [1]", "event: x", "data: {"])
def test_what_is_no_stream_is_garbled(text):
    assert Reply(200, text).is_garbled
