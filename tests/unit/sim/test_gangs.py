"""Tests that gangs start together, or not at all."""

import numpy as np

from podium.model import Cluster, NodeSpec, PodSpec, Workload
from podium.model.constraints import Gang
from podium.sim import Inflation, Replay, Rounds, Setup, simulate

RACKS = Cluster.of(
    [NodeSpec(f"r{rack}-{i}", 8000, 8000, 4, "A", rack=f"r{rack}", zone="z")
     for rack in range(2) for i in range(2)]
)  # fmt: skip


def member(name, count=4, arrival_s=0.0, **more):
    return PodSpec(name, 10, 10, count, 1000, arrival_s=arrival_s, duration_s=5.0, gang="g", **more)


def run(pods, gangs=(), protocol=None):
    workload = Workload.of(pods, gangs=gangs)
    return simulate(RACKS, workload, "first-fit", protocol or Rounds(), Setup(ranks="listed"))


def names(result):
    return [RACKS.names[i] if i >= 0 else "" for i in result.node]


def test_a_gang_that_does_not_fit_starts_nobody():
    assert names(run([member(f"p{i}") for i in range(5)])) == [""] * 5


def test_a_minimum_is_enough_and_the_others_wait_on_their_own():
    result = run([member(f"p{i}") for i in range(5)], [Gang("g", 3)])
    assert int(result.is_placed.sum()) == 4


def test_a_gang_waits_until_enough_of_it_has_arrived():
    pods = [member("early"), member("late", arrival_s=7.0)]
    assert run(pods, protocol=Replay()).start_s.tolist() == [7.0, 7.0]


def test_a_gang_that_requires_a_rack_gets_one():
    blocker = PodSpec("blocker", 10, 10, 4, 1000, arrival_s=0.0, duration_s=99.0)
    result = run([blocker, member("a"), member("b")], [Gang("g", 2, "rack")])
    assert names(result) == ["r0-0", "r1-0", "r1-1"]


def test_members_that_run_say_which_rack():
    pods = [member("running", node="r1-0"), member("new")]
    assert names(run(pods, [Gang("g", 2, "rack")])) == ["r1-0", "r1-1"]


def test_inflation_draws_whole_gangs_and_tells_their_copies_apart():
    pods = [member("a"), member("b"), PodSpec("single", 10, 10, 1, 1000)]
    result = run(pods, protocol=Inflation(1.0))
    arrived = result.plan.gangs.gang_of
    sizes = np.bincount(arrived)[1:]
    assert set(sizes.tolist()) == {2}
    for gang in range(1, len(sizes) + 1):
        assert len(set(result.status[arrived == gang].tolist())) == 1
