import pytest

from podium.search.run.stopwatch import SPAN_S, Stopwatch


@pytest.fixture
def now():
    """Holds the time, which tests set."""
    return [100.0]


def test_earlier_sittings_count(now):
    stopwatch = Stopwatch(lambda: now[0], before_s=30.0)
    now[0] = 105.0
    assert stopwatch.seconds == 35.0


def test_the_rate_is_that_of_lately(now):
    stopwatch = Stopwatch(lambda: now[0])
    assert stopwatch.rate(0) == 0.0
    now[0] += 10
    assert stopwatch.rate(50) == 5.0
    now[0] += SPAN_S - 5  # the first mark is forgotten, the second is not
    assert stopwatch.rate(80) == pytest.approx(30 / (SPAN_S - 5))
    now[0] += SPAN_S
    assert stopwatch.rate(1000) == 0.0
