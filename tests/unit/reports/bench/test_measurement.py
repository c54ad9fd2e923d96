import platform

import pytest

from podium.reports.bench.measurement import Measurement, machine


def throughput(value, reference=None):
    return Measurement("decisions", value, "decisions/s", 100.0, False, reference, "scan tier")


def seconds(value, reference=None):
    return Measurement("replay", value, "s", 0.5, True, reference, "python tier")


@pytest.mark.parametrize(
    ("measurement", "is_met"),
    [
        (throughput(100.0), True),
        (throughput(99.9), False),
        (seconds(0.5), True),
        (seconds(0.51), False),
    ],
)
def test_a_target_is_a_least_or_a_most(measurement, is_met):
    assert measurement.ok is is_met


def test_a_ratio_above_one_is_better_than_the_reference():
    assert throughput(300.0, 100.0).ratio == 3
    assert seconds(0.1, 0.3).ratio == pytest.approx(3)
    assert seconds(0.1).ratio is None


def test_a_measurement_has_the_promised_names():
    assert throughput(300.0, 100.0).as_object() == {
        "name": "decisions",
        "value": 300.0,
        "unit": "decisions/s",
        "target": 100.0,
        "ok": True,
        "reference": 100.0,
        "reference_name": "scan tier",
        "ratio": 3.0,
    }


def test_the_machine_is_told_in_one_line():
    described = machine()
    assert platform.python_version() in described
    assert "numba" in described
    assert "\n" not in described
