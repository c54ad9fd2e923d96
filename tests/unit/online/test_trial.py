import pytest

from podium.online import Parameters
from podium.online.trial import LearningTrial, run_trial
from podium.online.world import WorldPlan


@pytest.mark.parametrize(
    ("jobs", "marks"),
    [
        (1, (1,)),
        (10, (10,)),
        (11, (10, 11)),
        (1000, (10, 50, 100, 200, 500, 1000)),
        (3000, (10, 50, 100, 200, 500, 1000, 2000, 3000)),
    ],
)
def test_marks_end_with_the_last_decision(jobs, marks):
    assert LearningTrial(jobs=jobs).marks == marks


def test_a_single_job_is_forced_and_gives_figures():
    found = run_trial(LearningTrial(WorldPlan(neighbour_share=1.0), jobs=1, seeds=(1000,)))
    assert found["ways"]["online"]["forced"] == 1.0
    assert found["ways"]["online"]["regret"] == found["ways"]["online"]["regret_so_far"]
    assert [each["observations"] for each in found["pairs"]] == [0] * len(found["pairs"])
    assert [each["jobs"] for each in found["slowdowns"]] == [1]


def test_what_is_learned_is_set_beside_what_was_hidden():
    plan = WorldPlan(job_types=2, gpu_types=2, noise=0.05, neighbour_share=0.5, disturbing_share=1)
    found = run_trial(LearningTrial(plan, jobs=300, seeds=(1000,)))
    best = [each for each in found["pairs"] if each["observations"] > 30]
    assert best
    for each in best:
        assert each["mu_s"] == pytest.approx(each["true_s"], rel=0.05)
    for each in found["slowdowns"]:
        assert each["true_slowdown"] == 0.5
        assert each["slowdown"] == pytest.approx(0.5, rel=0.1)


def test_one_gpu_type_leaves_nothing_to_regret():
    found = run_trial(LearningTrial(WorldPlan(gpu_types=1), jobs=30, seeds=(1000,)))
    assert all(figures["mean_regret"] == 0.0 for figures in found["ways"].values())
    assert len(found["pairs"]) == 4


def test_the_cap_is_that_of_the_parameters():
    parameters = Parameters(exploration_cap=0.1)
    found = run_trial(LearningTrial(jobs=200, seeds=(1000,), parameters=parameters))
    assert found["exploration_cap"] == 0.1
    for way in ("online", "capped-oracle"):
        assert 0.0 < found["ways"][way]["exploration"] <= 0.1


def test_every_course_that_is_played_is_counted():
    counted = []
    run_trial(LearningTrial(jobs=5, seeds=(1000, 1001)), lambda: counted.append(1))
    assert len(counted) == 10
