import math

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from podium.online import Observation, Parameters
from podium.online.runtime import RuntimeModel
from podium.online.spread import MOST_JOB_TYPES, SPREADS
from support.runs_observed import drawn

PRIOR = Parameters().prior


def model_of(observations):
    model = RuntimeModel(Parameters())
    for each in observations:
        model.observe(each)
    return model


def world(pair_spread, seed, jobs=10, gpus=5, runs=3):
    """Draws runs of every pair."""
    rng = np.random.default_rng(seed)
    log_s = (
        rng.normal(4.0, 1.0, (jobs, 1))
        + rng.normal(0.0, 0.5, (1, gpus))
        + rng.normal(0.0, pair_spread, (jobs, gpus))
    )
    return [
        Observation(f"j{job}", f"g{gpu}", math.exp(log_s[job, gpu] + rng.normal(0.0, 0.2)))
        for job in range(jobs)
        for gpu in range(gpus)
        for _ in range(runs)
    ]


def log_likelihood(seen, noise, pair_spread):
    """Weighs all runs at once, with the covariance that the effects give them."""
    same = {
        name: np.equal.outer(*[[getattr(each, name) for each in seen]] * 2)
        for name in ("job_type", "gpu_type")
    }
    covariance = (
        PRIOR.level_spread**2
        + PRIOR.job_spread**2 * same["job_type"]
        + PRIOR.gpu_spread**2 * same["gpu_type"]
        + pair_spread**2 * (same["job_type"] & same["gpu_type"])
        + np.diag([noise[each.job_type] for each in seen])
    )
    above = [math.log(each.runtime_s) - Parameters().level for each in seen]
    return multivariate_normal(cov=covariance).logpdf(above)


@pytest.mark.parametrize("seed", range(1000, 1008))
def test_the_spread_is_the_likeliest_of_all_runs_taken_together(seed):
    seen = drawn(seed, count=50, jobs=6)
    model = model_of(seen)
    noise = {name: model.noise_variance(name) for name in model.job_types}
    doubt = np.log(SPREADS / PRIOR.pair_spread) / PRIOR.pair_spread_doubt
    likely = [log_likelihood(seen, noise, spread) for spread in SPREADS] - 0.5 * doubt**2
    assert model.pair_spread == SPREADS[np.argmax(likely)]


@pytest.mark.parametrize("spread", SPREADS)
def test_a_spread_is_found_again(spread):
    found = np.array([model_of(world(spread, seed)).pair_spread for seed in (1000, 1001, 1002)])
    places = np.searchsorted(SPREADS, [*found, spread])
    assert abs(places[:-1] - places[-1]).max() <= 1
    assert spread in found


def test_a_new_job_type_is_trusted_to_be_like_others_where_others_are_alike():
    narrow, wide = (
        model_of([*world(spread, 1003), *[Observation("new", "g0", 50.0)] * 5])
        for spread in (0.15, 1.2)
    )
    assert (
        narrow.estimates("new", ["g1"], {})[0].log_variance
        < 0.2 * wide.estimates("new", ["g1"], {})[0].log_variance
    )


def test_before_data_the_spread_is_the_one_that_is_expected():
    assert RuntimeModel(Parameters()).pair_spread == PRIOR.pair_spread


def test_more_job_types_than_are_looked_at_change_no_spread():
    seen = world(0.3, 1004, jobs=MOST_JOB_TYPES)
    model = model_of(seen)
    before = model.pair_spread
    for each in world(1.8, 1005, jobs=30):
        model.observe(Observation(f"late-{each.job_type}", each.gpu_type, each.runtime_s))
    assert model.pair_spread == before == 0.3
