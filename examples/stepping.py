"""Decides pods from outside: one run by hand, then eight runs at once.

python examples/stepping.py
"""

import numpy as np

from podium.sim import Inflation, Rounds, Setup
from podium.sim.stepping import HOLD_ACTION, Episode, VectorEnvironment, stepped_plan
from podium.traces import LoadOptions, load_trace


def by_hand() -> None:
    """Holds the first offer back and gives every other pod the fullest node."""
    trace = load_trace("openb", LoadOptions(seed=1000, nodes=4, pods=30))
    episode = Episode.of(trace.cluster, trace.workload, Rounds(), Setup(seed=1000))
    first = episode.offer
    print(f"{first.name} asks for {first.pod.gpu_count} GPUs, fits {first.feasible.sum()} nodes")
    offer = episode.hold()
    while offer is not None:
        free = offer.nodes["gpu_milli_left"].sum(axis=1)
        node = int(np.where(offer.feasible, free, np.iinfo(np.int64).max).argmin())
        offer = episode.apply(node)
    result = episode.result()
    print(f"{result.is_placed.sum()} of {len(result.node)} pods placed, {result.holds.sum()} held")


def together() -> None:
    """Steps eight runs with one array of actions: any node that fits, now and then a hold."""
    random = np.random.default_rng(1000)
    trace = load_trace("openb", LoadOptions(seed=1000, nodes=16, pods=400))
    plans = [
        stepped_plan(trace.cluster, trace.workload, Inflation(), Setup(seed))
        for seed in range(1000, 1008)
    ]
    environment = VectorEnvironment(plans)
    shown = environment.observation  # written in place by every step
    steps = 0
    while not shown.is_done.all():
        preferences = random.random(shown.feasible.shape)
        actions = np.where(shown.feasible, preferences, -1.0).argmax(axis=1)
        actions[random.random(len(actions)) < 0.01] = HOLD_ACTION
        environment.step(actions)
        steps += 1
    placed = [int(environment.result(i).is_placed.sum()) for i in range(len(environment))]
    print(f"{steps} steps of {len(environment)} environments; pods placed: {placed}")


if __name__ == "__main__":
    by_hand()
    together()
