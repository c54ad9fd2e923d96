import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from podium.errors import UsageError
from podium.online import assign_costs, transport_plan

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
    plan = transport_plan(costs, capacities)
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
    best = copies[optimize.linear_sum_assignment(copies)].sum()
    assert found.cost == pytest.approx(best, rel=1e-12)


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


@pytest.mark.parametrize("mark", [1e9, 1e12, 1e15, math.inf])
@pytest.mark.parametrize(("jobs", "columns"), [(20, 4), (60, 10)])
@pytest.mark.parametrize("seed", range(3))
def test_a_huge_cost_marks_what_nobody_should_choose(seed, jobs, columns, mark):
    optimize = pytest.importorskip("scipy.optimize", reason="needs SciPy for the optimum")
    rng = np.random.default_rng(seed)
    costs = rng.uniform(10.0, 100.0, (jobs, columns))
    is_marked = rng.random(costs.shape) < 0.4
    is_marked[np.arange(jobs), np.arange(jobs) % columns] = False  # so that there is a way
    capacities = [jobs // columns] * columns
    found = assign_costs(np.where(is_marked, mark, costs), capacities)
    check(found, np.where(is_marked, mark, costs), capacities)
    copies = np.repeat(np.where(is_marked, 1e6, costs), capacities, axis=1)
    best = copies[optimize.linear_sum_assignment(copies)].sum()
    assert found.cost == pytest.approx(best, rel=1e-12)


def cheapest(costs, capacities):
    """Finds the lowest total by trying everything, in exact numbers."""
    exact = [[Fraction(each) for each in row] for row in costs.tolist()]
    return min(
        sum((exact[row][column] for row, column in enumerate(columns)), Fraction(0))
        for columns in itertools.product(range(costs.shape[1]), repeat=len(costs))
        if (np.bincount(columns, minlength=costs.shape[1]) <= capacities).all()
    )


@pytest.mark.parametrize("seed", range(40))
def test_costs_of_fifteen_orders_are_assigned_as_cheaply_as_can_be(seed):
    rng = np.random.default_rng(seed)
    jobs, columns = int(rng.integers(1, 7)), int(rng.integers(1, 4))
    costs = 10.0 ** rng.uniform(0.0, 15.0, (jobs, columns))
    capacities = rng.integers(0, 4, columns)
    capacities[0] += max(jobs - capacities.sum(), 0)
    found = assign_costs(costs, capacities.tolist())
    check(found, costs, capacities)
    assert found.cost == pytest.approx(float(cheapest(costs, capacities)), rel=1e-12)


def test_jobs_that_no_price_keeps_out_leave_the_others_their_best_places():
    # Nobody wants the first job; the others differ by seconds all the same.
    costs = np.array([[1e15, 1e15 + 8.0], [10.0, 30.0], [11.0, 20.0], [12.0, 40.0]])
    assert assign_costs(costs, [2, 2]).columns == (1, 0, 1, 0)


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
    np.testing.assert_allclose(transport_plan(np.array(costs), [1, 1]), np.eye(2), atol=1e-6)


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
    assert found.as_object() == {"assignment": [], "cost": 0.0}
    assert transport_plan(np.zeros((0, 2)), [0, 0]).shape == (0, 2)


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
