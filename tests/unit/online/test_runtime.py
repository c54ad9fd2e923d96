import math
from dataclasses import replace

import numpy as np
import pytest

from podium.errors import UsageError
from podium.online import Observation, Parameters, columns, posterior
from podium.online import runtime as room
from podium.online.runtime import RuntimeModel
from support.runs_observed import SlowModel, drawn

PARAMETERS = Parameters()


def model_of(observations, parameters=PARAMETERS):
    model = RuntimeModel(parameters)
    for each in observations:
        model.observe(each)
    return model


def one(model, job_type, gpu_type, features=None, beside=()):
    return model.estimates(job_type, [gpu_type], features or {}, beside)[0]


def noise(model, job_type):
    return math.sqrt(model.noise(job_type).variance[0])


COMPANIES = ((), ("j1",), ("j0", "j4", "j4"), ("never seen", "j2"))


@pytest.mark.parametrize("beside", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("with_features", [False, True])
@pytest.mark.parametrize("seed", range(1000, 1003))
def test_the_posterior_is_that_of_one_regression_over_all_effects(
    seed, with_features, missing, beside
):
    missing *= with_features
    seen = drawn(seed, 40, with_features=with_features, missing=missing, beside=beside)
    model = model_of(seen)
    slow = SlowModel(seen, PARAMETERS, model)
    features = {"batch_size": 20.0, "gpu_mem_gb": 11.0} if with_features else {}
    for job_type in ("j0", "j1", "j2", "never seen"):
        for gpu_type in ("g0", "g1", "g2", "g3", "never seen"):
            for company in COMPANIES:
                found = one(model, job_type, gpu_type, features, company)
                mean, variance = slow.predict(job_type, gpu_type, features, company)
                assert found.log_mean + found.added == pytest.approx(mean, rel=1e-8, abs=1e-8)
                assert found.whole_variance == pytest.approx(variance, rel=1e-6)


def test_many_job_types_and_gpu_types_leave_the_posterior_exact():
    seen = drawn(7, count=300, jobs=40, gpus=21, beside=0.3)
    model = model_of(seen)
    slow = SlowModel(seen, PARAMETERS, model)
    for number in range(21):
        found = one(model, "j3", f"g{number}")
        assert found.log_mean == pytest.approx(slow.predict("j3", f"g{number}", {})[0], rel=1e-8)


def test_more_disturbing_job_types_than_have_an_effect_in_common_are_learned_for_each_pair(
    monkeypatch,
):
    rng = np.random.default_rng(3)
    monkeypatch.setattr(columns, "MOST_DISTURBING", 1)
    monkeypatch.setattr(posterior, "MOST_DISTURBING", 1)
    model = RuntimeModel(PARAMETERS)
    for _ in range(60):
        for beside, slowdown in (((), 1.0), (("a",), 1.5), (("b",), 3.0)):
            runtime_s = 10.0 * slowdown * math.exp(rng.normal(0.0, 0.1))
            model.observe(Observation("j", "g", runtime_s, {}, beside))
    assert one(model, "j", "g", beside=("a",)).slowdown == pytest.approx(0.5, rel=0.2)
    assert one(model, "j", "g", beside=("b",)).slowdown == pytest.approx(2.0, rel=0.1)


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
    assert noise(model, "calm") == pytest.approx(0.05, rel=0.15)
    assert noise(model, "wild") == pytest.approx(0.8, rel=0.1)
    assert 0.05 < noise(model, "never seen") < 0.8


def test_a_new_job_type_is_expected_to_be_as_noisy_as_the_others():
    rng = np.random.default_rng(1003)
    model = RuntimeModel(PARAMETERS)
    for number in range(300):
        runtime_s = math.exp(rng.normal(2.0, 0.5))
        model.observe(Observation(f"j{number % 5}", "g", runtime_s))
    model.observe(Observation("new", "g", 10.0))
    assert noise(model, "new") == pytest.approx(0.5, rel=0.2)


@pytest.mark.parametrize("factor", [1000.0, 60.0, 1 / 60.0])
def test_one_run_in_the_wrong_unit_moves_next_to_nothing(factor):
    rng = np.random.default_rng(1004)
    runs = [
        Observation("j", gpu_type, 100.0 * math.exp(rng.normal(0.0, 0.1)))
        for gpu_type in ("g", "h")
        for _ in range(30)
    ]
    model = model_of(runs)
    before = model.estimates("j", ["g", "h"], {})
    model.observe(Observation("j", "g", 100.0 * factor))
    for old, new in zip(before, model.estimates("j", ["g", "h"], {}), strict=True):
        assert new.mu == pytest.approx(old.mu, rel=0.03)
        assert new.sigma < 1.5 * old.sigma


def test_a_first_run_in_the_wrong_unit_is_not_believed_where_others_contradict():
    model = model_of([Observation("j", f"g{number % 3}", 100.0) for number in range(30)])
    expected = one(model, "j", "new").log_mean
    model.observe(Observation("j", "new", 100_000.0))
    assert one(model, "j", "new").log_mean == pytest.approx(expected, abs=1.0)


def test_runs_of_two_sizes_are_no_mistakes():
    model = model_of([Observation("j", "g", s) for s in (10.0, 1000.0)] * 10)
    assert math.exp(one(model, "j", "g").log_mean) == pytest.approx(100.0, rel=0.2)


@pytest.mark.parametrize("runtime_s", [0.004, 73.4, 90_000.0])
def test_one_observation_sets_the_scale_of_pairs_that_were_never_seen(runtime_s):
    model = model_of([Observation("train-bert", "A100", runtime_s)])
    seen, unseen = model.estimates("train-bert", ["A100", "L4"], {})
    assert seen.log_mean == pytest.approx(math.log(runtime_s), abs=0.1)
    assert unseen.mu > seen.mu
    assert unseen.log_mean == pytest.approx(seen.log_mean, abs=0.2)


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
    assert noise(model, "j") == pytest.approx(0.1, rel=0.2)


def test_a_feature_that_is_missing_at_random_leaves_its_weight_as_it_is():
    rng = np.random.default_rng(1005)
    model = RuntimeModel(PARAMETERS)
    for number in range(300):
        size = float(rng.integers(2, 200))
        runtime_s = (1.0 + size) ** 0.8 * math.exp(rng.normal(0.0, 0.2))
        features = {"batch_size": size} if number % 10 >= 3 else {}
        model.observe(Observation("j", "g", runtime_s, features))
    for size in (7.0, 127.0):
        found = one(model, "j", "g", {"batch_size": size})
        assert found.log_mean == pytest.approx(0.8 * math.log1p(size), abs=0.15)
    assert noise(model, "j") == pytest.approx(0.2, rel=0.2)
    without = one(model, "j", "g")
    assert without.noise_variance > 4.0 * found.noise_variance


def test_an_unseen_job_type_that_gives_no_features_is_taken_for_a_usual_one():
    rng = np.random.default_rng(1006)
    model = RuntimeModel(PARAMETERS)
    for number in range(200):
        size = 60.0 + rng.integers(8)
        runtime_s = 3.0 * (1.0 + size) * math.exp(rng.normal(0.0, 0.2))
        model.observe(Observation(f"j{number % 10}", "g", runtime_s, {"batch_size": size}))
    assert math.exp(one(model, "new", "g").log_mean) == pytest.approx(195.0, rel=0.3)


def test_a_feature_may_change_which_gpu_type_is_fastest():
    rng = np.random.default_rng(1007)
    model = RuntimeModel(PARAMETERS)
    for _ in range(50):
        for size in (8.0, 2000.0):
            for name, fixed, each in (("L4", 10.0, 0.10), ("A100", 25.0, 0.02)):
                runtime_s = (fixed + each * size) * math.exp(rng.normal(0.0, 0.1))
                model.observe(Observation("j", name, runtime_s, {"batch_size": size}))
    for size, fastest in ((8.0, "L4"), (2000.0, "A100")):
        found = model.estimates("j", ["L4", "A100"], {"batch_size": size})
        assert ("L4", "A100")[int(found[1].mu < found[0].mu)] == fastest


def test_a_feature_that_no_run_of_the_job_type_gave_changes_nothing():
    model = model_of([Observation("j", "g", 10.0)] * 50)
    assert one(model, "j", "g", {"batch_size": 64.0}) == one(model, "j", "g")


def test_a_request_without_features_is_taken_for_a_usual_run():
    model = model_of([Observation("j", "g", 10.0, {"batch_size": 16.0})] * 50)
    found = one(model, "j", "g")
    assert math.exp(found.log_mean) == pytest.approx(10.0, rel=0.02)
    assert found.sigma < 1.0


def test_what_is_forgotten_makes_room_for_what_changed():
    seen = [
        Observation("j", "g", typical_s * luck)
        for typical_s, count in ((10.0, 100), (12.0, 20))
        for luck in (0.8, 1.25) * count
    ]
    keeps, forgets = model_of(seen), model_of(seen, replace(PARAMETERS, forgetting=0.9))
    assert math.exp(one(keeps, "j", "g").log_mean) < 10.5
    assert math.exp(one(forgets, "j", "g").log_mean) == pytest.approx(12.0, rel=0.05)


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


@pytest.mark.parametrize("seed", range(1000, 1004))
def test_one_neighbour_slows_down_as_much_as_it_does_among_all(seed):
    model = model_of(drawn(seed, 80, jobs=5, beside=0.7))
    for job_type in model.job_types:
        for name, known in model.slowdowns(job_type).items():
            assert model.slowdown(job_type, name) == pytest.approx(known, rel=1e-9, abs=1e-12)


def test_runs_without_a_feature_compare_gpu_types_as_runs_with_it_do():
    rng = np.random.default_rng(1005)
    model = RuntimeModel(PARAMETERS)
    for number in range(120):
        size, gpu_type = math.exp(rng.normal(6.0, 0.5)), ("g", "h")[number % 2]
        runtime_s = (1.0 + size) * (2.0 if gpu_type == "h" else 1.0)
        job_type = f"j{number // 2 % 4}"
        model.observe(Observation(job_type, gpu_type, runtime_s, {"batch_size": size}))
    for _ in range(6):
        model.observe(Observation("new", "g", 400.0))
    on_g, on_h = (one(model, "new", gpu_type) for gpu_type in ("g", "h"))
    assert on_h.log_mean - on_g.log_mean == pytest.approx(math.log(2.0), abs=0.2)
