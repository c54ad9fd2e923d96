import pytest

from podium.model import Cluster, NodeSpec, Pod
from podium.sim.funsearch.metrics import Amounts, Meter


def meter(pods, gpus=2):
    return Meter.of(Cluster.of([NodeSpec("n", 4000, 8000, gpus, "P100")]), pods)


def gpu_pod(cpu_milli=1000, memory_mib=1000, gpu_milli=500):
    return Pod(cpu_milli, memory_mib, 1, gpu_milli, gpu_models=-1, priority=0, gang=0)


def test_a_snapshot_is_taken_each_time_the_events_pass_a_twentieth_of_the_pods():
    counted = meter(pods=100)
    for _ in range(9):
        counted.count_event()
    assert len(counted.snapshots) == 1
    counted.count_event()
    assert len(counted.snapshots) == 2


def test_an_event_takes_one_snapshot_at_most_even_if_it_passes_several_thresholds():
    counted = meter(pods=2)
    for _ in range(4):
        counted.count_event()
    assert len(counted.snapshots) == 4


def test_thresholds_are_added_up_in_floating_point_so_that_twenty_pods_give_39_snapshots():
    # 0.05 + 0.05 + 0.05 lies above 3 / 20: the third event misses its snapshot.
    counted = meter(pods=20)
    for _ in range(40):
        counted.count_event()
    assert len(counted.snapshots) == 39


def test_a_share_is_the_plain_mean_over_snapshots_whatever_the_time_between_them():
    counted = meter(pods=1)
    counted.advance(0)
    counted.add(gpu_pod(), +1)
    counted.count_event()
    counted.advance(1_000_000)
    counted.add(gpu_pod(), -1)
    counted.count_event()
    result = counted.result()
    assert counted.snapshots == [Amounts(1000, 1000, 1, 500), Amounts(0, 0, 0, 0)]
    assert result.cpu == pytest.approx(0.25 / 2)
    assert result.memory == pytest.approx(0.125 / 2)
    assert result.gpu_count == pytest.approx(0.5 / 2)
    assert result.gpu_milli == pytest.approx(0.25 / 2)
    assert result.time_weighted_cpu == pytest.approx(0.25)


@pytest.mark.parametrize(("fragmentation", "score"), [(0.05, 0.28125 - 0.05), (0.5, 0.28125 - 0.1)])
def test_the_score_is_the_mean_share_less_fragmentation_of_at_most_a_tenth(fragmentation, score):
    counted = meter(pods=1)
    counted.add(gpu_pod(), +1)
    counted.count_event()
    counted.fragmentation.append(fragmentation)
    counted.waits_s.append(0.0)
    assert counted.result().score == pytest.approx(score)


def test_the_score_never_falls_below_zero():
    counted = meter(pods=1)
    counted.count_event()
    counted.fragmentation.append(0.5)
    counted.waits_s.append(0.0)
    assert counted.result().score == 0


def test_a_cluster_without_gpus_has_a_gpu_share_of_zero():
    counted = meter(pods=1, gpus=0)
    counted.count_event()
    result = counted.result()
    assert (result.gpu_count, result.gpu_milli, result.time_weighted_gpu_count) == (0, 0, 0)
