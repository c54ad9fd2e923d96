import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from podium.model import PodSpec, Workload
from podium.traces.demand import asked, offered, peak, pod_classes, shares
from support.traces import small_trace

times = st.tuples(st.integers(0, 20), st.integers(0, 10), st.integers(0, 50))


@given(st.lists(times, min_size=1, max_size=12))
def test_the_peak_is_the_most_that_runs_at_one_time(pods):
    workload = Workload.of(
        PodSpec(f"p{i}", cpu, 0, arrival_s=float(arrival), duration_s=float(duration))
        for i, (arrival, duration, cpu) in enumerate(pods)
    )
    running = [
        sum(cpu for arrival, duration, cpu in pods if arrival <= now < arrival + duration)
        for now in range(31)
    ]
    assert peak(workload, asked(workload)["cpu"]) == max(running)


def test_without_times_everything_is_asked_for_at_once():
    workload = Workload.of([PodSpec("p", 5, 1), PodSpec("q", 7, 1)])
    assert peak(workload, asked(workload)["cpu"]) == 12


def test_shares_of_nothing_are_unknown():
    amounts = {"gpu": 1, "cpu": 2, "memory": 3}
    assert shares(amounts, {"gpu": 0, "cpu": 4, "memory": 3}) == {
        "gpu": None, "cpu": 0.5, "memory": 1.0,
    }  # fmt: skip


def test_capacity_is_in_the_units_of_demand():
    assert offered(small_trace().cluster) == {"gpu": 10_000, "cpu": 192_000, "memory": 786_432}


def test_every_pod_is_in_one_class():
    masks = pod_classes(small_trace().workload.pods)
    assert np.array_equal(sum(mask.astype(int) for mask in masks.values()), [1, 1, 1])
