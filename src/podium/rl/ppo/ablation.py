"""Trains PPO without one of its parts at a time, and compares what comes of it on unseen seeds.

The ready configurations are in `ablations/`: each says only what differs from the given one.
"""

from __future__ import annotations

import functools
import tempfile
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from podium.evaluation.paired import Difference
from podium.evaluation.splits import check_unseen
from podium.rl.configuration import Device, configuration_of
from podium.rl.learner import Trained
from podium.rl.ppo.algorithm import Configuration, make_judge, make_learner, make_world
from podium.rl.training import Hooks, Limits, Training, TrainingProgress

WHOLE = "ppo"
"""The row with all parts, which the others are compared with."""

UNSEEN_SEEDS = range(3000, 3020)


@dataclass(frozen=True, slots=True)
class AblationRow:
    """What training without a part came to."""

    name: str
    gpu_allocation: float  # share of the GPUs in use when all rounds are over
    difference: Difference | None  # in points of GPU allocation, to the row with all parts
    placed_share: float
    wait_rounds: float
    holds_per_pod: float
    steps: int


def ablations() -> dict[str, Path]:
    """Lists the ready configurations by name."""
    folder = Path(__file__).parent / "ablations"
    return {path.stem: path for path in sorted(folder.glob("*.toml"))}


def without(configuration: Configuration, path: Path) -> Configuration:
    """Changes a configuration as an ablation says."""
    changes = tomllib.loads(path.read_text(encoding="utf-8"))
    sections: dict[str, Any] = asdict(configuration)
    for name, keys in changes.items():
        sections[name] = sections.get(name, {}) | keys
    changed: Configuration = configuration_of(Configuration, sections)
    return changed


def ablate(
    configuration: Configuration, seed: int, device: Device, *,
    names: Iterable[str] | None = None, seeds: Iterable[int] = UNSEEN_SEEDS,
    listener: Callable[[str, TrainingProgress], None] = lambda _name, _progress: None,
) -> list[AblationRow]:  # fmt: skip
    """Trains the configuration, and each of its ablations as long; judges all on the same seeds.

    Raises:
        UsageError: a seed is one that policies are trained or chosen on, or a published one.
    """
    seeds = list(seeds)
    check_unseen(seeds)
    ready = ablations()
    chosen = {WHOLE: configuration}
    chosen |= {name: without(configuration, ready[name]) for name in names or ready}
    trained = {
        name: _trained(each, seed, device, functools.partial(listener, name))
        for name, each in chosen.items()
    }
    runs = {
        name: (_runs(result, chosen[name], seeds), steps)
        for name, (result, steps) in trained.items()
    }
    return [_row(name, *runs[name], runs[WHOLE][0]) for name in runs]


def _trained(
    configuration: Configuration, seed: int, device: Device,
    listener: Callable[[TrainingProgress], None],
) -> tuple[Trained, int]:  # fmt: skip
    limits: Limits = configuration.training.limits()
    if limits.seconds is not None:
        _warm_up(configuration, seed, device)
    with tempfile.TemporaryDirectory(prefix="podium-ablation-") as folder:
        learner = make_learner(configuration, seed, device)
        hooks = Hooks(listener=listener)
        end = Training(learner, make_judge(configuration), Path(folder), limits, hooks).run()
    return end.best, end.progress.steps


def _warm_up(configuration: Configuration, seed: int, device: Device) -> None:
    """Compiles all that a training runs, lest whoever comes first pay for it within its minutes."""
    learner = make_learner(configuration, seed, device)
    learner.iterate()
    make_judge(configuration)(learner.trained())


def _runs(
    trained: Trained, configuration: Configuration, seeds: Iterable[int]
) -> list[Mapping[str, float]]:
    from podium.rl.ppo.judging import figures_of_run, played, policy_of_trained

    policy, world = policy_of_trained(trained), make_world(configuration)
    return [figures_of_run(played(policy, world, seed)) for seed in seeds]


def _row(
    name: str, runs: list[Mapping[str, float]], steps: int, whole: list[Mapping[str, float]]
) -> AblationRow:
    def column(rows: list[Mapping[str, float]], key: str) -> Any:
        return np.array([row[key] for row in rows])

    mine, all_parts = column(runs, "gpu_allocation"), column(whole, "gpu_allocation")
    random = np.random.default_rng(0)
    return AblationRow(
        name, float(mine.mean()),
        None if name == WHOLE else Difference.of(100 * (mine - all_parts), random),
        float(column(runs, "placed_share").mean()), float(column(runs, "wait_rounds").mean()),
        float(column(runs, "holds_per_pod").mean()), steps,
    )  # fmt: skip
