import pytest

from podium.evaluation.default_cases import (
    FIRST_KEEP,
    FIRST_NODES,
    KEEP,
    LARGE_NODES,
    NODES,
    ORDER,
    default_training,
)
from podium.evaluation.splits import SELECTION
from podium.traces.openb.families import FAMILIES


def test_packing_is_trained_on_every_family_at_200_nodes_or_more():
    training = default_training(["inflation"])
    first, second, third = training.stages
    sizes = [case.nodes for case in training.cases]
    assert set(ORDER) == {"openb", *FAMILIES}
    assert {case.trace for case in training.cases[second.first : second.stop]} == set(ORDER)
    assert {case.trace for case in training.cases[third.first : third.stop]} == set(ORDER)
    assert set(sizes[: first.stop]) == {FIRST_NODES}
    assert set(sizes[second.first : second.stop]) == {NODES}
    assert set(sizes[third.first :]) == {LARGE_NODES}
    assert (first.keep, second.keep, third.keep) == (FIRST_KEEP, KEEP, 1.0)
    assert NODES >= 200


@pytest.mark.parametrize("seeds", [1, 3])
def test_a_race_meets_different_families_first_and_no_case_twice(seeds):
    training = default_training(["inflation"], seeds)
    assert len({case.trace for case in training.cases[:2]}) == 2
    second = training.stages[1]
    around = training.cases[second.first : second.first + len(ORDER)]
    assert [case.trace for case in around] == list(ORDER)
    assert second.stop - second.first == seeds * len(ORDER)
    assert len({case.name for case in training.cases}) == len(training.cases)


@pytest.mark.parametrize("name", ORDER)
def test_a_case_has_pods_for_more_than_130_percent_without_repeating_any(name):
    case = next(case for case in default_training(["inflation"]).cases if case.trace == name)
    trace = case.read()
    asked = trace.workload.gpu_milli_total / trace.cluster.gpu_milli_total
    assert asked == pytest.approx(1.35, abs=0.05)


def test_as_many_seeds_as_can_be_asked_for_stay_below_those_of_selection():
    seeds = {case.seed for case in default_training(["inflation"], 890).cases}
    assert max(seeds) < SELECTION.start


def test_rules_that_need_other_cases_get_theirs_in_one_stage():
    mixed = default_training(["inflation", "replay"])
    assert len(mixed.stages) == 1
    assert {case.protocol for case in mixed.cases} == {"inflation", "replay"}
    assert {case.trace for case in mixed.cases} == {*ORDER, "openb:16"}
    assert {case.nodes for case in default_training(["holding"], 2).cases} == {128}
    assert len(default_training(["replay"], 3).cases) == 3
