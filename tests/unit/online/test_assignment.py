import itertools
import math

import numpy as np
import pytest

from podium.errors import UsageError
from podium.online import assign_costs

MILLISECOND, DAY = 1e-3, 86_400.0


def instance(seed, jobs=40, columns=8, scale=1.0, spread=2.0):
    """Draws costs and capacities that hold all jobs, some columns without room."""
    rng = np.random.default_rng(seed)
    capacities = rng.integers(0, 2 * jobs // columns + 2, columns)
    capacities[0] += max(jobs - capacities.sum(), 0)
    return scale * np.exp(rng.normal(0.0, spread, (jobs, columns))), capacities.tolist()


def check(found, costs, capacities):
    assert (np.bincount(found.columns, minlength=len(capacities)) <= capacities).all()
    assert found.cost == pytest.approx(sum(costs[row, c] for row, c in enumerate(found.columns)))
    plan = np.array(found.plan)
    assert (plan >= 0.0).all()
    np.testing.assert_allclose(plan.sum(axis=1), 1.0, rtol=1e-9)
    assert (plan.sum(axis=0) <= np.array(capacities) + 1e-9).all()


@pytest.mark.parametrize("scale", [MILLISECOND, 1.0, DAY])
@pytest.mark.parametrize("spread", [0.01, 1.0, 4.0])
@pytest.mark.parametrize("seed", range(3))
def test_an_assignment_is_as_cheap_as_the_best_one(seed, spread, scale):
    optimize = pytest.importorskip("scipy.optimize", reason="needs SciPy for the optimum")
    costs, capacities = instance(seed, scale=scale, spread=spread)
    found = assign_costs(costs, capacities)
    check(found, costs, capacities)
    copies = np.repeat(costs, capacities, axis=1)
    assert found.cost <= copies[optimize.linear_sum_assignment(copies)].sum() * 1.01


@pytest.mark.parametrize("seed", range(20))
def test_no_other_assignment_of_a_few_jobs_is_cheaper(seed):
    costs, capacities = instance(seed, jobs=6, columns=3)
    found = assign_costs(costs, capacities)
    check(found, costs, capacities)
    rows = np.arange(len(costs))
    best = min(
        costs[rows, list(columns)].sum()
        for columns in itertools.product(range(3), repeat=len(costs))
        if (np.bincount(columns, minlength=3) <= capacities).all()
    )
    assert found.cost == pytest.approx(best)


def test_jobs_of_milliseconds_and_of_days_are_both_sent_to_their_best_column():
    costs = np.array([[MILLISECOND, 2 * MILLISECOND], [2 * DAY, DAY]] * 20)
    found = assign_costs(costs, [20, 20])
    check(found, costs, [20, 20])
    assert found.columns == (0, 1) * 20


@pytest.mark.parametrize("costs", [[[73.4, 300.0], [120.0, 80.0]], [[10.0, 100.0], [100.0, 10.0]]])
def test_costs_of_many_seconds_do_not_underflow(costs):
    found = assign_costs(np.array(costs), [1, 1])
    check(found, np.array(costs), [1, 1])
    assert found.columns == (0, 1)
    np.testing.assert_allclose(found.plan, np.eye(2), atol=1e-6)


@pytest.mark.parametrize("cost", [0.0, 5.0, -3.0, 1e300])
def test_equal_costs_fill_the_capacities(cost):
    costs = np.full((6, 3), cost)
    found = assign_costs(costs, [2, 2, 2])
    assert sorted(found.columns) == [0, 0, 1, 1, 2, 2]


@pytest.mark.parametrize("size", [1e-320, 1e-200, 1e250])
def test_costs_of_any_size_are_told_apart(size):
    found = assign_costs(np.array([[1.0, 9.0], [9.0, 1.0]]) * size, [1, 1])
    assert found.columns == (0, 1)


def test_no_jobs_need_no_capacity():
    found = assign_costs(np.zeros((0, 2)), [0, 0])
    assert found.as_object() == {"assignment": [], "cost": 0.0, "plan": []}


def test_a_column_that_is_closed_to_a_job_is_not_used():
    costs = np.array([[math.inf, 5.0], [1.0, 1.0], [1.0, 9.0]])
    assert assign_costs(costs, [2, 1]).columns == (1, 0, 0)


@pytest.mark.parametrize(
    ("costs", "capacities", "message"),
    [
        ([[1.0], [1.0]], [1], "2 jobs do not fit into a capacity of 1"),
        ([[1.0, 2.0]], [1], "do not match 1 capacities"),
        ([[math.nan, 2.0]], [1, 1], "not a number"),
        ([[-math.inf, 2.0]], [1, 1], "not a number"),
        ([[1.0, 2.0]], [3, -1], "a capacity is negative"),
        ([[math.inf, 2.0]], [3, 0], "job 0 may use no GPU type that has room"),
        ([[math.inf, 2.0], [math.inf, 1.0]], [3, 1], "not all jobs fit"),
    ],
)
def test_what_cannot_be_assigned_is_refused_with_the_reason(costs, capacities, message):
    with pytest.raises(UsageError, match=message) as caught:
        assign_costs(np.array(costs), capacities)
    assert caught.value.hint
