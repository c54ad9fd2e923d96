import pytest

from podium.errors import UsageError
from podium.search.llm import Price, read_prices
from podium.search.llm.prices import listed_prices


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
