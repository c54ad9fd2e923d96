"""What PPO is configured by, and how its worlds, its learner and its judge are made of that."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from podium.evaluation.splits import EPISODES, VALIDATION
from podium.rl.configuration import Device, TrainingSection, Unfit, option
from podium.rl.learner import Learner, Trained
from podium.rl.training import SCORE, Judge
from podium.traces.notes import WAITING

if TYPE_CHECKING:
    from podium.rl.environment.world import Draw, World
    from podium.sim.protocols import Rounds

DEVICES: tuple[Device, ...] = ("cpu", "gpu")


MIXED = "mixed"
"""Names, among traces, the workloads of `podium.rl.ppo.mixture`."""

MIXED_KINDS, ROUNDING = 3, 1e-6
"""Parts of a GPU, one GPU and eight; shares add up to 1 within rounding."""


@dataclass(frozen=True, slots=True)
class ClusterSection:
    """The clusters that are learned on."""

    nodes: int = option(
        16, "Nodes, in the proportions of the trace; 0: all that it has.", least=0, most=100_000
    )
    perturbed: bool = option(False, "Leaves some nodes out and resizes others (evaluation).")
    sizes: tuple[int, ...] = option(
        (),
        "Numbers of nodes, one for each iteration in turn; empty: always nodes.",
        least=1,
        most=100_000,
        fewest=0,
    )


@dataclass(frozen=True, slots=True)
class WorkloadSection:
    """The pods that are asked to be placed."""

    traces: tuple[str, ...] = option(
        ("openb",), "Traces or workload families, in turn; mixed: by the mix below."
    )
    cluster: str = option("", "Another trace, whose nodes are taken; empty: those of each trace.")
    waiting: tuple[str, ...] = option(
        (), "Work of a dump that is tried though it waits: gated, suspended.", among=WAITING,
        fewest=0,
    )  # fmt: skip
    mix: tuple[float, ...] = option(
        (0.3, 0.3, 0.4),
        "Shares of the demand of parts of a GPU, of one GPU and of eight.",
        least=0,
        most=1,
    )
    demands: tuple[float, ...] = option(
        (1.0, 1.1, 1.2, 1.3),
        "GPU demand of all pods, as shares of the cluster's GPUs, in turn.",
        least=0.01,
        most=100,
    )

    def __post_init__(self) -> None:
        if len(self.mix) != MIXED_KINDS or abs(sum(self.mix) - 1) > ROUNDING:
            raise Unfit("mix", self.mix, "three shares that add up to 1")
        from podium.traces.catalogue import is_known

        for trace in self.traces:
            if trace != MIXED and not is_known(trace):
                wanted = f"traces that `podium traces list` shows, files, or {MIXED}"
                raise Unfit("traces", trace, wanted)
        if self.cluster and not is_known(self.cluster):
            raise Unfit(
                "cluster", self.cluster, "a trace that `podium traces list` shows, or a file"
            )


@dataclass(frozen=True, slots=True)
class EnvironmentSection:
    """What an episode is, and what it is worth."""

    environments: int = option(
        128, "Episodes that are played at the same time.", least=1, most=65_536
    )
    max_rounds: int = option(6, "Rounds in which the queue is offered.", least=1, most=10_000)
    max_holds: int = option(
        3, "Holds after which a pod may no longer be held; 0: it never may.", least=0, most=10_000
    )
    look_ahead: int = option(
        4, "Pods behind the offered one that the network sees; 0: none.", least=0, most=16
    )
    hold: bool = option(True, "Lets the policy hold pods back.")
    hold_cost: float = option(
        2e-5,
        "What a hold costs, as a share of the GPUs: without it, pods would wait without benefit.",
        least=0,
        most=1,
    )
    reward: Literal["dense", "sparse"] = option(
        "dense", "dense: GPU allocation gained by each decision; sparse: all of it at the end."
    )


@dataclass(frozen=True, slots=True)
class NetworkSection:
    """The network."""

    width: int = option(
        32, "Numbers that describe the pod, each node and the summary.", least=1, most=1024
    )
    heads: int = option(4, "Heads of the attention over nodes.", least=1, most=64)
    attention: Literal["cross", "self", "none"] = option(
        "cross", "cross: the pod attends to the nodes; self: nodes to each other before; none."
    )


@dataclass(frozen=True, slots=True)
class PpoSection:
    """Proximal policy optimisation (Schulman et al. 2017)."""

    steps: int = option(
        256,
        "Decisions of each environment in one iteration: more than a whole episode has.",
        least=1,
        most=10**6,
    )
    epochs: int = option(3, "Passes over the decisions of an iteration.", least=1, most=1000)
    minibatches: int = option(16, "Parts of each pass.", least=1, most=65_536)
    discount: float = option(1.0, "Weight of what comes one decision later.", least=0, most=1)
    trace: float = option(
        1.0,
        "Lambda of the generalised advantage estimate; 1: what came of it in the end.",
        least=0,
        most=1,
    )
    clip: float = option(
        0.2, "How far the chance of an action may move in an iteration.", least=0, most=1
    )
    value_weight: float = option(0.5, "Weight of the critic's error.", least=0, most=1000)
    max_gradient: float = option(0.5, "Norm to which gradients are cut.", least=1e-6, most=10**6)
    learning_rate: float = option(
        1e-3, "At the beginning; it falls to a tenth.", least=1e-9, most=10
    )
    entropy: float = option(
        0.003, "Weight of the entropy at the beginning; it falls to a tenth.", least=0, most=100
    )
    schedule_iterations: int = option(180, "Iterations in which both fall.", least=1, most=10**9)
    reward_scale: float = option(
        10.0, "What rewards are multiplied by for the critic.", least=1e-6, most=10**6
    )


@dataclass(frozen=True, slots=True)
class WarmStartSection:
    """Imitation of another policy before the first iteration."""

    teacher: str = option(
        "fed-gpu", "Policy whose placements are imitated first; empty: none.", is_policy=True
    )
    steps: int = option(64, "Decisions of each environment to imitate.", least=1, most=10**6)
    epochs: int = option(30, "Passes over them.", least=1, most=10_000)
    learning_rate: float = option(3e-3, "Of the imitation; it falls to 0.", least=1e-9, most=10)
    minibatch: int = option(512, "Decisions in one step of the imitation.", least=1, most=10**6)
    hold_bias: float = option(-2.0, "Logit of holding at the beginning.", least=-100, most=100)
    weights: str = option(
        "",
        "File of weights, such as best.npz of a run, to begin with in place of a teacher.",
        is_policy=True,
    )


@dataclass(frozen=True, slots=True)
class ValidationSection:
    """What a policy is chosen by."""

    runs: int = option(
        20,
        "Runs of a validation: the seeds 2000 to 2019, the traces and the demands in turn.",
        least=1,
        most=10_000,
    )


@dataclass(frozen=True, slots=True)
class Configuration:
    """All of it."""

    cluster: ClusterSection = field(default_factory=ClusterSection)
    workload: WorkloadSection = field(default_factory=WorkloadSection)
    environment: EnvironmentSection = field(default_factory=EnvironmentSection)
    network: NetworkSection = field(default_factory=NetworkSection)
    warm_start: WarmStartSection = field(default_factory=WarmStartSection)
    ppo: PpoSection = field(default_factory=PpoSection)
    validation: ValidationSection = field(default_factory=ValidationSection)
    training: TrainingSection = field(
        default_factory=lambda: TrainingSection(episodes=20_000, save_interval=1000)
    )

    def __post_init__(self) -> None:
        decisions = self.ppo.steps * self.environment.environments
        if self.ppo.minibatches > decisions:
            wanted = f"at most the decisions of an iteration, {decisions:,}"
            raise Unfit("ppo.minibatches", self.ppo.minibatches, wanted)
        if MIXED in self.workload.traces and not self.cluster.nodes:
            raise Unfit("cluster.nodes", 0, f'at least 1 with the trace "{MIXED}"')


def make_world(configuration: Configuration, nodes: int | None = None) -> World:
    """Makes the world of a configuration: traces and demands in turn, by seed."""
    from podium.rl.environment.world import World

    draws, protocol = _draws(configuration, nodes), _protocol(configuration)
    return World(lambda seed: draws[seed % len(draws)](seed), protocol, EPISODES)


def _protocol(configuration: Configuration) -> Rounds:
    from podium.sim.protocols import Holding, Rounds

    rules = configuration.environment
    return Rounds(rules.max_rounds, Holding(max_holds=rules.max_holds if rules.hold else 0))


def _draws(configuration: Configuration, nodes: int | None) -> list[Draw]:
    """Lists what is drawn in turn: every trace with every demand."""
    from podium.rl.environment.world import World
    from podium.rl.ppo.mixture import draw_mixed

    cluster, work = configuration.cluster, configuration.workload
    size = cluster.nodes if nodes is None else nodes
    return [
        functools.partial(draw_mixed, size, demand, work.mix)
        if trace == MIXED
        else World.of_trace(
            trace, demand=demand, nodes=size or None, is_perturbed=cluster.perturbed,
            protocol=_protocol(configuration), cluster=work.cluster, waiting=",".join(work.waiting),
        ).draw
        for trace in work.traces
        for demand in work.demands
    ]  # fmt: skip


def make_learner(configuration: Configuration, seed: int, device: Device) -> Learner:
    """Makes the learner; JAX is imported here."""
    from podium.rl.ppo.learner import PpoLearner

    return PpoLearner(configuration, seed, device)


def make_judge(configuration: Configuration) -> Judge:
    """Makes the judge: GPU allocation of the policy, as it is served, on validation seeds."""
    draws, protocol = _draws(configuration, None), _protocol(configuration)
    first, size = VALIDATION.start, len(VALIDATION)
    runs = range(first, first + configuration.validation.runs)

    def judge(trained: Trained) -> Mapping[str, float]:
        from podium.rl.environment.world import World
        from podium.rl.ppo.judging import figures_of_run, mean_figures, played, policy_of_trained

        policy = policy_of_trained(trained)
        figures = mean_figures(
            figures_of_run(
                played(policy, World(draws[run % len(draws)], protocol), first + run % size)
            )
            for run in runs
        )
        return figures | {SCORE: figures["gpu_allocation"]}

    return judge


def card_facts(configuration: Configuration) -> dict[str, Any]:
    """Lists what a card says about the network, and what it was trained on."""
    from podium.rl.configuration import as_object

    rules, warm = configuration.environment, configuration.warm_start
    begun = f"imitation of {warm.teacher}" if warm.teacher else "none"
    return {
        "attention": configuration.network.attention,
        "may_hold": rules.hold,
        "look_ahead": rules.look_ahead,
        "max_rounds": rules.max_rounds,
        "max_holds": rules.max_holds,
        "warm_start": f"weights of {Path(warm.weights).name}" if warm.weights else begun,
        "configuration": as_object(configuration),
    }
