"""Trials of nets: figures are those of evaluation, whoever runs them."""

import numpy as np
import pytest

from podium.evaluation.measures import measure_case
from podium.policies import load
from podium.rl.mlp.algorithm import EvolutionSection
from podium.rl.mlp.parameters import arrays_of, first_arrays, flat, scales
from podium.rl.mlp.trials import Trials, allocations, family_case
from podium.rl.mlp.worth import training_cases, training_seeds, worth_of
from podium.sim.execution import execute

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
    result = execute(family_case("openb-share-heavy", 24, 1003).plan(load("fgd")))
    expected = measure_case(result)
    assert allocations(result) == [expected["allocation_100"], expected["allocation_130"]]


def test_two_processes_find_what_one_does():
    cases = [family_case(name, 16, 1001) for name in ("openb", "openb-model-bound")]
    nets, found = [*vectors(3), "fgd"], []
    for workers in (1, 2):
        trials = Trials(UNITS, workers)
        found.append(trials.run(nets, cases))
        trials.close()
    assert found[0].shape == (4, 2, 2)
    assert np.array_equal(*found)


def test_a_policy_by_name_is_run_once_on_each_case():
    trials, cases = Trials(UNITS, 1), [family_case("openb", 16, 1001)]
    first = trials.run(["fgd"], cases)
    trials.close()  # what is known needs nobody to run it
    assert np.array_equal(trials.run(["fgd"], cases), first)


def test_a_net_below_the_floor_at_100_percent_is_worth_less():
    rule = EvolutionSection(floor_margin=0.0, floor_weight=2.0, weight_100=0.0)
    floor = np.array([[90.0, 91.0], [80.0, 81.0]])
    found = np.array([[[90.0, 95.0], [80.0, 85.0]], [[91.0, 95.0], [79.0, 85.0]]])
    assert worth_of(found, floor, rule).tolist() == [90.0, 89.0]


def test_all_nets_of_a_generation_meet_the_same_seeds_and_generations_take_turns():
    rule = EvolutionSection(seeds=3, seeds_at_once=2)
    assert [training_seeds(rule, i) for i in range(3)] == [
        [1000, 1001], [1002, 1000], [1001, 1002],
    ]  # fmt: skip
    assert len({case.trace for case in training_cases(16, [1000])}) == 6


def test_no_seed_that_is_held_out_is_trained_on():
    with pytest.raises(Exception, match="held out"):
        training_cases(16, [2000])


def test_stages_follow_each_other_and_the_last_goes_on():
    rule = EvolutionSection(nodes=(16, 32, 64), generations=(2, 3))
    assert [rule.stage(i) for i in range(7)] == [0, 0, 1, 1, 1, 2, 2]
