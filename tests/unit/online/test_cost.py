import math

import numpy as np
import pytest

from podium.online import Agent, Observation, Parameters, Place, Request

BESIDE = Parameters(enable_interference=True)


def crowded_agent():
    """Knows that a job type runs fast on one GPU type, unless somebody loud is beside it."""
    rng = np.random.default_rng(1000)
    agent = Agent(BESIDE)
    for _ in range(40):
        for gpu_type, runtime_s, beside in (
            ("fast", 100.0, ()),
            ("fast", 300.0, ("loud",)),
            ("slow", 150.0, ()),
        ):
            luck = math.exp(rng.normal(0.0, 0.1))
            agent.observe(Observation("j", gpu_type, runtime_s * luck, {}, beside))
    return agent


def test_a_fast_gpu_type_is_not_explored_while_it_is_crowded():
    agent = crowded_agent()
    places = (Place("fast", ("loud",)), Place("slow"))
    answers = [agent.score(Request("j", places=places)) for _ in range(20)]
    assert {(each.chosen_gpu_type, each.decision_type) for each in answers} == {
        ("slow", "exploitation")
    }
    free = agent.score(Request("j", places=(Place("fast"), Place("slow"))))
    assert free.chosen_gpu_type == "fast"


@pytest.mark.parametrize(("fast_s", "crowded_s"), [(60.0, 600.0), (60.0, 300.0), (100.0, 200.0)])
def test_a_gpu_type_that_is_always_crowded_is_not_explored_for_ever(fast_s, crowded_s):
    """Runs beside somebody loud never show how long one alone takes."""
    rng, agent = np.random.default_rng(1000), Agent(BESIDE)

    def run(job_type, gpu_type, runtime_s, beside=()):
        luck = math.exp(rng.normal(0.0, 0.1))
        agent.observe(Observation(job_type, gpu_type, runtime_s * luck, {}, beside))

    for _ in range(40):
        for other in ("k", "l", "m"):
            run(other, "slow", 150.0)
            run(other, "fast", fast_s)
            run(other, "fast", crowded_s, ("loud",))
        run("j", "slow", 150.0)
    places, chosen = (Place("fast", ("loud",)), Place("slow")), []
    for _ in range(100):
        chosen.append(agent.score(Request("j", places=places)).chosen_gpu_type)
        is_fast = chosen[-1] == "fast"
        run("j", chosen[-1], crowded_s if is_fast else 150.0, ("loud",) if is_fast else ())
    assert chosen[50:].count("fast") <= 1  # the floor tries once what was never tried


def test_several_crowded_nodes_of_the_fastest_gpu_type_are_held_back_alike():
    agent = crowded_agent()
    places = (Place("fast", ("loud",), "n1"), Place("fast", ("loud",), "n2"), Place("slow"))
    one, other, free = agent.candidates(Request("j", places=places))
    assert one.ig == other.ig <= free.ig_nats * 200 * free.mu
    assert free.cost < one.cost


def test_what_a_run_teaches_is_worth_as_much_in_a_long_one_as_in_a_usual_one():
    rng = np.random.default_rng(1001)
    agent = Agent()
    for _ in range(60):
        size = float(np.exp(rng.normal(4.0, 1.0)))
        agent.observe(Observation("j", "g", size * math.exp(rng.normal(0.0, 0.1)),
                                  {"batch_size": size}))  # fmt: skip
    usual, longer = (
        agent.candidates(Request("j", ("g", "h"), {"batch_size": size})) for size in (64.0, 4000.0)
    )
    assert longer[0].mu > 50.0 * usual[0].mu
    assert longer[1].ig == pytest.approx(usual[1].ig, rel=0.4)


def test_less_is_learned_from_a_job_type_that_seldom_comes():
    agent = Agent()
    agent.replay([Observation(name, "g", 100.0) for name in ("often", "seldom")])
    agent.score(Request("seldom", ("g", "h")))
    for _ in range(63):
        agent.score(Request("often", ("g", "h")))
    often, seldom = (agent.candidates(Request(name, ("g", "h")))[1] for name in ("often", "seldom"))
    assert seldom.ig_nats == pytest.approx(often.ig_nats)
    assert seldom.ig == pytest.approx(often.ig / 16.0)


def test_what_is_paid_for_exploring_counts_the_neighbours():
    agent, rng = crowded_agent(), np.random.default_rng(1001)
    for _ in range(40):
        for other in ("k", "l"):
            for gpu_type, runtime_s in (("fast", 100.0), ("slow", 150.0), ("third", 60.0)):
                luck = math.exp(rng.normal(0.0, 0.1))
                agent.observe(Observation(other, gpu_type, runtime_s * luck))
    places = (Place("fast", ("loud",)), Place("slow"), Place("third", ("loud",)))
    answers = [agent.score(Request("j", places=places)) for _ in range(100)]
    explored = [each.chosen for each in answers if each.decision_type == "exploration"]
    assert explored
    assert explored[0].mu < 150.0 < explored[0].expected_s
    assert agent.figures().exploration_price > 0.0
    assert agent._floor.as_object()["paid_s"] >= 0.0


def compared(fast_s, rival_s, noise, runs):
    """Returns two GPU types that ran equally often, with so much luck."""
    agent = Agent()
    for luck in (math.exp(noise), math.exp(-noise)) * (runs // 2):
        agent.observe(Observation("j", "fast", fast_s * luck))
        agent.observe(Observation("j", "rival", rival_s * luck))
    return agent.candidates(Request("j", ("fast", "rival")))


def test_what_a_run_tells_is_worth_what_knowing_who_is_faster_would_save_in_part():
    fast, rival = compared(100.0, 110.0, 0.3, 8)
    estimates = [(math.log(each.mu), math.log1p((each.sigma / each.mu) ** 2)) for each in
                 (fast, rival)]  # fmt: skip
    (mean, variance), (other, doubt) = estimates
    rng = np.random.default_rng(1000)
    gaps = rng.normal(other - mean, math.sqrt(variance + doubt), 400_000)
    saved = np.maximum(-gaps, 0.0).mean()
    told = 1.0 - math.exp(-2.0 * rival.ig_nats)
    assert rival.ig == pytest.approx(200.0 * fast.mu * saved * told * doubt / (variance + doubt),
                                     rel=0.05)  # fmt: skip


def test_the_more_luck_there_is_in_a_run_the_less_it_tells():
    for each in compared(100.0, 110.0, 0.5, 8):
        relative = each.sigma / each.mu
        assert each.ig_nats < 0.8 * 0.5 * math.log1p(relative**2 / 0.15)


@pytest.mark.parametrize(("rival_s", "is_tried"), [(130.0, True), (145.0, False)])
def test_a_rival_is_tried_again_while_it_could_save_more_than_a_run_costs(rival_s, is_tried):
    agent = Agent()
    for number, luck in enumerate((math.exp(0.5), math.exp(-0.5)) * 20):
        agent.observe(Observation("j", "fast", 100.0 * luck))
        if number < 4:
            agent.observe(Observation("j", "rival", rival_s * luck))
    fast, rival = agent.candidates(Request("j", ("fast", "rival")))
    assert (rival.cost < fast.cost) == is_tried


def test_there_is_nothing_to_learn_where_there_is_no_choice():
    agent = Agent()
    agent.observe(Observation("j", "g", 100.0))
    (only,) = agent.candidates(Request("j", ("g",)))
    assert only.ig_nats > 0.0
    assert only.ig == 0.0
