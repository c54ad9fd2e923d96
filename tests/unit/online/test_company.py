import json
import math

import numpy as np
import pytest

from podium.errors import UsageError
from podium.online import Agent, Observation, Parameters, Place, Request
from podium.online import runtime as room

PARAMETERS = Parameters(enable_interference=True, gamma_interference=1.0)


def agent_of(*groups):
    agent = Agent(PARAMETERS)
    for group in groups:
        agent.replay(group)
    return agent


def runs(rng, count, runtime_s, beside=(), noise=0.2, gpu_type="g"):
    return [
        Observation("j", gpu_type, runtime_s * math.exp(rng.normal(0.0, noise)), {}, beside)
        for _ in range(count)
    ]


def slowdown(agent, *beside, gpu_type="g"):
    (found,) = agent.candidates(Request("j", (gpu_type,), {}, beside))
    return found.penalty / found.mu


@pytest.mark.parametrize("seed", range(1000, 1010))
@pytest.mark.parametrize("planted", [1.2, 1.5, 3.0])
def test_a_planted_slowdown_is_recovered_after_fifty_observations_and_kept(seed, planted):
    rng = np.random.default_rng(seed)
    agent = agent_of(runs(rng, 50, 10.0), runs(rng, 50, 10.0 * planted, ("c",)))
    assert 1.0 + slowdown(agent, "c") == pytest.approx(planted, rel=0.1)
    agent.replay(runs(rng, 1000, 10.0 * planted, ("c",)))
    assert 1.0 + slowdown(agent, "c") == pytest.approx(planted, rel=0.1)


def test_twenty_runs_alone_and_hundreds_beside_another_do_not_unlearn_the_slowdown():
    rng = np.random.default_rng(0)
    agent = agent_of(runs(rng, 20, 10.0, noise=0.0))
    for count, error in ((5, 0.1), (45, 0.02), (155, 0.02)):
        agent.replay(runs(rng, count, 15.0, ("c",), noise=0.0))
        assert slowdown(agent, "c") == pytest.approx(0.5, abs=error)


def test_runs_with_neighbours_teach_how_long_a_job_runs_alone():
    rng = np.random.default_rng(1)
    agent = agent_of(runs(rng, 20, 10.0), runs(rng, 20, 30.0, ("c",)))
    before = agent.candidates(Request("j", ("h",)))[0]
    agent.replay(runs(rng, 20, 12.0, ("c",), gpu_type="h"))
    after = agent.candidates(Request("j", ("h",)))[0]
    assert after.observations == 20
    assert after.mu == pytest.approx(4.0, rel=0.3)
    assert after.sigma / after.mu < 0.5 * before.sigma / before.mu


def test_where_nobody_ever_runs_alone_gpu_types_are_told_apart_all_the_same():
    rng = np.random.default_rng(5)
    agent = agent_of(
        *(runs(rng, 20, 10.0, (beside,)) for beside in "abc"),
        *(runs(rng, 20, 20.0, (beside,), gpu_type="h") for beside in "abc"),
    )
    fast, slow = agent.candidates(Request("j", ("g", "h"), {}, ("a",)))
    assert slow.greedy_cost / fast.greedy_cost == pytest.approx(2.0, rel=0.15)


def test_interference_that_is_not_enabled_is_learned_around():
    rng = np.random.default_rng(5)
    agent = Agent(Parameters())
    agent.replay(runs(rng, 30, 10.0, ("a",)) + runs(rng, 30, 20.0, ("b",), gpu_type="h"))
    agent.replay(runs(rng, 10, 10.0))
    (found,) = agent.candidates(Request("j", ("g",), {}, ("a",)))
    assert found.observations == 40
    assert found.mu == pytest.approx(10.0, rel=0.15)


def test_runs_alone_that_come_later_set_the_baseline_too():
    rng = np.random.default_rng(2)
    alone, beside = runs(rng, 30, 10.0), runs(rng, 30, 20.0, ("c",))
    later = agent_of(beside, alone)
    assert slowdown(later, "c") == pytest.approx(slowdown(agent_of(alone, beside), "c"))
    assert slowdown(later, "c") == pytest.approx(1.0, rel=0.2)


def test_job_types_that_never_met_are_predicted_from_their_parts():
    rng = np.random.default_rng(8)
    agent = Agent(PARAMETERS)
    for job_type in "abcd":
        for other, factor in (("loud", 2.0), ("calm", 1.0)):
            if (job_type, other) == ("a", "loud"):
                continue
            for beside, slow in (((), 1.0), ((other,), factor)):
                agent.replay(
                    Observation(
                        job_type, "g", 10.0 * slow * math.exp(rng.normal(0, 0.1)), {}, beside
                    )
                    for _ in range(20)
                )
    (loud,) = agent.candidates(Request("a", ("g",), {}, ("loud",)))
    (calm,) = agent.candidates(Request("a", ("g",), {}, ("calm",)))
    assert loud.penalty / loud.mu > 0.2
    assert calm.penalty / calm.mu < 0.05


def test_neighbours_by_place_change_the_choice():
    rng = np.random.default_rng(9)
    agent = agent_of(
        runs(rng, 30, 10.0), runs(rng, 30, 11.0, gpu_type="h"), runs(rng, 30, 20.0, ("c",))
    )
    quiet = Request("j", places=(Place("g"), Place("h", ("c",))))
    busy = Request("j", places=(Place("g", ("c",), "node-1"), Place("h", (), "node-2")))
    assert agent.score(quiet).chosen_gpu_type == "g"
    assert agent.score(busy).chosen.node == "node-2"


def test_a_slowdown_that_is_not_probable_is_not_avoided():
    named = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        agent = agent_of(runs(rng, 50, 10.0), runs(rng, 3, 10.0, ("c",)))
        named += bool(agent.score(Request("j", ("g",))).avoid_co_locate_with)
    assert named <= 4


def test_neighbours_that_come_together_are_told_apart():
    rng = np.random.default_rng(3)
    agent = agent_of(
        runs(rng, 60, 10.0),
        runs(rng, 60, 10.0, ("calm",)),
        runs(rng, 60, 20.0, ("loud", "calm")),
        runs(rng, 60, 40.0, ("loud", "loud")),
    )
    assert 1.0 + slowdown(agent, "loud") == pytest.approx(2.0, rel=0.1)
    assert 1.0 + slowdown(agent, "calm") == pytest.approx(1.0, rel=0.1)
    assert 1.0 + slowdown(agent, "loud", "loud", "calm") == pytest.approx(4.0, rel=0.15)


def test_what_is_learned_on_one_gpu_type_holds_on_others():
    rng = np.random.default_rng(4)
    agent = agent_of(
        runs(rng, 50, 10.0), runs(rng, 50, 15.0, ("c",)), runs(rng, 5, 70.0, gpu_type="h")
    )
    assert 1.0 + slowdown(agent, "c", gpu_type="h") == pytest.approx(1.5, rel=0.1)


def test_one_slow_run_is_not_yet_a_slowdown_of_that_size():
    alone = [Observation("j", "g", runtime_s) for runtime_s in (8.0, 12.5)] * 25
    agent = agent_of(alone, [Observation("j", "g", 15.0, {}, ("c",))])
    assert 0.2 < slowdown(agent, "c") < 0.45


def test_a_neighbour_that_speeds_a_job_up_or_is_unknown_costs_nothing():
    rng = np.random.default_rng(6)
    agent = agent_of(runs(rng, 50, 10.0), runs(rng, 50, 5.0, ("c",)))
    assert slowdown(agent, "c") == 0.0
    assert slowdown(agent, "never seen") == 0.0


def test_a_pair_is_avoided_by_both_though_only_one_suffers():
    rng = np.random.default_rng(7)
    agent = agent_of(
        runs(rng, 50, 10.0), runs(rng, 50, 15.0, ("loud",)), runs(rng, 50, 10.2, ("calm",))
    )
    assert agent.score(Request("j", ("g",))).avoid_co_locate_with == ("loud",)
    assert agent.score(Request("loud", ("g",))).avoid_co_locate_with == ("j",)
    assert agent.score(Request("calm", ("g",))).avoid_co_locate_with == ()
    assert slowdown(agent, "loud") > 0.3
    (other,) = agent.candidates(Request("loud", ("g",), {}, ("j",)))
    assert other.penalty == 0.0


def test_interference_that_is_not_enabled_is_neither_charged_nor_avoided():
    rng = np.random.default_rng(8)
    agent = Agent(Parameters(gamma_interference=1.0))
    agent.replay(runs(rng, 50, 10.0) + runs(rng, 50, 30.0, ("c",)))
    assert slowdown(agent, "c") == 0.0
    assert agent.score(Request("j", ("g",), {}, ("c",))).avoid_co_locate_with == ()


def crowd(rng, count, factor=None):
    """Returns runs beside two of a hundred job types, of which ten are met often."""
    names = [f"t{number}" for number in range(100)]
    often = names[90:]
    found = []
    for _ in range(count):
        pool = often if rng.random() < 0.7 else names
        beside = tuple(str(each) for each in rng.choice(pool, 2))
        slower = math.prod(factor(name) for name in beside) if factor else 1.0
        seconds = 100.0 * slower * math.exp(rng.normal(0.0, 0.1))
        found.append(Observation("j", "g", seconds, {}, beside))
    return found


def test_runs_beside_more_job_types_than_have_room_all_teach():
    agent = agent_of(crowd(np.random.default_rng(9), 600))
    (found,) = agent.candidates(Request("j", ("g",)))
    assert found.observations == 600
    assert found.mu == pytest.approx(100.0, rel=0.1)
    (runs,) = agent.as_object()["runtime"]["runs"].values()
    assert len(runs["neighbours"]) == 65


def test_those_that_are_met_most_have_a_slowdown_of_their_own_and_others_share_one():
    def factor(name):
        return {"t95": 2.0, "t96": 1.5}.get(name, 1.0)

    rng = np.random.default_rng(10)
    # At first there is no room left for those that are met most later.
    early = [Observation("j", "g", 100.0, {}, (f"t{number}",)) for number in range(64)]
    agent = agent_of(early, crowd(rng, 1000, factor))
    assert slowdown(agent, "t95") == pytest.approx(1.0, abs=0.2)
    assert slowdown(agent, "t96") == pytest.approx(0.5, abs=0.15)
    assert slowdown(agent, "t94") < 0.15
    assert slowdown(agent, "t80") < 0.15
    assert set(agent.score(Request("j", ("g",))).avoid_co_locate_with) == {"t95", "t96"}


def test_a_crowd_survives_a_restart_merging_and_forgetting():
    rng = np.random.default_rng(11)
    first, second = crowd(rng, 300), crowd(rng, 300)
    agent = agent_of(first)
    again = Agent.from_object(PARAMETERS, json.loads(json.dumps(agent.as_object())))
    agent.replay(second)
    again.replay(second)
    assert again.as_object() == agent.as_object()
    merged = agent_of(first)
    merged.merge(agent_of(second))
    (found,) = merged.candidates(Request("j", ("g",)))
    assert found.observations == 600
    assert {"t1", "t99"} < agent.names()[0]
    agent.forget(job_type="t1")
    assert "t1" not in agent.names()[0]


@pytest.mark.parametrize(
    ("most", "job_type", "gpu_type", "beside"),
    [
        ("MOST_JOB_TYPES", "k", "g", "a"),
        ("MOST_GPU_TYPES", "j", "h", "a"),
    ],
)
def test_there_is_a_limit_to_the_names_that_are_learned(
    monkeypatch, most, job_type, gpu_type, beside
):
    agent = agent_of([Observation("j", "g", 10.0, {}, ("a",))])
    before = agent.as_object()
    monkeypatch.setattr(room, most, 1)
    for take in (agent.check, agent.observe):
        with pytest.raises(UsageError, match="more than 1 "):
            take(Observation(job_type, gpu_type, 10.0, {}, (beside,)))
    assert agent.as_object() == before
