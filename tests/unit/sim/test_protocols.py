import math

import pytest

from podium.errors import UsageError
from podium.sim import Holding, Inflation, Replay, Rounds


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Replay(load=0), "load is 0"),
        (lambda: Replay(load=-1), "load is -1"),
        (lambda: Replay(load=math.inf), "load is inf"),
        (lambda: Replay(load=math.nan), "load is nan"),
        (lambda: Inflation(ratio=0), "ratio is 0"),
        (lambda: Inflation(ratio=101), "ratio is 101"),
        (lambda: Inflation(ratio=math.nan), "ratio is nan"),
        (lambda: Rounds(max_rounds=0), "max_rounds is 0"),
        (lambda: Holding(hold_limit=0), "hold_limit is 0"),
        (lambda: Holding(max_holds=-1), "max_holds is -1"),
    ],
)
def test_a_value_that_makes_no_sense_is_refused_with_what_is_expected(make, message):
    with pytest.raises(UsageError, match=message) as caught:
        make()
    assert caught.value.hint.endswith("is expected")


def test_every_protocol_has_a_name_and_bounds_how_long_pods_are_held():
    protocols = [Replay(), Inflation(), Rounds()]
    assert [protocol.name for protocol in protocols] == ["replay", "inflation", "rounds"]
    assert {protocol.holding for protocol in protocols} == {Holding(100, 1000)}


def test_the_smallest_bounds_are_accepted():
    assert Rounds(1, Holding(hold_limit=1, max_holds=0)).holding.max_holds == 0
