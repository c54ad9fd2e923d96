import numpy as np
import pytest

from podium.online.cell import JobRuns
from podium.online.oddness import PairSpreads, own_pair_spread
from podium.online.parameters import Parameters
from podium.online.posterior import Posterior


def seen(gpus, jobs=40, seed=1200):
    """Lets job types run alone; every third goes against the trend."""
    rng = np.random.default_rng(seed)
    posterior, runs = Posterior(Parameters()), []
    size = len(Parameters().features)
    trend = rng.normal(0.0, 0.5, size=gpus)
    for job in range(jobs):
        runs.append(JobRuns(size))
        level, odd = rng.normal(4.0, 1.0), 2.0 if job % 3 == 0 else 0.1
        for gpu in rng.permutation(gpus)[: rng.integers(1, gpus + 1)].tolist():
            mean = level + trend[gpu] + rng.normal(0.0, odd)
            for log_s in rng.normal(mean, 0.1, size=8).tolist():
                runs[job].add(gpu, (log_s, (None,) * size, ()))
        posterior.update(runs, job, gpus, 0)
    return posterior, posterior._fitted()


@pytest.mark.parametrize("gpus", [1, 2, 5, 8, 9, 30])
def test_the_spreads_of_many_job_types_are_those_of_each(gpus):
    posterior, known = seen(gpus)
    together = PairSpreads(known.columns)
    found, expected = [], []
    for job, (gram, noise) in enumerate(zip(posterior._grams, posterior._noises, strict=True)):
        found.append(together.of(job, posterior._evidence, known))
        expected.append(own_pair_spread(gram, noise, known.columns, (), known))
    assert found == expected
    assert gpus < 5 or max(found) > known.spreads.pair


def test_spreads_follow_what_is_known():
    posterior, known = seen(5)
    other, later = seen(5, seed=1201)
    together = PairSpreads(known.columns)
    jobs = range(len(posterior._evidence))

    def found(posterior, known, of=together):
        return [of.of(job, posterior._evidence, known) for job in jobs]

    first = found(posterior, known)
    assert found(other, later) == found(other, later, PairSpreads(known.columns)) != first
    assert found(posterior, known) == first
