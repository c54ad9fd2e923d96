"""Measures how many steps environments make in a second of one core.

    python -m podium.rl.environment.speed ROUNDS

prints the figures as JSON: medians of so many rounds. All actions are first-fit, chosen by NumPy. A
step is one decision in one environment, with everything that is shown and paid, and with the next
episode where one is over. Times are processor time, so that neighbours count little.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass

from podium.evaluation.splits import FIRST_SEED
from podium.rl.environment.placement import Placement
from podium.rl.environment.rewards import PARTS
from podium.rl.environment.world import World
from podium.sim import Replay, Rounds
from podium.sim.stepping import VectorEnvironment

ENVIRONMENTS = 64
SEEDS = range(FIRST_SEED, FIRST_SEED + ENVIRONMENTS)
STEPS = 2000


@dataclass(frozen=True, slots=True)
class Speed:
    """Steps per second of 64 environments on 16 nodes."""

    bare: float  # of a replay, with records and the mask alone
    replay: float  # with observations and the reward
    rounds: float  # of rounds, whose episodes are short
    rounds_all_rewards: float  # the same, with every kind of reward
    nodes_1213: float  # of rounds on 1,213 nodes, 8 environments


def measure(repeats: int) -> Speed:
    """Measures every figure."""
    replays = World.of_trace("openb:16", protocol=Replay(), seeds=SEEDS)
    rounds = World.of_trace("openb", nodes=16, protocol=Rounds(), seeds=SEEDS)
    large = World.of_trace("openb", protocol=Rounds(), seeds=SEEDS[:8])
    everything = dict.fromkeys(PARTS, 1.0)
    return Speed(
        bare=_bare(replays, repeats),
        replay=_rate(Placement(replays, ENVIRONMENTS), repeats),
        rounds=_rate(Placement(rounds, ENVIRONMENTS), repeats),
        rounds_all_rewards=_rate(Placement(rounds, ENVIRONMENTS, reward=everything), repeats),
        nodes_1213=_rate(Placement(large, 8), repeats, STEPS // 10),
    )


def _rate(environment: Placement, repeats: int, steps: int = STEPS) -> float:
    def walk() -> None:
        for _ in range(steps):
            environment.step(environment.mask.argmax(axis=1))

    return steps * len(environment) / _median(walk, repeats)


def _bare(world: World, repeats: int) -> float:
    environment = VectorEnvironment([world.plan(seed) for seed in world.seeds])
    feasible = environment.observation.feasible

    def walk() -> None:
        environment.reset()
        for _ in range(STEPS):  # far from the end of the shortest
            environment.step(feasible.argmax(axis=1))

    return STEPS * len(environment) / _median(walk, repeats)


def _median(work: Callable[[], None], repeats: int) -> float:
    work()
    spans = []
    for _ in range(repeats):
        began = time.process_time()
        work()
        spans.append(time.process_time() - began)
    return statistics.median(spans)


if __name__ == "__main__":
    sys.stdout.write(json.dumps(asdict(measure(int(sys.argv[1])))) + "\n")
