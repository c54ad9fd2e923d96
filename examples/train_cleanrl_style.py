"""Learns to place pods with a trainer that knows Gymnasium alone, in one file, as CleanRL's are.

python examples/train_cleanrl_style.py

The policy is linear: one weight for each feature of a node. It is trained by policy gradient
(REINFORCE with a baseline for each cluster, and Adam), and judged on clusters and pods that it was
not trained on. Needs the extra 'rl'.
"""

from dataclasses import dataclass

import gymnasium
import numpy as np

import podium.rl  # registers podium/Placement-v0
from podium.policies import load
from podium.sim import Inflation, Setup, simulate


@dataclass
class Args:
    """What can be tuned."""

    num_envs: int = 64
    iterations: int = 60
    learning_rate: float = 0.3
    seed: int = 1
    nodes: int = 16


def make_envs(args: Args, seeds: range) -> gymnasium.vector.VectorEnv:
    """Makes one environment for each seed: pods arrive until they ask for 130 % of the GPUs."""
    return gymnasium.make_vec(
        "podium/Placement-v0", num_envs=len(seeds), trace="openb", nodes=args.nodes,
        protocol="inflation", look_ahead=0, seeds=seeds,
    )  # fmt: skip


def probabilities(weights: np.ndarray, nodes: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """Prefers nodes by their features; what the mask forbids, and holding, is not chosen."""
    scores = np.where(mask[:, :-1], np.einsum("enf,f->en", nodes, weights), -np.inf)
    chances = np.exp(scores - scores.max(axis=1, keepdims=True))
    return chances / chances.sum(axis=1, keepdims=True)


def play(
    envs: gymnasium.vector.VectorEnv, weights: np.ndarray, random: np.random.Generator | None
) -> tuple[np.ndarray, np.ndarray]:
    """Plays one episode in each environment; gives the returns and the gradients of log p."""
    shown, info = envs.reset(seed=0)
    every = np.arange(envs.num_envs)
    is_going = np.ones(len(every), bool)
    returns, gradients = np.zeros(len(every)), np.zeros((len(every), len(weights)))
    while is_going.any():
        nodes = shown["nodes"]
        chances = probabilities(weights, nodes, info["action_mask"])
        if random is None:
            actions = chances.argmax(axis=1)
        else:
            actions = (random.random((len(every), 1)) < chances.cumsum(axis=1)).argmax(axis=1)
        expected = np.einsum("en,enf->ef", chances, nodes)
        gradients[is_going] += (nodes[every, actions] - expected)[is_going]
        shown, rewards, is_over, is_cut, info = envs.step(actions)
        returns[is_going] += rewards[is_going]
        is_going &= ~(is_over | is_cut)
    return returns, gradients


def train(args: Args) -> np.ndarray:
    """Climbs the gradient of the return."""
    envs = make_envs(args, range(1000, 1000 + args.num_envs))
    unseen = make_envs(args, range(3000, 3020))
    random = np.random.default_rng(args.seed)
    weights = np.zeros(envs.single_observation_space["nodes"].shape[1])
    print(f"at random          {play(unseen, weights, random)[0].mean():.0%}")
    baseline, _ = play(envs, weights, random)
    mean, square = np.zeros_like(weights), np.zeros_like(weights)
    for i in range(1, args.iterations + 1):
        returns, gradients = play(envs, weights, random)
        advantage = returns - baseline
        baseline += 0.2 * advantage
        advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
        gradient = (advantage[:, None] * gradients).mean(axis=0)
        mean, square = 0.9 * mean + 0.1 * gradient, 0.99 * square + 0.01 * gradient**2
        step = mean / (1 - 0.9**i) / (np.sqrt(square / (1 - 0.99**i)) + 1e-8)
        weights += args.learning_rate * step
        if i % 20 == 0:
            print(f"after {i} iterations {play(unseen, weights, None)[0].mean():.0%}")
    return weights


def beside(args: Args) -> None:
    """Runs policies of Podium on the same clusters and pods."""
    world = podium.rl.World.of_trace("openb", nodes=args.nodes, protocol=Inflation())
    for name in ("worst-fit", "best-fit", "fgd"):
        policy, found = load(name), []
        for seed in range(3000, 3020):
            run = simulate(*world.draw(seed), policy, world.protocol, Setup(seed))
            found.append(run.metrics.gpu_allocation)
        print(f"{name:<18} {np.mean(found):.0%}")


if __name__ == "__main__":
    print("GPU allocation at 130 % demand, on seeds that were not trained on")
    train(Args())
    beside(Args())
