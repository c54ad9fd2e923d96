"""Trials of nets: figures are those of evaluation, whoever runs them."""

import numpy as np
import pytest

from podium.evaluation.measures import measure_case
from podium.model.workload import gpu_demand
from podium.policies import load
from podium.rl.mlp.algorithm import EvolutionSection, WorkloadSection
from podium.rl.mlp.parameters import arrays_of, first_arrays, flat, scales
from podium.rl.mlp.trials import (
    AT_100,
    AT_130,
    LOADS,
    Trials,
    allocations,
    inflation_case,
)
from podium.rl.mlp.worth import training_cases, training_seeds, worth_of
from podium.sim.execution import execute
from support.traces import originals

UNITS = 8


def vectors(count):
    rng = np.random.default_rng(5)
    start = flat(first_arrays(UNITS, rng))
    return [start + 0.3 * rng.normal(size=len(start)) for _ in range(count)]


def test_weights_are_the_same_as_a_vector_and_as_arrays():
    (vector,) = vectors(1)
    assert np.array_equal(flat(arrays_of(vector, UNITS)), vector)
    assert scales(arrays_of(vector, UNITS)).shape == vector.shape
    assert (scales(arrays_of(vector, UNITS)) > 0).all()


def test_allocation_is_what_evaluation_measures():
    result = execute(inflation_case("openb-share-heavy", 24, 1003).plan(load("fgd")))
    expected = measure_case(result)
    found = allocations(result)
    assert found[AT_100] == expected["allocation_100"]
    assert found[AT_130] == expected["allocation_130"]
    placed = np.cumsum(np.where(result.is_placed, gpu_demand(result.pods), 0))
    asked = np.cumsum(gpu_demand(result.pods)) / result.plan.cluster.gpu_milli_total
    for load_, percent in zip(LOADS, found, strict=True):
        last = np.flatnonzero(asked <= load_)[-1]
        assert percent == pytest.approx(100 * placed[last] / result.plan.cluster.gpu_milli_total)


def test_two_processes_find_what_one_does():
    cases = [inflation_case(name, 16, 1001) for name in ("openb", "openb-model-bound")]
    nets, found = [*vectors(3), "fgd"], []
    for workers in (1, 2):
        trials = Trials(UNITS, workers)
        found.append(trials.run(nets, cases))
        trials.close()
    assert found[0].shape == (4, 2, len(LOADS))
    assert np.array_equal(*found)


def test_a_policy_by_name_is_run_once_on_each_case():
    trials, cases = Trials(UNITS, 1), [inflation_case("openb", 16, 1001)]
    first = trials.run(["fgd"], cases)
    trials.close()  # what is known needs nobody to run it
    assert np.array_equal(trials.run(["fgd"], cases), first)


def curve(at_90=90.0, at_100=90.0, at_130=95.0):
    """Lists the percent of GPUs in use at each load."""
    return [80.0, 85.0, at_90, 90.0, at_100, at_130]


@pytest.mark.parametrize("load", ["at_90", "at_100"])
def test_a_net_below_the_floor_at_any_load_up_to_100_percent_is_worth_less(load):
    rule = EvolutionSection(floor_margin=0.0, floor_weight=2.0, weight_below=0.0)
    floor = np.array([curve(at_130=91.0), curve(at_130=81.0)])
    as_good = [curve(at_130=95.0), curve(at_130=85.0)]
    # What is above the floor on one trace does not make up for what is below it on another.
    mixed = [curve(at_130=95.0, **{load: 91.0}), curve(at_130=85.0, **{load: 89.0})]
    assert worth_of(np.array([as_good, mixed]), floor, rule).tolist() == [90.0, 89.0]


def test_the_margin_counts_at_100_percent_where_there_is_room_above_the_floor():
    rule = EvolutionSection(floor_margin=0.5, floor_weight=2.0, weight_below=0.0)
    found = np.array([[curve()], [curve(at_100=90.5)]])
    assert worth_of(found, np.array([curve()]), rule).tolist() == [94.0, 95.0]


def test_all_nets_of_a_generation_meet_the_same_seeds_and_generations_take_turns():
    rule = EvolutionSection(seeds=3, seeds_at_once=2)
    assert [training_seeds(rule, i) for i in range(3)] == [
        [1000, 1001], [1002, 1000], [1001, 1002],
    ]  # fmt: skip


def test_each_trace_is_trained_on_and_some_seeds_have_perturbed_nodes():
    cases = training_cases(WorkloadSection(perturbed_every=3), 16, range(1000, 1006))
    assert len({case.trace for case in cases}) == 7
    assert sorted({case.seed for case in cases if case.is_perturbed}) == [1002, 1005]
    never = training_cases(WorkloadSection(("openb",), perturbed_every=0), 16, range(1000, 1006))
    assert [(case.trace, case.is_perturbed) for case in never] == 6 * [("openb", False)]


@pytest.mark.openb
def test_a_net_may_be_trained_on_a_file():
    name = str(originals() / "openb_pod_list_multigpu50.csv")
    (case,) = training_cases(WorkloadSection((name,), cluster="openb"), 12, [1000])
    result = execute(case.plan(load("fgd")))
    assert len(result.plan.cluster) == 12
    assert gpu_demand(result.pods).sum() >= 1.29 * result.plan.cluster.gpu_milli_total


def test_no_seed_that_is_held_out_is_trained_on():
    with pytest.raises(Exception, match="held out"):
        training_cases(WorkloadSection(), 16, [2000])


def test_stages_follow_each_other_and_the_last_goes_on():
    rule = EvolutionSection(nodes=(16, 32, 64), generations=(2, 3))
    assert [rule.stage(i) for i in range(7)] == [0, 0, 1, 1, 1, 2, 2]
