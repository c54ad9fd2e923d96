import pytest

from podium.errors import InputError, PolicyError
from podium.model import Cluster, NodeSpec, PodSpec, Workload
from podium.sim.funsearch import FUNSEARCH_POLICIES, run_funsearch

FIRST_FIT = FUNSEARCH_POLICIES["first_fit"]


def cluster_of(*sizes):
    """Builds nodes from (CPUs, GPUs)."""
    return Cluster.of(
        NodeSpec(f"node-{i}", 1000 * cpus, 1000 * cpus, gpus, "P100" if gpus else "")
        for i, (cpus, gpus) in enumerate(sizes)
    )


def pod(name, arrival_s, duration_s, cpus=0, gpu_count=0, gpu_milli=0, gpu_spec=""):
    cpu_milli = 1000 * cpus
    return PodSpec(
        name, cpu_milli, cpu_milli, gpu_count, gpu_milli, gpu_spec, arrival_s, duration_s
    )


class Spy:
    """Scores like first-fit and keeps what it was shown."""

    def __init__(self):
        self.seen = []

    def __call__(self, pod, node):
        self.seen.append(node)
        return FIRST_FIT(pod, node)


@pytest.mark.parametrize(
    ("running", "coming", "failed", "makespan_s"), [("a", "b", 0, 15), ("b", "a", 1, 16)]
)
def test_at_equal_times_the_pod_name_decides_between_a_deletion_and_a_creation(
    running, coming, failed, makespan_s
):
    workload = Workload.of([pod(running, 0, 10, cpus=1), pod(coming, 10, 5, cpus=1)])
    result = run_funsearch(cluster_of((1, 0)), workload, FIRST_FIT)
    assert (result.failed_attempts, result.makespan_s) == (failed, makespan_s)


def test_a_pod_that_failed_runs_its_full_time_from_one_second_after_a_deletion():
    workload = Workload.of([pod("a", 0, 10, cpus=1), pod("b", 4, 5, cpus=1)])
    result = run_funsearch(cluster_of((1, 0)), workload, FIRST_FIT)
    assert (result.wait_max_s, result.waited, result.makespan_s) == (7, 1, 16)
    assert result.wait_mean_s == 3.5
    assert result.events == 5


def test_a_retry_goes_by_the_array_order_of_the_heap_and_not_by_the_earliest_deletion():
    # When c fails the array is [d at 5, deletion of b at 20, deletion of a at 10]: c retries
    # at 21. When d fails it is [deletion of a at 10, ...]: d, who came later, starts at 11.
    pods = [pod("a", 0, 10, cpus=1), pod("b", 0, 20, cpus=1)]
    pods += [pod("c", 0, 1, cpus=1), pod("d", 5, 1, cpus=1)]
    result = run_funsearch(cluster_of((2, 0)), Workload.of(pods), FIRST_FIT)
    assert (result.waited, result.wait_max_s, result.wait_mean_s) == (2, 21, (21 + 6) / 4)


def test_a_pod_is_dropped_when_it_fails_while_no_deletion_is_pending():
    workload = Workload.of([pod("big", 0, 5, cpus=2), pod("small", 1, 5, cpus=1)])
    result = run_funsearch(cluster_of((1, 0)), workload, FIRST_FIT)
    assert (result.placed, result.failed_attempts, result.events) == (1, 1, 3)
    assert result.score == 0
    assert result.cpu > 0


def test_a_failed_attempt_while_a_node_has_room_is_held():
    def picky(pod, node):
        return FIRST_FIT(pod, node) if node.cpu_milli_left == 2000 else 0

    pods = [pod("a", 0, 10, cpus=1), pod("b", 1, 10, cpus=1), pod("c", 2, 10, cpus=2)]
    result = run_funsearch(cluster_of((2, 0)), Workload.of(pods), picky)
    # b has room beside a and waits; c, which has none, waits too.
    assert (result.placed, result.failed_attempts, result.held) == (3, 3, 1)
    plain = run_funsearch(cluster_of((2, 0)), Workload.of(pods), FIRST_FIT)
    assert (plain.failed_attempts, plain.held) == (1, 0)


def test_a_pod_with_a_part_of_a_gpu_takes_a_whole_one_from_the_count():
    spy = Spy()
    pods = [pod(f"p{i}", 0, 100, gpu_count=1, gpu_milli=250) for i in range(8)]
    result = run_funsearch(cluster_of((1, 2)), Workload.of(pods), spy)
    assert spy.seen[2].gpus_left == 0
    assert spy.seen[2].gpu_milli_left == (500, 1000)
    # Two at a time: at 0, 101, 202 and 303.
    assert (result.failed_attempts, result.wait_mean_s) == (6 + 4 + 2, (101 + 202 + 303) / 4)


def test_a_pod_takes_the_gpu_with_the_least_free_milli_that_is_enough_and_the_first_of_equals():
    spy = Spy()
    pods = [
        pod("a", 0, 100, gpu_count=1, gpu_milli=300),
        pod("b", 1, 100, gpu_count=1, gpu_milli=800),
        pod("c", 2, 100, gpu_count=1, gpu_milli=200),
        pod("d", 3, 100, gpu_count=1, gpu_milli=500),
    ]
    run_funsearch(cluster_of((1, 4)), Workload.of([*pods, pod("e", 4, 1)]), spy)
    assert spy.seen[4].gpu_milli_left == (700 - 500, 200 - 200, 1000, 1000)


def test_a_deletion_returns_everything_the_pod_held():
    spy = Spy()
    pods = [pod("a", 0, 10, cpus=1, gpu_count=1, gpu_milli=400), pod("b", 20, 1)]
    run_funsearch(cluster_of((2, 1)), Workload.of(pods), spy)
    assert spy.seen[1] == spy.seen[0]


def test_the_first_of_the_highest_scores_wins_and_zero_means_that_a_node_is_no_choice():
    seen = []

    def score(_pod, node):
        seen.append(node.cpu_milli_left)
        return {1000: 0, 2000: 7, 3000: 7, 1999: 7}.get(node.cpu_milli_left, 3)

    pods = [PodSpec("a", 1, 0, arrival_s=0, duration_s=9), PodSpec("b", 0, 0, 0, 0, "", 1, 1)]
    run_funsearch(cluster_of((1, 0), (2, 0), (3, 0)), Workload.of(pods), score)
    assert seen == [1000, 2000, 3000, 1000, 1999, 3000]


def test_model_constraints_play_no_part():
    workload = Workload.of([pod("a", 0, 5, gpu_count=1, gpu_milli=1000, gpu_spec="A100")])
    assert run_funsearch(cluster_of((1, 1)), workload, FIRST_FIT).placed == 1


def test_fragmentation_is_sampled_at_each_failure_against_the_smallest_gpu_pod_that_waits():
    pods = [
        pod("a", 0, 100, gpu_count=1, gpu_milli=700),
        pod("b", 0, 100, gpu_count=1, gpu_milli=1000),
        pod("c", 1, 10, cpus=9),  # no GPU pod waits: 0
        pod("d", 2, 10, gpu_count=1, gpu_milli=500),  # 300 of 2000 milli is of no use
        pod("e", 3, 10, gpu_count=1, gpu_milli=300),  # and is of use again
    ]
    result = run_funsearch(cluster_of((1, 2)), Workload.of(pods), FIRST_FIT)
    # At 101 c fails again, on empty GPUs, and is dropped; d and e are placed.
    assert (result.failed_attempts, result.placed) == (4, 4)
    assert result.fragmentation == pytest.approx((0 + 0.15 + 0 + 0) / 4)


def test_a_pod_that_was_placed_after_all_no_longer_counts_as_waiting():
    pods = [
        pod("a", 0, 100, gpu_count=2, gpu_milli=1000),
        pod("b", 1, 1000, gpu_count=1, gpu_milli=200),  # waits until 101, leaves 800 milli
        pod("c", 110, 10, gpu_count=2, gpu_milli=1000),  # of no use to this one
    ]
    result = run_funsearch(cluster_of((1, 2)), Workload.of(pods), FIRST_FIT)
    assert (result.failed_attempts, result.placed) == (2, 3)
    assert result.fragmentation == pytest.approx((0 + 800 / 2000) / 2)


def test_without_a_failure_there_is_no_fragmentation():
    result = run_funsearch(cluster_of((1, 0)), Workload.of([pod("a", 0, 5, cpus=1)]), FIRST_FIT)
    assert (result.fragmentation, result.failed_attempts) == (0, 0)


def test_time_weighted_use_and_makespan_run_from_the_first_event_to_the_last():
    pods = [pod("a", 100, 10, cpus=1, gpu_count=1, gpu_milli=500), pod("b", 120, 10, cpus=1)]
    result = run_funsearch(cluster_of((2, 2)), Workload.of(pods), FIRST_FIT)
    assert result.makespan_s == 30
    assert result.time_weighted_cpu == pytest.approx((10 + 10) / (2 * 30))
    assert result.time_weighted_gpu_count == pytest.approx(10 / (2 * 30))


def test_a_workload_without_times_is_refused():
    workload = Workload.of([PodSpec("a", 1, 1)], name="timeless")
    with pytest.raises(InputError, match="no arrival and run times") as caught:
        run_funsearch(cluster_of((1, 0)), workload, FIRST_FIT)
    assert caught.value.where == "timeless"


def test_a_score_that_picks_a_node_too_small_ends_the_run_with_the_pod_and_the_node_named():
    workload = Workload.of([pod("a", 7, 5, cpus=2)])
    with pytest.raises(PolicyError, match=r'pod "a" does not fit the node "node-0"') as caught:
        run_funsearch(cluster_of((1, 0)), workload, lambda _pod, _node: 1)
    assert caught.value.where == "at 7 s"


def test_a_score_cannot_change_the_node_it_is_shown():
    def cheat(_pod, node):
        node.gpus_left = 8
        return 1

    workload = Workload.of([pod("a", 0, 5, cpus=1)])
    with pytest.raises(AttributeError):
        run_funsearch(cluster_of((1, 0)), workload, cheat)
