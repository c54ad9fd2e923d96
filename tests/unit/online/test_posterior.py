from types import SimpleNamespace

import numpy as np
import pytest

from podium.online.cell import OTHERS, JobRuns
from podium.online.columns import MOST_DISTURBING
from podium.online.parameters import Parameters
from podium.online.posterior import BLOCK, Posterior, Totals


def evidence(rng, width=3):
    """Gives what a job type says about one or two of the columns."""
    index = rng.permutation(width)[: rng.integers(1, width)]
    precision, shift = rng.normal(size=(len(index), len(index))), rng.normal(size=len(index))
    return SimpleNamespace(index=index, precision=precision, shift=shift)


def dense(made, width=3):
    precision, shift = np.zeros((width, width)), np.zeros(width)
    precision[np.ix_(made.index, made.index)] = made.precision
    shift[made.index] = made.shift
    return precision, shift


@pytest.mark.parametrize("jobs", [0, 1, BLOCK, BLOCK + 1, 5 * BLOCK + 7])
def test_sums_are_those_of_the_latest_evidence_of_every_job_type(jobs):
    rng = np.random.default_rng(1000)
    totals, latest = Totals(3), {}
    for job in [*range(jobs), *rng.integers(max(jobs, 1), size=min(jobs, 50)).tolist()]:
        latest[job] = evidence(rng)
        totals.put(job, latest[job])
        if job % 17 == 0:
            totals.sums()
    precision, shift = totals.sums()
    expected = [dense(each) for each in latest.values()]
    np.testing.assert_allclose(precision, sum((each for each, _ in expected), np.zeros((3, 3))))
    np.testing.assert_allclose(shift, sum((each for _, each in expected), np.zeros(3)))


def test_the_sum_does_not_depend_on_what_was_there_before():
    rng = np.random.default_rng(1001)
    rows = [evidence(rng) for _ in range(200)]
    once, often = Totals(3), Totals(3)
    for job, row in enumerate(rows):
        once.put(job, row)
        often.put(job, evidence(rng))
        often.sums()
    for job in rng.permutation(200).tolist():
        often.put(job, rows[job])
        often.sums()
    for one, other in zip(once.sums(), often.sums(), strict=True):
        np.testing.assert_array_equal(one, other)


class Name(str):
    """Counts how often names are compared."""

    __slots__ = ()
    compared = 0

    def __lt__(self, other):
        Name.compared += 1
        return str.__lt__(self, other)


def met(posterior, runs, names):
    """Lets a job type with one neighbour come for each of the names."""
    before = Name.compared
    for name in names:
        runs.append(JobRuns(3, neighbours=[OTHERS, name]))
        posterior.update(runs, len(runs) - 1, 1, 0)
    return Name.compared - before


def test_the_first_names_of_all_neighbours_have_an_effect_in_common_in_whatever_order_they_come():
    names = [f"j{number:04}" for number in range(500)]
    for seed in range(5):
        posterior = Posterior(Parameters())
        met(posterior, [], np.random.default_rng(seed).permutation(names).tolist())
        assert posterior._wanted.disturbing == tuple(names[:MOST_DISTURBING])


def test_a_new_neighbour_costs_the_same_however_many_there_are():
    posterior, runs = Posterior(Parameters()), []
    names = [Name(f"j{number:04}") for number in range(1100)]
    met(posterior, runs, names[:100])
    few = met(posterior, runs, names[100:200])
    met(posterior, runs, names[200:1000])
    assert met(posterior, runs, names[1000:]) < 2 * few
