"""The way `qtable` as the training loop sees it: configuration, learner, judge."""

from __future__ import annotations

from podium.evaluation.splits import VALIDATION
from podium.policies import Policy
from podium.policies.networks import qtable
from podium.policies.weights import Weights
from podium.rl.configuration import Device
from podium.rl.learner import Learner, Trained
from podium.rl.qtable.learner import Configuration, QTableLearner
from podium.rl.qtable.world import worth_of
from podium.rl.training import SCORE, Judge

__all__ = ["DEVICES", "Configuration", "make_judge", "make_learner"]

DEVICES: tuple[Device, ...] = ("cpu",)


def make_learner(configuration: Configuration, seed: int, device: Device = "cpu") -> Learner:
    """Makes the learner; there is nothing for a GPU to do."""
    del device
    return QTableLearner(configuration, seed)


def make_judge(configuration: Configuration) -> Judge:
    """Makes a judge: the mean worth of the used shares on the validation seeds, times 100."""
    return lambda trained: {SCORE: score(policy_of(trained), configuration, VALIDATION)}


def policy_of(trained: Trained, name: str = "q-table") -> Policy:
    """Makes the policy of what was learned so far."""
    return qtable.make(Weights(name, trained.arrays, trained.facts))


def score(policy: Policy, configuration: Configuration, seeds: range) -> float:
    """Returns the mean worth that a policy reaches in the world of a configuration, times 100."""
    found = scores(policy, configuration, seeds)
    return sum(found) / len(found)


def scores(policy: Policy, configuration: Configuration, seeds: range) -> list[float]:
    """Returns the worth that a policy reaches in the world of a configuration, by seed."""
    of, world = configuration.state.condensing(), configuration.world
    return [
        100 * worth_of(world.simulated(policy, of.resources, seed), configuration.learning.aim, of)
        for seed in seeds
    ]
