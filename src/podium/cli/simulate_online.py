"""Shows how the online agent learns where jobs run fast: `podium simulate --policy online`."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from podium.errors import UsageError

if TYPE_CHECKING:
    import typer

    from podium.cli.render import Screen
    from podium.online.trial import Trial
    from podium.settings import Settings

Number = TypeVar("Number", int, float)

POLICY = "online"
NEIGHBOURS = 0.2
"""Share of jobs that run beside another one, unless told otherwise."""

MOST_JOBS, MOST_JOB_TYPES, MOST_GPU_TYPES = 100_000, 1000, 64
WIDEST = 2.0
_FITTING = {"policy", "seed", "is_json"}


@dataclass(frozen=True, slots=True)
class Wishes:
    """Holds the options that only this policy has; None: not given."""

    seeds: str | None
    jobs: int | None
    job_types: int | None
    gpu_types: int | None
    noise: float | None
    pair_spread: float | None
    neighbours: float | None
    plot: Path | None


def is_meant(ctx: typer.Context, settings: Settings, wishes: Wishes) -> bool:
    """Says whether the policy is the online agent, and refuses options of other policies."""
    given = [name for name in ctx.params if _is_given(ctx, name)]
    own = asdict(wishes)
    if settings.simulate.policy != POLICY:
        for name in given:
            if name in own:
                raise UsageError(
                    f"{_flag(ctx, name)} is an option of the policy online",
                    where=f"flag {_flag(ctx, name)}",
                    hint="add --policy online, or leave it out",
                )
        return False
    for name in given:
        if name not in own and name not in _FITTING:
            allowed = [_flag(ctx, each) for each in ("seed", *own)]
            raise UsageError(
                f"{_flag(ctx, name)} means nothing to the policy online, which draws its own jobs",
                where=f"flag {_flag(ctx, name)}",
                hint=f"leave it out; the options of this policy are {', '.join(allowed)}",
            )
    return True


def run(screen: Screen, settings: Settings, wishes: Wishes) -> dict[str, Any]:
    """Plays the loop of scoring and observing, and gives the figures."""
    from podium.online.trial import run_trial
    from podium.online.ways import WAYS
    from podium.reports.learning_plot import plot_learning
    from podium.reports.plot import check_plot

    trial = _trial(settings, wishes)
    if wishes.plot is not None:
        check_plot(wishes.plot)
    with screen.progress("learning", len(WAYS) * len(trial.seeds)) as advance:
        found = run_trial(trial, advance)
    if wishes.plot is not None:
        plot_learning(found, wishes.plot)
        screen.note(f"drew {wishes.plot}")
    return found


def _trial(settings: Settings, wishes: Wishes) -> Trial:
    from podium.online.parameters import Parameters
    from podium.online.trial import Trial
    from podium.online.world import WorldPlan

    share = NEIGHBOURS if wishes.neighbours is None else wishes.neighbours
    usual = WorldPlan()
    plan = WorldPlan(
        job_types=_within("job_types", wishes.job_types, usual.job_types, 1, MOST_JOB_TYPES),
        gpu_types=_within("gpu_types", wishes.gpu_types, usual.gpu_types, 1, MOST_GPU_TYPES),
        noise=_within("noise", wishes.noise, usual.noise, 0.0, WIDEST),
        pair_spread=_within("pair_spread", wishes.pair_spread, usual.pair_spread, 0.0, WIDEST),
        neighbour_share=_within("neighbours", share, share, 0.0, 1.0),
    )
    jobs = _within("jobs", wishes.jobs, 1000, 1, MOST_JOBS)
    return Trial(plan, jobs, _seeds(settings, wishes.seeds), Parameters.of(settings.online))


def _seeds(settings: Settings, text: str | None) -> tuple[int, ...]:
    if text is None:
        return (_within("seed", settings.simulate.seed, 0, 0, 2**63 - 1),)
    if settings.origins["simulate.seed"].startswith("flag"):
        raise UsageError(
            "--seed and --seeds are both given", where="flag --seeds", hint="give one of them"
        )
    from podium.experiments.compare import read_seeds

    return tuple(read_seeds(text))


def _within(name: str, value: Number | None, usual: Number, least: Number, most: Number) -> Number:
    if value is None:
        return usual
    if not least <= value <= most:
        flag = f"--{name.replace('_', '-')}"
        raise UsageError(
            f"{flag} cannot be {value:g}",
            where=f"flag {flag}",
            hint=f"give a number from {least:,} to {most:,}",
        )
    return value


def _is_given(ctx: typer.Context, name: str) -> bool:
    source = ctx.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def _flag(ctx: typer.Context, name: str) -> str:
    return next(each.opts[0] for each in ctx.command.params if each.name == name)
