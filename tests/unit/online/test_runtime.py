import math
from dataclasses import replace

import numpy as np
import pytest

from podium.errors import UsageError
from podium.online import Observation, Parameters
from podium.online import runtime as room
from podium.online.runtime import RuntimeModel
from support.runs_observed import SlowModel, drawn

PARAMETERS = Parameters()


def model_of(observations, parameters=PARAMETERS):
    model = RuntimeModel(parameters)
    for each in observations:
        model.observe(each)
    return model


def slow_model(seen, model):
    noise = {name: model.noise_variance(name) for name in model.job_types}
    return SlowModel(seen, PARAMETERS, noise, model.pair_spread)


def one(model, job_type, gpu_type, features=None):
    return model.estimates(job_type, [gpu_type], features or {})[0]


@pytest.mark.parametrize("with_features", [False, True])
@pytest.mark.parametrize("seed", range(1000, 1005))
def test_the_posterior_is_that_of_one_regression_over_all_effects(seed, with_features):
    seen = drawn(seed, count=40, with_features=with_features)
    model = model_of(seen)
    slow = slow_model(seen, model)
    features = {"batch_size": 20.0, "gpu_mem_gb": 11.0} if with_features else {}
    for job_type in ("j0", "j1", "j2", "never seen"):
        for gpu_type in ("g0", "g1", "g2", "g3", "never seen"):
            found = one(model, job_type, gpu_type, features)
            mean, variance = slow.predict(job_type, gpu_type, features)
            assert found.log_mean == pytest.approx(mean, rel=1e-8, abs=1e-8)
            assert found.log_variance == pytest.approx(variance, rel=1e-6)


def test_many_job_types_and_gpu_types_leave_the_posterior_exact():
    seen = drawn(7, count=300, jobs=40, gpus=21)
    model = model_of(seen)
    slow = slow_model(seen, model)
    for number in range(21):
        found = one(model, "j3", f"g{number}")
        assert found.log_mean == pytest.approx(slow.predict("j3", f"g{number}", {})[0], rel=1e-8)


def test_uncertainty_shrinks_like_one_over_the_root_of_the_observations():
    rng = np.random.default_rng(1000)
    sigma = {}
    model = RuntimeModel(PARAMETERS)
    for count in range(1, 1601):
        model.observe(Observation("j", "g", 50.0 * math.exp(rng.normal(0.0, 0.2))))
        sigma[count] = one(model, "j", "g").sigma
    assert sigma[100] / sigma[1600] == pytest.approx(4.0, rel=0.15)
    assert sigma[1600] == pytest.approx(50.0 * 0.2 / 40.0, rel=0.1)
    assert one(model, "j", "g").mu == pytest.approx(50.0 * math.exp(0.02), rel=0.03)


def test_the_noise_of_runs_is_learned_for_each_job_type():
    rng = np.random.default_rng(1001)
    model = RuntimeModel(PARAMETERS)
    for _ in range(500):
        model.observe(Observation("calm", "g", math.exp(rng.normal(2.0, 0.05))))
        model.observe(Observation("wild", "g", math.exp(rng.normal(2.0, 0.8))))
    assert math.sqrt(model.noise_variance("calm")) == pytest.approx(0.05, rel=0.15)
    assert math.sqrt(model.noise_variance("wild")) == pytest.approx(0.8, rel=0.1)
    assert model.noise_variance("never seen") == pytest.approx(PARAMETERS.prior.noise**2)


@pytest.mark.parametrize("runtime_s", [0.004, 73.4, 90_000.0])
def test_one_observation_sets_the_scale_of_pairs_that_were_never_seen(runtime_s):
    model = model_of([Observation("train-bert", "A100", runtime_s)])
    seen, unseen = model.estimates("train-bert", ["A100", "L4"], {})
    assert seen.log_mean == pytest.approx(math.log(runtime_s), abs=0.1)
    assert unseen.mu > seen.mu
    assert unseen.log_mean == pytest.approx(seen.log_mean, abs=0.1)


def test_a_gpu_type_that_is_fast_for_others_is_expected_to_be_fast_for_a_new_job_type():
    seen = []
    for job in range(6):
        seen += [Observation(f"j{job}", "slow", 100.0 * (job + 1))] * 5
        seen += [Observation(f"j{job}", "fast", 25.0 * (job + 1))] * 5
    model = model_of([*seen, *[Observation("new", "slow", 8.0)] * 5])
    slow, fast = model.estimates("new", ["slow", "fast"], {})
    assert math.log(0.25) < fast.log_mean - slow.log_mean < math.log(0.5)
    assert fast.observations == 0


def test_features_carry_over_to_sizes_that_were_not_run():
    rng = np.random.default_rng(1002)
    model = RuntimeModel(PARAMETERS)
    for _ in range(200):
        size = float(rng.integers(8, 65))
        runtime_s = (1.0 + size) * math.exp(rng.normal(0.0, 0.1))
        model.observe(Observation("j", "g", runtime_s, {"batch_size": size}))
    found = one(model, "j", "g", {"batch_size": 127.0})
    assert math.exp(found.log_mean) == pytest.approx(128.0, rel=0.1)
    assert math.sqrt(model.noise_variance("j")) == pytest.approx(0.1, rel=0.2)


def test_a_feature_that_no_run_of_the_job_type_gave_changes_nothing():
    model = model_of([Observation("j", "g", 10.0)] * 50)
    assert one(model, "j", "g", {"batch_size": 64.0}) == one(model, "j", "g")


def test_a_request_without_features_is_taken_for_a_usual_run():
    model = model_of([Observation("j", "g", 10.0, {"batch_size": 16.0})] * 50)
    found = one(model, "j", "g")
    assert math.exp(found.log_mean) == pytest.approx(10.0, rel=0.02)
    assert found.sigma < 1.0


def test_what_is_forgotten_makes_room_for_what_changed():
    seen = [Observation("j", "g", 10.0)] * 200 + [Observation("j", "g", 40.0)] * 40
    keeps, forgets = model_of(seen), model_of(seen, replace(PARAMETERS, forgetting=0.9))
    assert one(keeps, "j", "g").mu < 20.0
    assert math.exp(one(forgets, "j", "g").log_mean) == pytest.approx(40.0, rel=0.1)


def test_a_pair_that_is_no_longer_run_becomes_uncertain_again():
    seen = [Observation("j", "old", 10.0)] * 50
    model = model_of(seen, replace(PARAMETERS, forgetting=0.9))
    before = one(model, "j", "old").sigma
    for _ in range(400):
        model.observe(Observation("j", "new", 10.0))
    assert one(model, "j", "old").sigma > 3.0 * before
    assert one(model, "j", "old").observations == 50


def test_models_that_forget_cannot_be_merged():
    model = RuntimeModel(replace(PARAMETERS, forgetting=0.9))
    with pytest.raises(UsageError, match="cannot be merged"):
        model.merge(RuntimeModel(PARAMETERS))


@pytest.mark.parametrize(("most", "kind"), [("MOST_JOB_TYPES", "job"), ("MOST_GPU_TYPES", "GPU")])
def test_there_is_a_limit_to_the_names_that_are_learned(monkeypatch, most, kind):
    model = model_of([Observation("j", "g", 10.0)])
    before = model.as_object()
    monkeypatch.setattr(room, most, 1)
    for take in (model.check, model.observe):
        with pytest.raises(UsageError, match=f"more than 1 {kind} types"):
            take(Observation("k", "h", 10.0))
    assert model.as_object() == before


def test_a_state_of_other_features_is_refused():
    state = model_of([Observation("j", "g", 10.0)]).as_object()
    with pytest.raises(UsageError, match="3 features, the settings have 1"):
        RuntimeModel.from_object(replace(PARAMETERS, features=("batch_size",)), state)


def test_before_any_observation_every_pair_is_alike_and_finite():
    found = RuntimeModel(PARAMETERS).estimates("j", ["a", "b"], {"batch_size": 8.0})
    assert found[0] == found[1]
    assert 0.0 < found[0].mu < 100.0
    assert math.isfinite(found[0].sigma)
