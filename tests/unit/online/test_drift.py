import json
import math

import numpy as np
import pytest

from podium.online import Agent, Observation, Parameters
from podium.online.runtime import RuntimeModel

JOBS = [f"j{number}" for number in range(6)]


def runs(rng, factor, count, gpu_types=("g", "h"), job_types=JOBS):
    return [
        Observation(job, gpu, 100.0 * factor.get(gpu, 1.0) * math.exp(rng.normal(0.0, 0.2)))
        for _ in range(count)
        for job in job_types
        for gpu in gpu_types
    ]


def learned(seen):
    model = RuntimeModel(Parameters())
    for each in seen:
        model.observe(each)
    return model


def runtime_s(model, job_type, gpu_type):
    return model.estimates(job_type, [gpu_type], {})[0].mu


@pytest.mark.parametrize("factor", [2.0, 0.5])
def test_a_change_of_a_gpu_type_is_noticed_for_job_types_that_have_not_run_there_since(factor):
    rng = np.random.default_rng(1000)
    model = learned(runs(rng, {}, 20))
    for each in runs(rng, {"g": factor}, 4, ("g",), JOBS[:4]):
        model.observe(each)
    assert model.changes
    for job_type in JOBS:
        assert runtime_s(model, job_type, "g") == pytest.approx(100.0 * factor, rel=0.25)
        assert runtime_s(model, job_type, "h") == pytest.approx(100.0, rel=0.15)


def test_a_change_of_a_pair_is_forgotten_for_that_pair_alone():
    rng = np.random.default_rng(1001)
    model = learned(runs(rng, {}, 20))
    for each in runs(rng, {"g": 3.0}, 6, ("g",), JOBS[:1]):
        model.observe(each)
    assert model.changes == 1
    assert runtime_s(model, JOBS[0], "g") == pytest.approx(300.0, rel=0.25)
    for job_type in JOBS[1:]:
        assert runtime_s(model, job_type, "g") == pytest.approx(100.0, rel=0.15)


@pytest.mark.parametrize("seed", range(1000, 1005))
def test_noise_and_single_mistakes_are_no_change(seed):
    rng = np.random.default_rng(seed)
    seen = runs(rng, {}, 200)
    for place in range(100, len(seen), 150):
        each = seen[place]
        seen[place] = Observation(each.job_type, each.gpu_type, 1000.0 * each.runtime_s)
    assert learned(seen).changes == 0


def test_what_is_suspected_survives_a_restart():
    rng = np.random.default_rng(1002)
    agent = Agent()
    agent.replay(runs(rng, {}, 20))
    later = runs(rng, {"g": 2.0}, 4, ("g",), JOBS[:4])
    agent.replay(later[:6])
    again = Agent.from_object(Parameters(), json.loads(json.dumps(agent.as_object())))
    for each in (agent, again):
        each.replay(later[6:])
    assert again.figures().changes == agent.figures().changes > 0
    assert again.as_object() == agent.as_object()


def test_another_company_or_other_features_are_no_change():
    rng = np.random.default_rng(1003)
    model = RuntimeModel(Parameters())
    for beside, size, factor in (((), 8, 1.0), (("c",), 8, 3.0), ((), 64, 5.0)):
        for _ in range(40):
            seconds = 100.0 * factor * math.exp(rng.normal(0.0, 0.2))
            model.observe(Observation("j", "g", seconds, {"batch_size": size}, beside))
    assert model.changes == 0


def varied(rng, factor, count, *, beside=False):
    """Returns runs of which no two are alike: sizes vary, or neighbours that slow jobs down."""
    found = []
    for _ in range(count):
        for job in JOBS:
            for gpu in ("g", "h"):
                size = float(rng.lognormal(3.0, 1.0))
                names = tuple(map(str, rng.choice(JOBS, rng.integers(1, 4)))) if beside else ()
                slower = math.prod(1.0 + 0.1 * JOBS.index(name) for name in names)
                usual_s = 100.0 * slower if beside else 10.0 * (1.0 + size) ** 0.7
                seconds = factor.get(gpu, 1.0) * usual_s * math.exp(rng.normal(0.0, 0.2))
                features = {} if beside else {"batch_size": size}
                found.append(Observation(job, gpu, seconds, features, names))
    return found


@pytest.mark.parametrize("beside", [False, True])
def test_a_change_is_noticed_where_no_two_runs_are_alike(beside):
    rng = np.random.default_rng(1004)
    model = learned(varied(rng, {}, 30, beside=beside))
    assert model.changes == 0
    for each in varied(rng, {"g": 2.5}, 5, beside=beside):
        model.observe(each)
    assert model.changes
    (now,) = model.estimates("j0", ["g"], {} if beside else {"batch_size": 20.0})
    usual_s = 100.0 if beside else 10.0 * 21.0**0.7
    assert now.mu == pytest.approx(2.5 * usual_s, rel=0.4)


@pytest.mark.parametrize("seed", range(1000, 1003))
@pytest.mark.parametrize("beside", [False, True])
def test_sizes_and_neighbours_that_vary_are_no_change(seed, beside):
    rng = np.random.default_rng(seed)
    assert learned(varied(rng, {}, 150, beside=beside)).changes == 0
