import numpy as np
import pytest

from podium.search.llm.pace import LONGEST_WAIT_S, wait_s

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
