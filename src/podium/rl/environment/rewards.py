"""What a step of an environment is worth: a reward by name, a mixture, or a function."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from podium.errors import UnknownName, UsageError

Figures = npt.NDArray[np.float64]

REWARDS: dict[str, str] = {
    "gpu-allocation": "GPUs that were placed, as a share of the cluster's",
    "fragmentation": "how much FGD's fragmentation fell, as a share of the cluster's GPUs",
    "waiting": "minus the waits of pods that started, and of those that never did at the end",
    "balance": "how much the roots of the used shares of nodes grew, on average",
    "compactness": "how much the squares of the used shares of nodes grew, on average",
}
"""The rewards that have a name, and what each adds up."""

PARTS = tuple(REWARDS)


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """What the last step brought in each environment; a reward function is given one.

    Arrays are (num_environments,), and are written in place by the next step.
    """

    gpu_allocation: Figures  # GPUs placed by the step, as a share of the cluster's
    fragmentation: Figures  # fall of FGD's fragmentation, as a share of the cluster's GPUs
    waiting: Figures  # minus waits that ended: in mean run times, rounds or arrivals, per pod
    balance: Figures  # growth of the mean root of used shares
    compactness: Figures  # growth of the mean square of used shares
    is_held: npt.NDArray[np.bool_]  # the step held the pod back
    is_done: npt.NDArray[np.bool_]  # the episode ended with the step
    final_allocation: Figures  # of an episode that ended: the share of GPUs in use; else NaN

    @classmethod
    def of(
        cls, parts: Figures, is_held: npt.NDArray[np.bool_], is_done: npt.NDArray[np.bool_],
        final_allocation: Figures,
    ) -> Outcome:  # fmt: skip
        """Shows the columns of what was written, by name."""
        allocation, fragmentation, waiting, balance, compactness = parts.T
        return cls(
            allocation, fragmentation, waiting, balance, compactness, is_held, is_done,
            final_allocation,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Account:
    """Which sums an environment has to keep for its reward; each takes time."""

    has_fragmentation: bool
    has_use: bool  # roots and squares of used shares

    @classmethod
    def of(cls, weights: Figures | None) -> Account:
        """Keeps what has a weight, and everything for a function."""
        if weights is None:
            return cls(True, True)
        _, fragmentation, _, balance, compactness = weights.tolist()
        return cls(fragmentation != 0, balance != 0 or compactness != 0)


RewardFunction = Callable[[Outcome], npt.ArrayLike]
Reward = str | Mapping[str, float] | RewardFunction


def weights_of(reward: Reward) -> Figures | None:
    """Gives the weight of each part, or nothing for a function.

    Raises:
        UsageError: no such reward, or a weight that is no number.
    """
    if isinstance(reward, str):
        return weights_of({reward: 1.0})
    if not isinstance(reward, Mapping):
        return None
    weights = np.zeros(len(PARTS))
    for name, weight in reward.items():
        if name not in REWARDS:
            raise UnknownName.among("reward", str(name), list(REWARDS))
        if not np.isfinite(weight):
            raise UsageError(f"the weight of {name} is {weight}", hint="give a finite number")
        weights[PARTS.index(name)] = weight
    return weights
