"""Sets a Q-table against heuristics in its own world, on seeds that nothing was trained on.

python bench/qtable.py [POLICY] [AIM]: 100 seeds, about a minute.
"""

from __future__ import annotations

import sys

import numpy as np

from podium.evaluation.paired import Difference
from podium.experiments.case import named_policy
from podium.rl.configuration import create_config
from podium.rl.qtable.algorithm import scores

SEEDS = range(3000, 3100)
OTHERS = ("compact", "balanced", "first-fit", "random", "round-robin")


def main(policy: str = "qtable", aim: str = "compact") -> None:
    """Prints the mean score of each policy, and the paired difference to it."""
    world = create_config("qtable", learning={"aim": aim})
    own = np.array(scores(named_policy(policy, "argument POLICY"), world, SEEDS))
    print(f"{policy:12} {own.mean():7.3f}")
    for name in OTHERS:
        theirs = np.array(scores(named_policy(name, name), world, SEEDS))
        gap = Difference.of(own - theirs, np.random.default_rng(1))
        print(f"{name:12} {theirs.mean():7.3f} {gap.mean:+7.3f} [{gap.low:+.3f}, {gap.high:+.3f}]")


if __name__ == "__main__":
    main(*sys.argv[1:])
