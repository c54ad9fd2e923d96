from types import SimpleNamespace

import numpy as np
import pytest

from podium.online.posterior import BLOCK, Totals


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
