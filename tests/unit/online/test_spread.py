import itertools
import math

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from podium.online import Agent, Observation, Parameters, Request
from podium.online.runtime import RuntimeModel
from podium.online.spread import DOUBT, GPUS, JOBS, MOST_JOB_TYPES, PAIRS
from support.runs_observed import drawn

PRIOR = Parameters().prior


def model_of(observations):
    model = RuntimeModel(Parameters())
    for each in observations:
        model.observe(each)
    return model


def world(pair_spread, seed, jobs=10, gpus=5, runs=3, job_spread=1.0):
    """Draws runs of every pair."""
    rng = np.random.default_rng(seed)
    log_s = (
        rng.normal(4.0, job_spread, (jobs, 1))
        + rng.normal(0.0, 0.5, (1, gpus))
        + rng.normal(0.0, pair_spread, (jobs, gpus))
    )
    return [
        Observation(f"j{job}", f"g{gpu}", math.exp(log_s[job, gpu] + rng.normal(0.0, 0.2)))
        for job in range(jobs)
        for gpu in range(gpus)
        for _ in range(runs)
    ]


def log_likelihood(seen, noise, pair, job, gpu):
    """Weighs all runs at once, with the covariance that the effects give them."""
    same = {
        name: np.equal.outer(*[[getattr(each, name) for each in seen]] * 2)
        for name in ("job_type", "gpu_type")
    }
    covariance = (
        PRIOR.level_spread**2
        + job**2 * same["job_type"]
        + gpu**2 * same["gpu_type"]
        + pair**2 * (same["job_type"] & same["gpu_type"])
        + np.diag([noise[each.job_type] for each in seen])
    )
    above = [math.log(each.runtime_s) - Parameters().level for each in seen]
    return multivariate_normal(cov=covariance).logpdf(above)


def doubt(value, expected):
    return -0.5 * (math.log(value / expected) / DOUBT) ** 2


@pytest.mark.parametrize("seed", range(1000, 1008))
def test_spreads_are_the_likeliest_of_all_runs_taken_together(seed):
    seen = drawn(seed, count=50, jobs=6)
    model = model_of(seen)
    noise = {name: model.noise(name).variance[0] for name in model.job_types}
    pairs = [
        log_likelihood(seen, noise, pair, PRIOR.job_spread, PRIOR.gpu_spread)
        + doubt(pair, PRIOR.pair_spread)
        for pair in PAIRS
    ]
    pair = PAIRS[np.argmax(pairs)]
    both = {
        (job, gpu): log_likelihood(seen, noise, pair, job, gpu)
        + doubt(job, PRIOR.job_spread)
        + doubt(gpu, PRIOR.gpu_spread)
        for job, gpu in itertools.product(JOBS, GPUS)
    }
    found = model.spreads
    assert found.pair == pair
    assert (found.job, found.gpu) == max(both, key=both.get)


@pytest.mark.parametrize("spread", PAIRS[1:])
def test_a_spread_of_pairs_is_found_again(spread):
    found = np.array([model_of(world(spread, seed)).spreads.pair for seed in (1000, 1001, 1002)])
    places = np.searchsorted(PAIRS, [*found, spread])
    assert abs(places[:-1] - places[-1]).max() <= 1
    assert spread in found


@pytest.mark.parametrize("spread", [0.3, 1.4])
def test_a_spread_of_job_types_is_found_again(spread):
    found = [
        model_of(world(0.1, seed, jobs=30, runs=1, job_spread=spread)).spreads.job
        for seed in (1000, 1001, 1002)
    ]
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


def test_a_job_type_that_goes_against_the_trend_is_expected_to_do_so_elsewhere():
    seen = world(0.15, 1003)
    rng = np.random.default_rng(1)
    trend = {
        gpu: np.mean([math.log(each.runtime_s) for each in seen if each.gpu_type == gpu])
        for gpu in ("g0", "g1", "g2", "g3")
    }
    with_trend, against = (
        [
            Observation(name, gpu, math.exp(8.0 + sign * trend[gpu] + rng.normal(0.0, 0.1)))
            for gpu in ("g0", "g1", "g2", "g3")
            for _ in range(3)
        ]
        for name, sign in (("with", 1.0), ("against", -1.0))
    )
    model = model_of([*seen, *with_trend, *against])
    usual, odd = (model.estimates(name, ["g4"], {})[0] for name in ("with", "against"))
    assert odd.log_variance > 4.0 * usual.log_variance


def test_before_data_spreads_are_those_that_are_expected():
    found = RuntimeModel(Parameters()).spreads
    assert (found.pair, found.gpu) == (PRIOR.pair_spread, PRIOR.gpu_spread)


def test_more_job_types_than_are_looked_at_change_no_spread():
    seen = world(0.3, 1004, jobs=MOST_JOB_TYPES)
    model = model_of(seen)
    before = model.spreads
    for each in world(1.8, 1005, jobs=30):
        model.observe(Observation(f"late-{each.job_type}", each.gpu_type, each.runtime_s))
    assert model.spreads == before
    assert before.pair == 0.3


def test_a_long_job_type_does_not_make_a_gpu_type_slow_that_nobody_else_used():
    rng = np.random.default_rng(1000)
    agent = Agent()
    for number in range(8):
        level = 150.0 * math.exp(rng.normal(0.0, 0.7))
        for gpu, factor in (("a", 1.0), ("b", 1.5), ("c", 2.5)):
            seconds = level * factor * math.exp(rng.normal(0.0, 0.2))
            agent.replay([Observation(f"j{number}", gpu, seconds)] * 3)
    request = Request("j0", ("a", "b", "c", "new"))
    before = agent.candidates(request)
    agent.replay([Observation("long", "new", 36_000.0)] * 3)
    after = agent.candidates(request)
    assert after[3].mu < 2.0 * before[3].mu
    assert after[3].mean_interval_s[0] < after[0].mu
    # Of the GPU types that others used, it says as little as before.
    for one, other in zip(before[:3], after[:3], strict=True):
        assert other.mu == pytest.approx(one.mu, rel=0.1)
