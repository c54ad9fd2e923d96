import numpy as np
import pytest

from podium.model.fit import fits, fitting_slots
from podium.policies.states import random_states

STATES = random_states(800, seed=3)


def test_every_pod_fits_its_node():
    assert all(fits(pod, node) for pod, node in zip(STATES.pods, STATES.nodes, strict=True))


def test_share_pods_come_with_a_slot_that_fits_and_others_without():
    for pod, node, gpu in zip(STATES.pods, STATES.nodes, STATES.gpus, strict=True):
        is_share = 0 < pod["gpu_milli"] < 1000
        assert (gpu in fitting_slots(pod, node)) if is_share else gpu == -1


def test_all_kinds_of_nodes_and_pods_occur():
    assert set(STATES.nodes["gpu_count"].tolist()) == {0, 1, 2, 4, 8, 16}
    assert {0, 1, 2} <= set(STATES.pods["gpu_count"].tolist())
    assert (STATES.pods["cpu_milli"] == 0).any()
    assert (STATES.nodes["cpu_milli_left"] == 0).any()
    assert (STATES.pods["gpu_models"] >= 0).any()


def test_a_seed_repeats_the_states():
    again = random_states(800, seed=3)
    assert np.array_equal(again.nodes, STATES.nodes)
    assert not np.array_equal(random_states(800, seed=4).nodes, STATES.nodes)


@pytest.mark.parametrize("slots", [8, 16])
def test_records_of_another_size_hold_the_same_nodes(slots):
    kept = STATES.with_slots(slots)
    assert kept.gpu_slots == slots
    assert len(kept) == (STATES.nodes["gpu_count"] <= slots).sum()
    first, same = kept.views()[0], next(v for v in STATES.views() if v[1].gpu_count <= slots)
    assert first[1].gpu_milli_left[:8] == same[1].gpu_milli_left[:8]
    assert first[1][:8] == same[1][:8]
