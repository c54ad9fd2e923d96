import math

import numpy as np

from podium.online import Agent, Observation, Parameters, Request
from podium.online.floor import FEWEST, MOST_TIMES, OWN_TIMES, Floor

GPUS = ("usual", "other", "odd")


def test_a_try_is_paid_from_a_share_of_the_time_of_all_jobs():
    floor = Floor(0.01)
    for _ in range(FEWEST):
        floor.count("j", 100.0)
    assert not floor.affords("j", 105.0, 100.0)
    for _ in range(100):
        floor.count("k", 100.0)
    assert floor.affords("j", 150.0, 100.0)
    assert not floor.affords("j", 160.0, 100.0)
    assert not floor.affords("j", 21.0, 2.0)
    assert not floor.affords("new", 101.0, 100.0)
    floor.count("j", 100.0, 100.0)
    assert not floor.affords("j", 150.0, 100.0)


def newcomer(share, decisions, others=0):
    """Returns a floor where a job type comes after another one, or by turns with it."""
    floor = Floor(share)
    for _ in range(2 * FEWEST):
        floor.count("k", 100.0)
    for _ in range(decisions):
        floor.count("j", 100.0)
        for _ in range(others):
            floor.count("k", 100.0)
    return floor


def test_a_newcomer_pays_tries_from_its_own_time():
    floor = newcomer(0.1 / OWN_TIMES, 20)
    assert floor.pays_itself("j", 299.0, 100.0)
    assert not floor.pays_itself("j", 301.0, 100.0)
    assert not floor.pays_itself("k", 101.0, 100.0)
    assert not floor.pays_itself("never seen", 101.0, 100.0)


def test_all_tries_of_a_newcomer_together_cost_little_beside_its_own_time():
    floor = newcomer(0.1 / OWN_TIMES, 20)
    floor.count_own("j", 150.0)
    assert floor.pays_itself("j", 149.0, 100.0)
    assert not floor.pays_itself("j", 151.0, 100.0)
    other = Floor(0.1 / OWN_TIMES)
    other.restore(floor.as_object())
    assert not other.pays_itself("j", 151.0, 100.0)
    other.forget(frozenset({"j"}))
    assert other.as_object()["own_paid_s"] == {}


def test_a_newcomer_pays_nothing_before_it_came_again_nor_for_what_takes_far_too_long():
    assert not newcomer(1.0, FEWEST - 1).pays_itself("j", 101.0, 100.0)
    assert newcomer(1.0, FEWEST).pays_itself("j", 100.0 * MOST_TIMES, 100.0)
    assert not newcomer(1.0, FEWEST).pays_itself("j", 101.0 * MOST_TIMES, 100.0)


def test_a_newcomer_that_seldom_comes_pays_less_for_a_try():
    floor = newcomer(0.1 / OWN_TIMES, 20, others=19)
    assert floor.frequency("j") == 0.125
    assert floor.pays_itself("j", 124.0, 100.0)
    assert not floor.pays_itself("j", 126.0, 100.0)


def test_counts_read_back_as_they_were():
    one, other = Floor(0.01), Floor(0.01)
    one.count("j", 100.0, 3.0)
    other.restore(one.as_object())
    assert other.as_object() == one.as_object()
    one.forget(frozenset({"j"}))
    assert one.as_object()["decisions"] == {}


def test_a_job_type_comes_as_often_as_it_did_since_it_first_came():
    floor = Floor(0.01)
    for _ in range(100):
        floor.count("often", 1.0)
    assert floor.frequency("often") == floor.frequency("never seen") == 1.0
    for _ in range(20):
        floor.count("new", 1.0)
        floor.count("often", 1.0)
    assert floor.frequency("new") == 1.0
    for _ in range(400):
        floor.count("often", 1.0)
    assert floor.frequency("new") == 0.125
    floor.forget(frozenset({"new"}))
    assert floor.frequency("new") == 1.0


def against_the_trend(floor, decisions=150, odd_s=500.0, longer=1.0, before=0):
    """Plays a job type that runs fastest where all others run five times longer, or more."""
    agent = Agent(Parameters(exploration_floor=floor))
    rng = np.random.default_rng(1000)
    for other in range(8):
        for gpu_type, runtime_s in (("usual", 100.0), ("other", 120.0), ("odd", odd_s)):
            for _ in range(10):
                luck = math.exp(rng.normal(0.0, 0.1))
                agent.observe(Observation(f"k{other}", gpu_type, runtime_s * luck))
    own_s = {"usual": 100.0 * longer, "other": 110.0 * longer, "odd": 20.0 * longer}
    answers = []
    for number in range(-before, decisions):
        for other in range(8):
            agent.score(Request(f"k{other}", ("usual", "other")))
        if number < 0:
            continue
        answers.append(agent.score(Request("j", GPUS)))
        gpu_type = answers[-1].chosen_gpu_type
        luck = math.exp(rng.normal(0.0, 0.1))
        agent.observe(Observation("j", gpu_type, own_s[gpu_type] * luck))
    return answers


def chosen(answers):
    return [answer.chosen_gpu_type for answer in answers]


def test_a_job_type_that_goes_against_the_trend_is_not_locked_out_for_ever():
    assert set(chosen(against_the_trend(0.01))[-20:]) == {"odd"}
    assert "odd" not in chosen(against_the_trend(0.0))


def test_nor_is_a_newcomer_whose_jobs_take_longer_than_all_others_can_pay_for():
    answers = against_the_trend(0.005, decisions=60, longer=100.0, before=10)
    first = chosen(answers).index("odd")
    assert answers[first].decision_type == "exploration"
    assert set(chosen(answers)[-20:]) == {"odd"}


def test_nor_is_a_newcomer_that_ran_on_all_other_gpu_types():
    """The trend speaks against the last one even more, and the job type follows it so far."""
    gpu_types = ("a", "b", "c", "d", "odd")
    others_s = dict(zip(gpu_types, (100.0, 110.0, 120.0, 130.0, 500.0), strict=True))
    own_s = {name: 100.0 * others_s[name] for name in gpu_types} | {"odd": 2000.0}
    agent, rng = Agent(), np.random.default_rng(1000)
    for other in range(4):
        for gpu_type, runtime_s in others_s.items():
            for _ in range(10):
                luck = math.exp(rng.normal(0.0, 0.1))
                agent.observe(Observation(f"k{other}", gpu_type, runtime_s * luck))
        for _ in range(20):
            agent.score(Request(f"k{other}", ("a",)))
    agent.replay([Observation("j", name, own_s[name]) for name in "abcd"])
    answers = []
    for _ in range(60):
        answers.append(agent.score(Request("j", gpu_types)))
        gpu_type = answers[-1].chosen_gpu_type
        agent.observe(Observation("j", gpu_type, own_s[gpu_type]))
    assert set(chosen(answers)[-20:]) == {"odd"}


def test_nothing_is_paid_for_what_is_expected_to_take_far_too_long():
    assert "odd" not in chosen(against_the_trend(0.5, odd_s=100.0 * 5 * MOST_TIMES))
