"""Compares PPO, which may hold pods back, with the usual policies in rounds, on unseen seeds.

python bench/selective_scheduling.py
python bench/selective_scheduling.py --nodes 1213 --demands 1.3 --seeds 3
python bench/selective_scheduling.py --workload mixed
python bench/selective_scheduling.py --workload openb:16        # nodes that it never saw
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from podium.evaluation.paired import Difference
from podium.model.workload import Shapes
from podium.policies import HOLD, ClusterPolicy, PairPolicy, Policy, load
from podium.policies.session import Situation
from podium.rl.configuration import create_config
from podium.rl.environment.world import World
from podium.rl.ppo.algorithm import make_world
from podium.rl.ppo.judging import figures_of_run, played

FIRST_SEED = 3000
WHOLE_FIRST = "whole-first "
"""Begins the names of the rule that a person would write: see `WholeFirst`."""

PLACING = (
    "round-robin", "best-fit", "compact", "worst-fit", "balanced", "first-fit", "kube-default",
    "kube-most-allocated", "fgd", "fed-gpu", "usable-gpu", "mlp",
)  # fmt: skip
HOLDING = (
    "patient-84",
    "patient-93",
    *(f"{WHOLE_FIRST}{name}" for name in ("fgd", "fed-gpu", "usable-gpu", "mlp")),
)


class WholeFirst:
    """Holds pods with less than a whole GPU in the first round; scores as another policy.

    It names a node alone: the GPU of a share is the tightest that fits, whatever that policy says.
    """

    look_ahead = 0

    def __init__(self, policy: PairPolicy, shapes: Shapes, seed: int) -> None:
        self._session, self._situation = policy.session(shapes, seed=seed), Situation()

    def observe(self, situation: Situation) -> None:
        """Takes note of the round."""
        self._situation = situation

    def choose(self, pod: Any, nodes: Any, feasible: Any) -> float:
        """Returns the best node by the scores, or HOLD."""
        now = self._situation
        if now.may_hold and now.round == 0 and pod.gpu_count * pod.gpu_milli < 1000:
            return HOLD
        scores = self._session.scores(pod, nodes).scores
        return int(np.where(feasible, scores, -np.inf).argmax())


def named(name: str, world: World, seed: int) -> Policy:
    """Loads a policy, or puts the rule before one, which knows the pods of its seed."""
    if not name.startswith(WHOLE_FIRST):
        return load(name)
    scoring, shapes = load(name.removeprefix(WHOLE_FIRST)), world.draw(seed)[1].shapes()
    return ClusterPolicy(name, partial(WholeFirst, scoring, shapes), may_hold=True)


def main() -> None:
    """Reads the options and prints one table for each demand."""
    options = _options()
    for demand in options.demands:
        world = make_world(
            create_config(
                "ppo",
                cluster={"nodes": 0 if options.workload == "openb:16" else options.nodes,
                         "perturbed": options.perturbed},
                workload={"traces": [options.workload], "demands": [demand]},
            )
        )  # fmt: skip
        print(f"\n{options.workload}, {demand:.0%} of the GPUs asked for")
        seeds = range(options.first_seed, options.first_seed + options.seeds)
        for line in _table(options.policy, world, seeds):
            print(line, flush=True)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--policy", default="ppo")
    parser.add_argument("--workload", default="openb")
    parser.add_argument("--nodes", type=int, default=16)
    parser.add_argument("--demands", type=float, nargs="+", default=[1.0, 1.15, 1.3])
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--first-seed", type=int, default=FIRST_SEED)
    parser.add_argument("--perturbed", action="store_true")
    return parser.parse_args()


def _table(own: str, world: World, seeds: range) -> Iterator[str]:
    titles = ("GPU %", "gain", "95 % interval", "relative", "placed %", "rounds waited", "holds")
    yield f"{'policy':20}" + "".join(f"{title:>16}" for title in titles)
    best: np.ndarray | None = None
    for name in (own, *PLACING, *HOLDING):
        began = time.perf_counter()
        runs = [figures_of_run(played(named(name, world, seed), world, seed)) for seed in seeds]
        took_s = time.perf_counter() - began
        mean = {key: float(np.mean([run[key] for run in runs])) for key in runs[0]}
        found = 100 * np.array([run["gpu_allocation"] for run in runs])
        best = found if best is None else best
        gap = Difference.of(best - found, np.random.default_rng(0))
        cells = (
            f"{found.mean():.2f}", f"{gap.mean:+.2f}", f"{gap.low:+.2f} to {gap.high:+.2f}",
            f"{best.mean() / found.mean() - 1:+.1%}", f"{100 * mean['placed_share']:.1f}",
            f"{mean['wait_rounds']:.2f}", f"{mean['holds_per_pod']:.2f}",
        )  # fmt: skip
        yield f"{name:20}" + "".join(f"{cell:>16}" for cell in cells) + f"  {took_s:.1f} s"


if __name__ == "__main__":
    main()
