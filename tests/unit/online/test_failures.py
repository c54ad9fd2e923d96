import pytest

from podium.errors import UsageError
from podium.online import Agent, Observation, Parameters, Request
from podium.online import failures as room
from podium.online.failures import Failures
from podium.online.floor import AGAIN

GPUS = ("a", "b", "c")


def failed(gpu_type, count=1, job_type="j"):
    return [Observation(job_type, gpu_type, 5.0, success=False)] * count


def done(gpu_type, runtime_s, count=5, job_type="j"):
    return [Observation(job_type, gpu_type, runtime_s)] * count


def test_where_nothing_failed_there_is_no_risk():
    failures = Failures()
    failures.observe(Observation("j", "a", 10.0))
    assert failures.risk("j", "a").chance == 0.0


def test_a_failed_run_teaches_how_often_and_nothing_about_run_times():
    agent = Agent()
    agent.replay(done("a", 10.0))
    before = agent.candidates(Request("j", GPUS))
    agent.replay(failed("a"))
    after = agent.candidates(Request("j", GPUS))
    assert [each.mu for each in after] == [each.mu for each in before]
    assert [each.observations for each in after] == [5, 0, 0]
    assert after[0].failures == 1
    assert after[0].success_chance < 0.9
    assert after[0].failure == pytest.approx(5.0 * (1 / after[0].success_chance - 1))
    assert after[0].greedy_cost == pytest.approx(before[0].greedy_cost + after[0].failure)


def test_a_chance_of_failure_is_pooled_over_job_types_and_gpu_types():
    failures = Failures()
    for job_type in "klm":
        for each in [*failed("a", 8, job_type), *done("b", 10.0, 8, job_type)]:
            failures.observe(each)
    assert failures.risk("new", "a").chance > 2.0 * failures.risk("new", "b").chance
    for each in [*failed("a", 8, "odd"), *failed("b", 8, "odd")]:
        failures.observe(each)
    assert failures.risk("odd", "new").chance > failures.risk("k", "new").chance


@pytest.mark.parametrize("known", [(), done("b", 50.0)])
def test_a_pair_that_always_fails_is_rarely_chosen_again_though_it_would_be_fastest(known):
    agent = Agent()
    for other in "klm":
        for gpu_type, runtime_s in (("a", 10.0), ("b", 50.0), ("c", 80.0)):
            agent.replay(done(gpu_type, runtime_s, job_type=other))
    agent.replay(known)
    choices = []
    for _ in range(300):
        answer = agent.score(Request("j", GPUS))
        choices.append(answer.chosen_gpu_type)
        is_failing = answer.chosen_gpu_type == "a"
        seconds = 10.0 if is_failing else 50.0
        agent.observe(Observation("j", answer.chosen_gpu_type, seconds, success=not is_failing))
    late = choices[100:]
    assert late.count("a") <= 200 / AGAIN + 1
    assert agent.figures().failures == choices.count("a")


def test_what_failed_is_never_forced_again():
    agent = Agent()
    for other in "klm":
        for gpu_type, runtime_s in (("a", 10.0), ("b", 50.0)):
            agent.replay(done(gpu_type, runtime_s, job_type=other))
    assert agent.score(Request("j", ("a", "b"))).decision_type == "forced"
    agent.replay(failed("a", 3))
    answer = agent.score(Request("j", ("a", "b")))
    assert answer.chosen_gpu_type == "b"
    assert answer.decision_type != "forced"
    assert answer.candidates[0].is_failing


def test_where_everything_fails_the_least_risky_is_chosen():
    agent = Agent()
    agent.replay([*failed("a", 9), *failed("b", 4), *done("b", 10.0, 3)])
    assert agent.score(Request("j", ("a", "b"))).chosen_gpu_type == "b"


def test_a_batch_goes_where_jobs_fail_only_if_there_is_no_room_elsewhere():
    agent = Agent()
    for other in "klm":
        for gpu_type, runtime_s in (("a", 30.0), ("b", 100.0), ("c", 300.0)):
            agent.replay(done(gpu_type, runtime_s, job_type=other))
    agent.replay([*done("b", 200.0, 20), *done("c", 600.0, 20)])
    agent.replay([Observation("j", "a", 1.0, success=False)] * 20)
    batch = [Request("j", GPUS)] * 3
    found = agent.assign(batch, {"a": 4, "b": 2, "c": 4})
    assert sorted(found.as_object()["assignment"]) == ["b", "b", "c"]
    assert found.cost == pytest.approx(1000.0, rel=0.2)
    crowded = agent.assign(batch, {"a": 4, "b": 1, "c": 1})
    assert sorted(crowded.as_object()["assignment"]) == ["a", "b", "c"]
    assert crowded.cost < 2000.0
    assert agent.assign([], {"a": 1}).cost == 0.0


@pytest.mark.parametrize("lost_s", [1.0, 500.0])
def test_a_pair_that_was_mended_is_used_again_however_often_it_failed(lost_s):
    agent = Agent()
    agent.replay([*done("b", 200.0, 20), *done("c", 600.0, 20), *done("a", 60.0, job_type="k")])
    agent.replay([*done("b", 200.0, job_type="k"), *done("c", 600.0, job_type="k")])
    agent.replay([Observation("j", "a", lost_s, success=False)] * 50)
    times = dict(zip(GPUS, (60.0, 200.0, 600.0), strict=True))
    choices = []
    for _ in range(8 * AGAIN):
        choices.append(agent.score(Request("j", GPUS)).chosen_gpu_type)
        agent.observe(Observation("j", choices[-1], times[choices[-1]]))
    assert choices[7 * AGAIN :].count("a") > 0.9 * AGAIN
    found = agent.candidates(Request("j", GPUS))[0]
    assert found.failures == 0
    assert found.success_chance > 0.9
    assert agent.figures().failures == 50


def test_failures_of_a_pair_that_works_now_and_then_are_not_forgiven():
    failures = Failures()
    for _ in range(10):
        for each in [*failed("a", 3), *done("a", 10.0, 2), *done("b", 10.0, 9), *failed("b")]:
            failures.observe(each)
    assert failures.risk("j", "a").chance == pytest.approx(0.6, abs=0.05)
    assert failures.risk("j", "b").chance == pytest.approx(0.1, abs=0.05)


def test_counts_read_back_merge_and_are_forgotten():
    one, other = Failures(), Failures()
    for each in [*failed("a", 3), *done("b", 10.0)]:
        one.observe(each)
        other.observe(each)
    again = Failures.from_object(one.as_object())
    assert again.risk("j", "a") == one.risk("j", "a")
    one.merge(other)
    assert one.total == 6
    assert one.without({"j"}, ()).total == one.without((), {"a"}).total == 0


def test_a_failed_run_of_a_new_job_type_makes_its_name_known():
    agent = Agent(Parameters())
    agent.replay(failed("a"))
    assert agent.names() == ({"j"}, {"a"})
    agent.forget(job_type="j")
    assert agent.names() == (set(), set())
    assert agent.figures().observations == 0


def test_there_is_a_limit_to_the_names_of_what_failed(monkeypatch):
    agent = Agent()
    agent.replay(failed("a"))
    monkeypatch.setattr(room, "MOST_JOB_TYPES", 1)
    for take in (agent.check, agent.observe):
        with pytest.raises(UsageError, match="more than 1 job types"):
            take(Observation("k", "a", 5.0, success=False))
    assert agent.knows(Observation("j", "a", 5.0, success=False))
    assert not agent.knows(Observation("k", "a", 5.0, success=False))
