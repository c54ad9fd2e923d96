import math

import pytest

from podium.cli.figures import count, counted, decimal, duration, percent, size, text_of


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (count(8152), "8,152"),
        (counted(1, "node"), "1 node"),
        (counted(1213, "node"), "1,213 nodes"),
        (decimal(1234.567), "1,234.57"),
        (decimal(None), "-"),
        (percent(0.93125), "93.12 %"),
        (percent(1.0, digits=0), "100 %"),
        (percent(math.nan), "-"),
        (duration(0), "0 s"),
        (duration(2.5e-5), "25 µs"),
        (duration(0.0123), "12.3 ms"),
        (duration(59.96), "60 s"),
        (duration(90), "1.5 min"),
        (duration(7200), "2 h"),
        (duration(86400 * 12), "12 d"),
        (duration(None), "-"),
        (percent(-1e-9), "0.00 %"),
        (decimal(-0.001), "0.00"),
        (size(512), "512 B"),
        (size(1536), "1.5 KiB"),
        (size(5 << 20), "5 MiB"),
        (size(24 << 30), "24 GiB"),
        (size(26214 << 40), "26,214 TiB"),
        (duration(86400 * 12345), "12,345 d"),
    ],
)
def test_numbers_are_written_for_people(written, expected):
    assert written == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [(None, "-"), (True, "yes"), (False, "no"), (1213, "1,213"), (0.123456, "0.1235"),
     (3e6, "3,000,000"), (math.nan, "-"), ("fgd", "fgd")],
)  # fmt: skip
def test_cells_are_written_by_their_type(value, expected):
    assert text_of(value) == expected
