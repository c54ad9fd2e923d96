import numpy as np
import pytest

from podium.errors import UsageError
from podium.evaluation.windows import as_demand, between, check_times, drawn, version
from podium.model import Cluster, NodeSpec, PodSpec, Workload
from podium.model.constraints import Gang
from podium.policies import load
from podium.sim import Replay, simulate


def recorded(count=20, **more):
    """Builds pods that arrive later and later, in another order than that of their times."""
    specs = [
        PodSpec(
            f"pod-{i}", 1000, 1000, gpu_count=1, gpu_milli=1000, arrival_s=float(i * i),
            duration_s=10.0, **more,
        )
        for i in range(count)
    ]  # fmt: skip
    return Workload.of(reversed(specs), name="recorded")


def test_two_parts_of_the_arrivals_make_up_the_whole_and_share_no_pod():
    first, last = between(recorded(), 0.0, 0.7), between(recorded(), 0.7, 1.0)
    assert first.names == tuple(f"pod-{i}" for i in range(14))
    assert last.names == tuple(f"pod-{i}" for i in range(14, 20))


def test_a_trace_without_arrival_times_has_no_last_part():
    plain = Workload.of([PodSpec("pod", 1000, 1000)], name="plain")
    with pytest.raises(UsageError, match="no arrival times") as caught:
        between(plain, 0.0, 0.7)
    assert "--held-out seed" in caught.value.hint


def test_a_trace_too_short_for_a_part_is_refused():
    with pytest.raises(UsageError, match="too few"):
        between(recorded(1), 0.0, 0.3)


def test_stretches_keep_the_recorded_gaps_and_are_another_for_every_seed():
    one, again, other = (drawn(recorded(), seed) for seed in (1000, 1000, 1001))
    assert one.names == again.names
    assert one.names != other.names
    assert len(one) == 20
    assert one.arrival_s[0] == 0
    number = [int(name.removeprefix("pod-")) for name in one.names]
    steps = [i for i in range(1, 20) if number[i] == number[i - 1] + 1]
    assert len(steps) >= 8  # half of all, as stretches are two pods long
    for i in steps:
        gap_s = number[i] ** 2 - number[i - 1] ** 2
        assert one.arrival_s[i] - one.arrival_s[i - 1] == pytest.approx(gap_s)


def test_a_version_is_the_trace_on_the_whole_and_another_in_detail():
    trace = recorded(400)
    one, again, other = (version(trace, seed, 60.0) for seed in (1000, 1000, 1001))
    assert one.names == again.names
    assert one.arrival_s.tolist() == again.arrival_s.tolist()
    assert one.names != other.names
    assert len(one) == 400
    assert one.arrival_s.min() >= 0
    assert (np.diff(one.arrival_s) >= 0).all()
    number = np.array([int(name.removeprefix("pod-")) for name in one.names])
    moved_s = one.arrival_s[60:] - number[60:] ** 2
    assert 50 < moved_s.std() < 70
    assert 380 <= len(set(one.names)) < 400  # a few gave way to others


def test_a_version_keeps_who_belongs_together():
    trace = version(recorded(10, gang="train"), 1000, 60.0)
    assert trace.gangs == ("train",)
    assert set(trace.pods["gang"].tolist()) == {1}


def test_a_trace_without_run_times_cannot_be_replayed():
    plain = Workload.of([PodSpec("pod", 1000, 1000, arrival_s=1.0)], name="plain")
    with pytest.raises(UsageError, match="no times"):
        drawn(plain, 1000)


def test_drawn_gangs_start_even_where_a_stretch_cuts_them():
    specs = [
        PodSpec(
            f"pod-{i}", 1000, 1000, gpu_count=1, gpu_milli=1000, arrival_s=float(i),
            duration_s=1.0, gang=f"gang-{i // 3}",
        )
        for i in range(12)
    ]  # fmt: skip
    gangs = [Gang(f"gang-{i}", 3) for i in range(4)]
    workload = Workload.of(specs, name="gangs", gangs=gangs)
    cluster = Cluster.of([NodeSpec("node", 64000, 64000, gpu_count=8)], name="one")
    for part in (drawn(workload, 1000), between(workload, 0.0, 0.7), between(workload, 0.7, 1.0)):
        assert simulate(cluster, part, load("first-fit"), Replay()).is_placed.all()


def test_pods_that_run_already_arrive_like_all_others():
    workload = recorded(3, node="node", gpu_slots=(0,))
    assert workload.bound_to
    assert not as_demand(workload).bound_to
    assert np.array_equal(as_demand(workload).pods, workload.pods)


def test_pods_of_a_dump_without_run_times_can_be_given_some():
    pod = PodSpec("pod", 1000, 1000, arrival_s=1.0, namespace="ml")
    with pytest.raises(UsageError, match="no times") as caught:
        check_times(Workload.of([pod], name="dump"))
    assert caught.value.hint.startswith("add --duration 2h, choose --fitness inflation")
