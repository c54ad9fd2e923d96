import platform

from podium.reports.machine import machine


def test_the_machine_is_told_in_one_line():
    described = machine()
    assert platform.python_version() in described
    assert "numba" in described
    assert "\n" not in described
