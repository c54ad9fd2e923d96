import pytest

from podium.evaluation.cases import TrainingSet
from podium.evaluation.default_cases import (
    FIRST_CASES,
    FIRST_KEEP,
    FULL_NODES,
    KEEP,
    NODES,
    ORDER,
    default_training,
)
from podium.evaluation.splits import SELECTION
from podium.traces.openb.families import FAMILIES


def test_packing_is_judged_on_every_family_at_full_size():
    training = default_training(["inflation"])
    first, second, third = training.stages
    sizes = [case.nodes for case in training.cases]
    # The six are those whose figures at full size are known.
    assert set(ORDER) == {"openb", *FAMILIES} - {"openb-multi-heavy"}
    assert {case.trace for case in training.cases[: second.stop]} == set(ORDER)
    assert {case.trace for case in training.counted} == set(ORDER)
    assert training.counted == training.cases[third.first :]
    assert set(sizes[: second.stop]) == {NODES}
    assert set(sizes[third.first :]) == {FULL_NODES}
    assert (first.stop, first.keep, second.keep, third.keep) == (FIRST_CASES, FIRST_KEEP, KEEP, 1)


def test_winners_are_chosen_and_validated_at_full_size_on_several_orders_that_nothing_trained_on():
    training = default_training(["inflation"])
    chosen, validated = training.selection(), training.held_out()
    assert {case.nodes for case in (*chosen.cases, *validated.cases)} == {FULL_NODES}
    assert len({case.seed for case in chosen.cases}) == 4
    assert len(chosen.cases) == 2 * len(training.counted) == 2 * len(validated.cases)


def test_a_set_that_is_judged_by_its_last_stage_is_read_as_it_was_written():
    training = default_training(["inflation"])
    written = training.as_object()
    assert TrainingSet.from_object(written) == training
    with pytest.raises(ValueError, match="is_judged_last is 'yes'"):
        TrainingSet.from_object({**written, "is_judged_last": "yes"})


@pytest.mark.parametrize("seeds", [1, 3])
def test_a_race_meets_different_families_first_and_no_case_twice(seeds):
    training = default_training(["inflation"], seeds)
    assert len({case.trace for case in training.cases[:2]}) == 2
    around = training.counted[: len(ORDER)]
    assert [case.trace for case in around] == list(ORDER)
    assert len(training.counted) == seeds * len(ORDER)
    assert len({(case.name, case.nodes) for case in training.cases}) == len(training.cases)


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
