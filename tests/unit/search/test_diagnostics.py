import pytest

from podium.search.diagnostics import diagnose
from podium.search.measurement import FIGURES


def test_every_case_has_a_line_with_its_distance_from_fgd():
    told = diagnose(
        ["one", "two"],
        [{"allocation_130": 95.5}, {"wait_mean_s": 61.25, "queue_busy": 40.0}],
        [{"allocation_130": 95.0}, {"wait_mean_s": 70.0, "queue_busy": 41.0}],
    )
    assert told == (
        "one: GPUs allocated when 130 % were asked for 95.50 % (+0.50 against fgd)\n"
        "two: mean waiting 61.25 s (-8.75 against fgd); "
        "queue busy 40.00 % (-1.00 against fgd)"
    )


@pytest.mark.parametrize("protocol", FIGURES)
def test_every_figure_has_its_unit(protocol):
    values = dict.fromkeys(FIGURES[protocol], 1.0)
    told = diagnose(["case"], [values], [values])
    assert told.count("(+0.00 against fgd)") == len(values)
    assert "_" not in told


def test_a_figure_that_fgd_lacks_is_left_out():
    assert diagnose(["case"], [{"a": 1.0, "b": 2.0}], [{"b": 1.0}]) == (
        "case: b 2.00 % (+1.00 against fgd)"
    )


def test_cases_without_a_name_are_a_mistake():
    with pytest.raises(ValueError, match="zip"):
        diagnose([], [{}], [{}])
