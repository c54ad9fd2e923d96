import numpy as np
import pytest

from podium.online.cell import JobRuns
from podium.online.forecast import PlainForecasts, forecast
from podium.online.parameters import Parameters
from podium.online.posterior import Posterior

GPUS = 5


def seen(jobs=20, seed=1100):
    """Lets job types run alone on some GPU types, and fits what is known of all of them."""
    rng = np.random.default_rng(seed)
    posterior, runs = Posterior(Parameters()), []
    size = len(Parameters().features)
    for job in range(jobs):
        runs.append(JobRuns(size))
        for gpu in rng.permutation(GPUS)[: rng.integers(1, GPUS)].tolist():
            for log_s in rng.normal(rng.normal(4.0, 1.0), 0.2, size=6).tolist():
                runs[job].add(gpu, (log_s, (None,) * size, ()))
        posterior.update(runs, job, GPUS, 0)
    return posterior, posterior._fitted()


def test_plain_job_types_are_forecast_as_all_others_are():
    posterior, known = seen()
    plain = PlainForecasts(known.columns)
    for job, evidence in enumerate(posterior._evidence):
        found, expected = plain.of(job, evidence, known), forecast(evidence, (), (), known)
        np.testing.assert_allclose(found.means, expected.means, rtol=1e-10)
        np.testing.assert_allclose(found.variances, expected.variances, rtol=1e-8)


def test_a_forecast_does_not_depend_on_who_else_is_asked_for():
    posterior, known = seen()
    together = PlainForecasts(known.columns)
    for _, other in (seen(seed=1101), seen(seed=1102)):  # what is known changes in between
        for job, evidence in reversed(list(enumerate(posterior._evidence))):
            together.of(job, evidence, other)
    for job, evidence in enumerate(posterior._evidence):
        found = together.of(job, evidence, known)
        alone = PlainForecasts(known.columns).of(job, evidence, known)
        np.testing.assert_array_equal(found.means, alone.means)
        np.testing.assert_array_equal(found.variances, alone.variances)


def test_a_forecast_is_of_the_evidence_that_is_given():
    posterior, known = seen()
    first, second = posterior._evidence[:2]
    plain = PlainForecasts(known.columns)
    before = plain.of(0, first, known)
    kept = before.means.copy()
    plain.of(1, second, known)
    changed = plain.of(0, second, known)
    np.testing.assert_array_equal(changed.means, plain.of(1, second, known).means)
    assert not np.array_equal(kept, changed.means)


@pytest.mark.parametrize("most", [1, 3])
def test_few_parts_are_kept_where_there_is_little_room(monkeypatch, most):
    posterior, known = seen()
    entries = (known.columns.gpus + 1) * known.columns.width
    monkeypatch.setattr("podium.online.forecast._MOST_ENTRIES", most * entries)
    few, many = PlainForecasts(known.columns), {}
    for _ in range(2):
        for job, evidence in enumerate(posterior._evidence):
            many[job] = few.of(job, evidence, known)
            assert len(few._slots) <= most
    for job, evidence in enumerate(posterior._evidence):
        alone = PlainForecasts(known.columns).of(job, evidence, known)
        np.testing.assert_array_equal(many[job].means, alone.means)
