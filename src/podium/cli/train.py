"""Trains policies by trial on the simulator: qtable, mlp, ppo, resume, template, ablate."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from podium.cli import figures
from podium.cli.flags import with_blocks
from podium.cli.group import new_app
from podium.cli.options import Json, RunId, StoreUrl, Waiting, read_settings, typed_command
from podium.cli.render import Rhythm, Screen, print_json
from podium.cli.signals import stopping_between
from podium.cli.watch import ScreenListener, watching
from podium.experiments.places import blaming
from podium.experiments.runs import check_name

if TYPE_CHECKING:
    from podium.experiments.listener import Listener
    from podium.experiments.train import TrainingOutcome, TrainingRequest
    from podium.experiments.training import TrainingSources
    from podium.rl.ppo.ablation import AblationRow
    from podium.rl.training import TrainingProgress
    from podium.settings import Settings

app = new_app(__doc__)

Algorithm = Literal["qtable", "mlp", "ppo"]
Episodes = Annotated[
    int | None,
    typer.Option(
        "--episodes",
        help="Episodes in all; the last iteration is played to its end.",
        min=1,
        show_default=False,
    ),
]
Minutes = Annotated[
    float | None,
    typer.Option(
        "--minutes", help="End after so many minutes; 0: no limit.", min=0, show_default=False
    ),
]
SaveInterval = Annotated[
    int | None,
    typer.Option(
        "--save-interval", help="Episodes between two checkpoints, each with a validation.", min=1,
        show_default=False,
    ),
]  # fmt: skip
Patience = Annotated[
    int | None,
    typer.Option(
        "--patience", help="End after so many validations without a better one; 0: never.", min=0,
        show_default=False,
    ),
]  # fmt: skip
DeviceName = Annotated[
    Literal["cpu", "gpu"] | None,
    typer.Option("--device", help="Where nets are trained.", show_default=False),
]
RunName = Annotated[
    str | None,
    typer.Option("--save", metavar="NAME", help="Name of the run.", show_default=False),
]
PlotFile = Annotated[
    Path | None,
    typer.Option("--plot", help="Draw the learning curve: .svg or .png.", show_default=False),
]


@dataclass(frozen=True, slots=True)
class LimitOptions:
    """The options that a resumed training may change."""

    episodes: Episodes = None
    minutes: Minutes = None
    save_interval: SaveInterval = None
    patience: Patience = None
    device: DeviceName = None

    def changes(self) -> dict[str, Any]:
        """Returns what was given, by the key of the configuration."""
        return {
            "episodes": self.episodes, "minutes": self.minutes,
            "save_interval": self.save_interval, "patience": self.patience, "device": self.device,
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class NewOptions:
    """The options of a new training."""

    config: Annotated[
        Path | None,
        typer.Option(
            "--config", help="Configuration; podium train template writes one.", show_default=False
        ),
    ] = None
    changes: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="KEY=VALUE", help="Change one key, such as training.patience=5.",
            show_default=False,
        ),
    ] = None  # fmt: skip
    seed: Annotated[int, typer.Option("--seed", help="Random seed.", min=0)] = 1000


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """The options of what is learned on."""

    trace: Annotated[
        list[str] | None,
        typer.Option(
            "--trace", help="Trace to train on, by name or file; repeatable.", show_default=False
        ),
    ] = None
    cluster: Annotated[
        str | None,
        typer.Option(
            "--cluster", help="Cluster by name or file, for traces without nodes.",
            show_default=False,
        ),
    ] = None  # fmt: skip
    waiting: Waiting = None

    def sources(self, settings: Settings, listener: Listener) -> TrainingSources | None:
        """Reads what is named, and says what of it is learned on."""
        from podium.experiments.training import training_sources
        from podium.traces.kubernetes.waiting import parse_waiting

        kinds = parse_waiting(self.waiting)
        if not self.trace and self.cluster is None:
            return None
        return training_sources(settings, self.trace or (), self.cluster, listener, kinds)


@app.command()
@with_blocks
def qtable(
    ctx: typer.Context, *, new: NewOptions, limits: LimitOptions, save: RunName = None,
    plot: PlotFile = None, store: StoreUrl = None, is_json: Json = False,
) -> None:  # fmt: skip
    """Trains a Q-table for a few nodes; ctrl-C stops it, resume continues."""
    request = _request("qtable", new, limits)
    _train(ctx, request, save, plot, store, is_json=is_json)


@app.command()
@with_blocks
def mlp(
    ctx: typer.Context, *, of: SourceOptions, new: NewOptions, limits: LimitOptions,
    save: RunName = None, plot: PlotFile = None, store: StoreUrl = None, is_json: Json = False,
) -> None:  # fmt: skip
    """Trains a net that scores a pod on a node; ctrl-C stops it, resume continues."""
    request = _request("mlp", _on(ctx, "mlp", of, new), limits)
    _train(ctx, request, save, plot, store, is_json=is_json)


@app.command()
@with_blocks
def ppo(
    ctx: typer.Context, *, of: SourceOptions, new: NewOptions, limits: LimitOptions,
    save: RunName = None, plot: PlotFile = None, store: StoreUrl = None, is_json: Json = False,
) -> None:  # fmt: skip
    """Trains a net that attends to all nodes and may hold pods; ctrl-C stops it."""
    request = _request("ppo", _on(ctx, "ppo", of, new), limits)
    _train(ctx, request, save, plot, store, is_json=is_json)


@app.command()
@with_blocks
def resume(
    ctx: typer.Context, run: RunId, *, limits: LimitOptions, plot: PlotFile = None,
    store: StoreUrl = None, is_json: Json = False,
) -> None:  # fmt: skip
    """Continues a training where it stopped, exactly as if it had not stopped."""
    from podium.experiments import train as training

    settings = read_settings(ctx, {"store.url": store})
    _check_plot(plot)
    screen = Screen(settings.display)
    with _following(screen) as listener, stopping_between() as is_stopped, blaming("argument RUN"):
        found = training.resume(settings, run, limits.changes(), listener, is_stopped)
    _show(screen, found, plot, is_json=is_json)


@app.command()
def template(
    algorithm: Annotated[Algorithm, typer.Argument(help="qtable, mlp or ppo.")],
) -> None:
    """Prints the configuration of an algorithm: every key, its default and its meaning."""
    from podium.rl.configuration import algorithm_named
    from podium.rl.configuration import template as written

    print(written(algorithm_named(algorithm).Configuration()), end="")


@app.command()
@with_blocks
def ablate(
    ctx: typer.Context,
    *,
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="ABLATION", help="Which; all by default.", show_default=False),
    ] = None,
    new: NewOptions,
    limits: LimitOptions,
    seeds: Annotated[
        str, typer.Option("--seeds", help="Seeds to measure on; nothing is trained on them.")
    ] = "3000-3019",
    is_json: Json = False,
) -> None:
    """Trains PPO without one of its parts at a time and compares the results."""
    from podium.errors import UnknownName
    from podium.evaluation.splits import check_unseen
    from podium.experiments.compare import read_seeds
    from podium.rl.ppo import ablation

    screen = Screen(read_settings(ctx).display)
    for name in names or ():
        if name not in ablation.ablations():
            raise UnknownName.among("ablation", name, ablation.ablations(), where="ABLATION")
    request, measured = _request("ppo", new, limits), read_seeds(seeds)
    with blaming("flag --seeds"):
        check_unseen(measured)
    rhythm = Rhythm()

    def show(name: str, progress: TrainingProgress) -> None:
        if screen.display.progress and rhythm.is_due():
            screen.note(f"{name}: {line_of(progress)}")

    found = ablation.ablate(
        request.configuration, request.seed, request.device, names=names,
        seeds=measured, listener=show,
    )  # fmt: skip
    if is_json:
        print_json(found)
    else:
        screen.table(_ABLATION_TITLES, [_ablation_row(each) for each in found])


_ABLATION_TITLES = (
    "training", "GPU", "difference", "95 % interval", "placed", "rounds waited", "holds per pod",
    "decisions",
)  # fmt: skip


def _ablation_row(row: AblationRow) -> tuple[object, ...]:
    gap = row.difference
    return (
        row.name, figures.percent(row.gpu_allocation),
        None if gap is None else figures.Figure(f"{gap.mean:+.2f}"),
        None if gap is None else figures.Figure(f"{gap.low:+.2f} .. {gap.high:+.2f}"),
        figures.percent(row.placed_share), figures.decimal(row.wait_rounds, 2),
        figures.decimal(row.holds_per_pod, 2), figures.count(row.steps),
    )  # fmt: skip


def _train(
    ctx: typer.Context, request: TrainingRequest, save: str | None, plot: Path | None,
    store: str | None, *, is_json: bool,
) -> None:  # fmt: skip
    from podium.experiments import train as training

    settings = read_settings(ctx, {"store.url": store})
    _check_plot(plot)
    name = request.algorithm if save is None else save
    check_name(name)
    entry = training.TrainingEntry(settings, name, typed_command())
    screen = Screen(settings.display)
    with _following(screen) as listener, stopping_between() as is_stopped:
        found = training.begin(entry, request, listener, is_stopped)
    _show(screen, found, plot, is_json=is_json)


def _on(ctx: typer.Context, algorithm: Algorithm, of: SourceOptions, new: NewOptions) -> NewOptions:
    """Writes traces and cluster as the changes of a configuration that they are."""
    settings = read_settings(ctx)
    with watching(Screen(settings.display)) as listener:
        found = of.sources(settings, listener)
    if found is None:
        return new
    told = [f"workload.traces={json.dumps(found.traces)}"]
    told.append(f"workload.cluster={json.dumps(found.cluster)}")
    told.append(f"workload.waiting={json.dumps(found.waiting)}")
    # All nodes of one's own cluster: what pods select may be on few of them.
    told += ["cluster.nodes=0"] if algorithm == "ppo" else []
    return replace(new, changes=[*told, *(new.changes or [])])


def _request(algorithm: Algorithm, new: NewOptions, limits: LimitOptions) -> TrainingRequest:
    from podium.errors import PodiumError
    from podium.experiments import train as training
    from podium.rl.configuration import (
        algorithm_named,
        read_configuration,
        with_changes,
    )

    if new.config is None:
        configuration = algorithm_named(algorithm).Configuration()
    else:
        configuration = read_configuration(algorithm, new.config)
    try:
        configuration = with_changes(configuration, new.changes or [])
    except PodiumError as error:
        error.where = ", ".join(filter(None, ("flag --set", error.where)))
        raise
    request = training.TrainingRequest(algorithm, configuration, new.seed)
    with blaming("flags of the limits"):
        return training.changed(request, limits.changes())


def _check_plot(plot: Path | None) -> None:
    if plot is not None:
        from podium.reports.plot import check_plot

        with blaming("flag --plot"):
            check_plot(plot)


class TrainingListener(ScreenListener):
    """Shows how far a training is: a line on a terminal, elsewhere one now and then."""

    def __init__(self, screen: Screen, line: Any) -> None:
        super().__init__(screen, ExitStack())
        self._line, self._rhythm = line, Rhythm()

    def training_progress(self, progress: TrainingProgress) -> None:
        """Shows the progress."""
        if self._line is not None:
            self._line(progress)
        elif self.screen.display.progress and self._rhythm.is_due():
            self.screen.note(line_of(progress))


@contextmanager
def _following(screen: Screen) -> Iterator[TrainingListener]:
    display = screen.display
    if not display.progress or display.quiet or not sys.stderr.isatty():
        yield TrainingListener(screen, None)
        return
    from rich.live import Live
    from rich.text import Text

    with Live(console=screen.console(sys.stderr), transient=True, refresh_per_second=4) as live:
        yield TrainingListener(screen, lambda progress: live.update(Text(line_of(progress))))


def line_of(progress: TrainingProgress) -> str:
    """Writes the progress of a training in one line."""
    told = [f"{progress.share:.0%}", f"{progress.episodes:,} episodes"]
    shown = progress.figures
    if "reward" in shown:
        told.append(f"reward {shown['reward']:.4g}")
    elif "loss" in shown:
        told.append(f"loss {shown['loss']:.4g}")
    if "gpu_allocation" in shown:
        told.append(f"allocation {100 * shown['gpu_allocation']:.2f} %")
    if progress.best_score is not None:
        told.append(f"best score {progress.best_score:.4g}")
    told.append(f"{progress.steps_per_s:,.0f} steps/s")
    if progress.eta_s is not None and progress.share > 0:
        told.append(f"{figures.duration(progress.eta_s)} left")
    return ", ".join(told)


def _show(
    screen: Screen, found: TrainingOutcome, plot: Path | None, *, is_json: bool
) -> None:  # fmt: skip
    if plot is not None:
        from podium.reports.training_plot import plot_training

        plot_training(found.figures, plot)
        screen.note(f"the learning curve is in {plot}")
    if is_json:
        print_json(found.as_object())
        return
    summary = found.summary
    best = summary["best_score"]
    screen.fields(
        {
            "run": found.run_id,
            "ended": found.ending,
            "episodes": f"{summary['episodes']:,}, {summary['steps']:,} decisions",
            "time": figures.duration(summary["seconds"]),
            "best": f"score {best:.4g} after {summary['best_episode']:,} episodes",
            **{f"validation {key}": f"{each:.6g}" for key, each in summary["validation"].items()},
        }
    )
    screen.note(
        f"podium evaluate run:{found.run_id} compares it; podium train resume {found.run_id} "
        "--episodes N continues up to N in all"
    )
