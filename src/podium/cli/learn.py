"""Shows how the online agent learns where jobs run fast, in simulated worlds."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from podium.cli import figures
from podium.cli.case_options import Seed
from podium.cli.group import new_app
from podium.cli.options import Json, read_settings
from podium.cli.render import Screen, print_json
from podium.cli.signals import stoppable
from podium.errors import UsageError

if TYPE_CHECKING:
    from podium.online.world import WorldPlan
    from podium.settings import Settings

Number = TypeVar("Number", int, float)

JOBS = 1000
NEIGHBOURS = 0.2
"""Default share of jobs that run beside another one."""

MOST_JOBS, MOST_JOB_TYPES, MOST_GPU_TYPES = 100_000, 1000, 64
WIDEST = 2.0

TITLES = {"online": "online", "never-explore": "never", "epsilon": "epsilon"}
"""Of the strategies that have something to regret."""

app = new_app()


@app.command()
@stoppable
def learn(
    ctx: typer.Context,
    seed: Seed = None,
    seeds: Annotated[
        str | None,
        typer.Option("--seeds", help="One world per seed: 1000-1019 or 1,5,9.", show_default=False),
    ] = None,
    jobs: Annotated[
        int | None, typer.Option("--jobs", help="Number of jobs.", show_default=False)
    ] = None,
    job_types: Annotated[
        int | None, typer.Option("--job-types", help="Number of job types.", show_default=False)
    ] = None,
    gpu_types: Annotated[
        int | None, typer.Option("--gpu-types", help="Number of GPU types.", show_default=False)
    ] = None,
    noise: Annotated[
        float | None,
        typer.Option("--noise", help="Spread of run times; 0.2: 20 %.", show_default=False),
    ] = None,
    pair_spread: Annotated[
        float | None,
        typer.Option(
            "--pair-spread",
            help="How much jobs differ in which GPUs suit them, in ln(run time).",
            show_default=False,
        ),
    ] = None,
    neighbours: Annotated[
        float | None,
        typer.Option(
            "--neighbours", help="Share of jobs that run beside another.", show_default=False
        ),
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option("--plot", help="Plot regret over time (.svg or .png).", show_default=False),
    ] = None,
    is_json: Json = False,
) -> None:
    """Shows how the online agent learns where jobs run fast, in simulated worlds.

    The agent is the one in `podium serve`. Run times are hidden from it; an oracle that knows them
    shows how much each decision loses.
    """
    settings = read_settings(ctx, {"simulate.seed": seed})
    screen = Screen(settings.display)
    plan = _world_plan(job_types, gpu_types, noise, pair_spread, neighbours)
    count = _within("jobs", jobs, JOBS, 1, MOST_JOBS)
    found = _run(screen, settings, plan, count, _seeds(settings, seeds), plot)
    return print_json(found) if is_json else show(screen, found)


def _run(
    screen: Screen,
    settings: Settings,
    plan: WorldPlan,
    jobs: int,
    seeds: tuple[int, ...],
    plot: Path | None,
) -> dict[str, Any]:
    """Plays the loop of scoring and observing in every world, and returns the figures."""
    from podium.online.parameters import Parameters
    from podium.online.strategies import STRATEGIES
    from podium.online.trial import LearningTrial, run_trial
    from podium.reports.learning_plot import plot_learning
    from podium.reports.plot import check_plot

    trial = LearningTrial(plan, jobs, seeds, Parameters.of(settings.online))
    if plot is not None:
        check_plot(plot)
    with screen.progress("learning", len(STRATEGIES) * len(trial.seeds)) as advance:
        found = run_trial(trial, advance)
    if plot is not None:
        plot_learning(found, plot)
        screen.note(f"drew {plot}")
    return found


def _world_plan(
    job_types: int | None,
    gpu_types: int | None,
    noise: float | None,
    pair_spread: float | None,
    neighbours: float | None,
) -> WorldPlan:
    from podium.online.world import WorldPlan

    default = WorldPlan()
    return WorldPlan(
        job_types=_within("job_types", job_types, default.job_types, 1, MOST_JOB_TYPES),
        gpu_types=_within("gpu_types", gpu_types, default.gpu_types, 1, MOST_GPU_TYPES),
        noise=_within("noise", noise, default.noise, 0.0, WIDEST),
        pair_spread=_within("pair_spread", pair_spread, default.pair_spread, 0.0, WIDEST),
        neighbour_share=_within("neighbours", neighbours, NEIGHBOURS, 0.0, 1.0),
    )


def _seeds(settings: Settings, text: str | None) -> tuple[int, ...]:
    if text is None:
        return (_within("seed", settings.simulate.seed, 0, 0, 2**63 - 1),)
    if settings.origins["simulate.seed"].startswith("flag"):
        raise UsageError(
            "--seed and --seeds exclude each other", where="flag --seeds", hint="give one of them"
        )
    from podium.experiments.compare import read_seeds

    return tuple(read_seeds(text))


def _within(
    name: str, value: Number | None, default: Number, least: Number, most: Number
) -> Number:
    if value is None:
        return default
    if not least <= value <= most:
        flag = f"--{name.replace('_', '-')}"
        raise UsageError(
            f"{flag} cannot be {value:g}",
            where=f"flag {flag}",
            hint=f"give a number from {least:,} to {most:,}",
        )
    return value


def show(screen: Screen, found: dict[str, Any]) -> None:
    """Prints what the agent lost and what it learned, for people."""
    world, online = found["world"], found["ways"]["online"]
    screen.fields(
        {
            "policy": found["policy"],
            "world": f"{figures.counted(world['job_types'], 'job type')}, "
            f"{figures.counted(world['gpu_types'], 'GPU type')}, "
            f"{figures.percent(world['noise'], 0)} noise, "
            f"{figures.percent(world['neighbour_share'], 0)} of jobs beside another",
            "seeds": _worlds(found["seeds"]),
            "decisions": f"{found['jobs']:,}: {figures.percent(online['exploration'])} exploration "
            f"(cap {figures.percent(found['exploration_cap'], 0)}), "
            f"{figures.percent(online['forced'])} forced",
        }
    )
    _regret(screen, found)
    _strategies(screen, found["ways"], found["late"])
    _learned(screen, found)


def _worlds(seeds: list[int]) -> str:
    if len(seeds) == 1:
        return str(seeds[0])
    return f"{seeds[0]} to {seeds[-1]}; means over {len(seeds)} worlds"


def _regret(screen: Screen, found: dict[str, Any]) -> None:
    print("\nregret per decision: how much longer a job takes than on the oracle's choice")
    ways = found["ways"]
    rows = [
        [
            mark,
            *(figures.percent(ways[name]["regret"][at]) for name in TITLES),
            *(figures.percent(ways[name]["regret_so_far"][at]) for name in TITLES),
        ]
        for at, mark in enumerate(found["decisions"])
    ]
    screen.table(["decisions", *TITLES.values(), *(f"all {n}" for n in TITLES.values())], rows)


def _strategies(screen: Screen, ways: dict[str, Any], late: int) -> None:
    print("\nregret of all decisions and of the last ones; time of all jobs above the oracle's")
    rows = [
        [
            name,
            figures.percent(found["mean_regret"]),
            figures.percent(found["late_regret"]),
            figures.percent(found["time_excess"]),
            figures.percent(found["exploration"]),
            figures.percent(found["forced"]),
        ]
        for name, found in ways.items()
    ]
    titles = ["strategy", "regret", f"last {late}", "time", "exploration", "forced"]
    screen.table(titles, rows)


def _learned(screen: Screen, found: dict[str, Any]) -> None:
    print(f"\nlearned and hidden run times, seed {found['seeds'][0]}")
    rows = [
        [
            f"{each['job_type']} on {each['gpu_type']}",
            each["observations"],
            figures.duration(each["true_s"]),
            figures.duration(each["mu_s"]),
            figures.duration(each["sigma_s"]),
            figures.percent(each["mu_s"] / each["true_s"] - 1.0, 1),
        ]
        for each in found["pairs"]
    ]
    screen.table(["pair", "observed", "true", "mu", "sigma", "error"], rows)
    if not found["slowdowns"]:
        return
    print("\nlearned and hidden slowdowns, for the pairs that ran together most often")
    rows = [
        [
            f"{each['job_type']} beside {each['beside']}",
            each["jobs"],
            figures.percent(each["true_slowdown"], 0),
            figures.percent(each["slowdown"], 1),
        ]
        for each in found["slowdowns"]
    ]
    screen.table(["pair", "jobs", "true", "learned"], rows)
