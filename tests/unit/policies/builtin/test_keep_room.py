import numpy as np

from podium.policies.builtin.keep_room import score
from support.views import node, pod

ANY_MODEL = 2**32 - 1
# Pods of one GPU with 1 CPU and 1 MiB are all the demand; or no pod has been seen.
USUAL = np.array([(1000, 1, 1, 1000, ANY_MODEL, ANY_MODEL, 1.0)])
UNSEEN = np.empty((0, 7))
MEMORY = (64000, 64000)


def test_a_pod_costs_usual_places_unseen_ones_and_what_it_leaves_free():
    two = node((16000, 16000), MEMORY, gpus=(1000, 1000))
    # A usual place, 3/15 for those of pods of 1 and 2 GPUs, 1/32 for a GPU and 15/512 for 15 CPUs:
    # 1.2605, 63 steps of 1/50.
    assert score(pod(1000, gpus=1), two, -1, USUAL) == -63


def test_untouched_nodes_are_kept_for_pods_that_nobody_has_seen():
    whole = node((64000, 64000), MEMORY, gpus=(1000,) * 8)
    begun = node((56000, 64000), MEMORY, gpus=(0,) + (1000,) * 7)
    one = pod(8000, gpus=1)
    assert score(one, begun, -1, UNSEEN) > score(one, whole, -1, UNSEEN)


def test_they_are_kept_though_agents_take_some_of_their_cpu():
    whole = node((60000, 64000), (60000, 64000), gpus=(1000,) * 8)
    begun = node((52000, 64000), (60000, 64000), gpus=(0,) * 4 + (1000,) * 4)
    one = pod(4000, gpus=1)
    assert score(one, begun, -1, UNSEEN) > score(one, whole, -1, UNSEEN)


def test_free_gpus_keep_their_share_of_the_cpu():
    taken = node((64000, 64000), MEMORY, gpus=(0,) * 8)
    begun = node((24000, 64000), MEMORY, gpus=(0,) * 5 + (1000,) * 3)
    hungry = pod(16000)
    assert score(hungry, taken, -1, UNSEEN) > score(hungry, begun, -1, UNSEEN)


def test_of_nodes_where_no_place_is_lost_the_fuller_one_is_filled():
    fuller = node((4000, 64000), MEMORY, gpus=(500, 0))
    emptier = node((40000, 64000), MEMORY, gpus=(500, 0))
    half = pod(1000, gpus=1, milli=500)
    assert score(half, fuller, 0, UNSEEN) > score(half, emptier, 0, UNSEEN)
