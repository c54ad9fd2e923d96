import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.errors import UsageError
from podium.search.generators.llm import Price, read_prices
from podium.search.generators.llm.budget import Budget, Caps, Charge, listed_prices


def test_prices_are_read_from_short_texts():
    found = read_prices(["some/model:free=0,0", "other=0.25, 2"])
    assert found == {"some/model:free": Price(0.0, 0.0), "other": Price(0.25, 2.0)}


@pytest.mark.parametrize(
    "text", ["", "m", "m=", "m=1", "m=1,2,3", "=1,2", "m=a,b", "m=-1,2", "m=nan,1"]
)
def test_a_text_that_is_no_price_is_refused(text):
    with pytest.raises(UsageError, match="price"):
        read_prices([text])


def test_the_prices_of_a_list_are_per_token_and_may_be_missing():
    given = {"prompt": "0.000001", "completion": "0.000004", "request": "0.01"}
    listing = {
        "data": [
            {"id": "a", "pricing": given},
            {"id": "varies", "pricing": {"prompt": "-1", "completion": "-1"}},
            {"id": "none"}, {"id": "odd", "pricing": {"prompt": "x", "completion": None}}, "row",
        ]
    }  # fmt: skip
    assert listed_prices(listing) == {"a": Price(1.0, 4.0, 0.01)}
    assert listed_prices(None) == listed_prices({"data": 3}) == {}


def test_a_call_that_might_exceed_a_cap_is_not_made():
    budget = Budget(Caps(usd=1.0, tokens=100))
    assert not budget.reserve(Charge(60, 41, 0.1))
    assert not budget.reserve(Charge(1, 1, 1.01))
    assert budget.reserve(Charge(60, 40, 1.0))


def test_a_call_of_unknown_price_is_not_made_under_a_cap_in_dollars():
    assert not Budget(Caps(usd=1.0)).reserve(Charge(1, 1, None))
    assert Budget(Caps(tokens=10)).reserve(Charge(1, 1, None))


def test_a_cheaper_end_leaves_room_for_the_next_call():
    budget = Budget(Caps(tokens=100))
    most = Charge(50, 50, None)
    assert budget.reserve(most)
    budget.settle(most, Charge(0, 0, 0.0))
    assert budget.reserve(most)
    budget.settle(most, Charge(1, 0, None))
    assert not budget.reserve(most)
    assert budget.spent == Charge(1, 0, None)


def test_a_call_waits_for_those_in_flight_before_it_gives_up():
    budget, most = Budget(Caps(tokens=100)), Charge(60, 0, None)
    assert budget.reserve(most)
    answers = []
    waiting = threading.Thread(target=lambda: answers.append(budget.reserve(most)))
    waiting.start()
    assert answers == []
    budget.settle(most, Charge(10, 0, None))
    waiting.join(10)
    assert answers == [True]


def test_tenths_of_a_dollar_fit_ten_times():
    budget = Budget(Caps(usd=1.0))
    for _ in range(10):
        assert budget.reserve(Charge(0, 0, 0.1))
        budget.settle(Charge(0, 0, 0.1), Charge(0, 0, 0.1))
    assert not budget.reserve(Charge(0, 0, 1e-9))
    assert budget.spent.usd == 1.0


def test_the_refusal_names_what_is_spent_and_what_was_asked():
    budget = Budget(Caps(usd=0.5, tokens=1000))
    budget.count(Charge(100, 50, 0.25))
    told = budget.refusal(Charge(900, 100, 0.3))
    assert "150 of 1,000 tokens" in told
    assert "0.2500 of 0.5 USD" in told
    assert told.endswith("the next call may take 1,000 tokens and 0.3000 USD")


AMOUNTS = st.tuples(st.integers(0, 50), st.integers(0, 50), st.floats(0, 0.3))


@given(st.lists(st.tuples(AMOUNTS, st.floats(0, 1)), max_size=40), st.integers(0, 200),
       st.floats(0, 1))  # fmt: skip
def test_no_order_of_calls_exceeds_a_cap(calls, tokens, usd):
    budget = Budget(Caps(usd, tokens))
    total_tokens, total_usd = 0, 0.0
    for (tokens_in, tokens_out, most_usd), share in calls:
        most = Charge(tokens_in, tokens_out, most_usd)
        if budget.reserve(most):
            spent = Charge(int(tokens_in * share), tokens_out, most_usd * share)
            budget.settle(most, spent)
            total_tokens, total_usd = total_tokens + spent.tokens, total_usd + spent.usd
    assert budget.spent.tokens == total_tokens <= tokens
    assert budget.spent.usd <= usd
    assert total_usd <= usd + 1e-9


def test_what_was_spent_before_counts():
    budget, other = Budget(Caps(usd=1.0, tokens=100)), Budget(Caps(usd=1.0, tokens=100))
    budget.count(Charge(70, 20, 0.5))
    other.restore(budget.state())
    assert other.state() == budget.state()
    assert not other.reserve(Charge(5, 6, 0.1))
    assert other.reserve(Charge(5, 5, 0.1))
