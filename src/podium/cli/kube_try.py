"""Shows a real kube-scheduler with and without Podium, on fake nodes of this machine."""

from __future__ import annotations

import shlex
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING, Annotated

import typer

from podium.cli import figures
from podium.cli.case_options import ClusterName, TraceName
from podium.cli.options import Json, State, TracesFolder, Waiting, read_settings
from podium.cli.render import Rhythm, Screen, plain_table, print_json, show_alike
from podium.cli.signals import stoppable
from podium.cli.terminal import guarding, on_one_line
from podium.cli.watch import inform
from podium.experiments.kube_try import RIVALS, Outcome, alike, tried
from podium.experiments.try_plan import Tally, TryPlan, plan_try, staying
from podium.experiments.try_runs import TryListener

if TYPE_CHECKING:
    from rich.live import Live

    from podium.settings import Settings

POLICY = "keep-room"
NODES = 20
SEED = 10
REFRESH_S = 0.1
LINE_S = 2.0
SHOWN = {"stock": "kube-scheduler", "packing": "packing", "podium": "with Podium"}
"""The arms, as their columns are called."""
TITLES = ("", "asked for", *SHOWN.values())
FINAL_COLUMNS = 98
FINAL_TITLES = ("", "asked for", *(title for arm in SHOWN.values() for title in (arm, "simulated")))
ALONE = (
    "kube-scheduler with its defaults, with the packing profile of Podium's chart,",
    "and with that profile and Podium: {policy}.",
)
COUNTED = (
    "kube-scheduler with its defaults, with the packing profile of Podium's chart,",
    "and with that profile and Podium: {policy}. Parts of GPUs it does not count:",
    "filter and bind of Podium's extender do in each run, and pack in the second.",
)
NEXT = {
    "podium kube try --keep": "look with kubectl",
    "podium compare kube-packing {policy}{source} --protocol inflation": "more pods",
    "podium kube snapshot cluster.json": "save your cluster",
    "podium kube manifests --policy {policy}": "install Podium",
}


@stoppable
def try_podium(
    ctx: typer.Context,
    policy: Annotated[
        str, typer.Option("--policy", help="Policy of the last run, by name, file or run.")
    ] = POLICY,
    nodes: Annotated[
        int | None,
        typer.Option(
            "--nodes", min=1, help=f"Nodes of the embedded trace; default: {NODES}.",
            show_default=False,
        ),
    ] = None,
    pods: Annotated[
        int | None,
        typer.Option(
            "--pods", min=1, show_default=False,
            help="Pods to submit; default: those that wait in a dump, of other traces as many as "
            "ask for all GPUs.",
        ),
    ] = None,
    trace: TraceName = None,
    cluster: ClusterName = None,
    state: State = None,
    waiting: Waiting = None,
    seed: Annotated[int, typer.Option("--seed", help="Seed of nodes and pods.")] = SEED,
    traces: TracesFolder = None,
    is_keeping: Annotated[
        bool, typer.Option("--keep", help="Leave the cluster running until ctrl-C.")
    ] = False,
    is_json: Json = False,
) -> None:  # fmt: skip
    """Shows a real kube-scheduler with and without Podium, on fake nodes of this machine.

    Starts etcd, kube-apiserver and kube-scheduler on the loopback interface, submits the same
    pods three times (its defaults, the chart's packing profile, with Podium), and stops everything
    again. It needs neither a cluster nor containers. Exits with 1 where the runs cannot be ranked.
    """
    from podium.experiments.case import Inputs
    from podium.kube import need_extra as need_kube_extra
    from podium.kube.local.programs import find_programs
    from podium.service import need_extra as need_serve_extra
    from podium.traces.kubernetes.waiting import parse_waiting

    need_kube_extra()
    need_serve_extra()
    programs = find_programs()
    flags = {
        "simulate.trace": trace, "simulate.cluster": cluster, "simulate.seed": seed,
        "simulate.protocol": "rounds", "simulate.state": state, "traces.folder": traces,
    }  # fmt: skip
    settings = read_settings(ctx, flags)
    screen = Screen(settings.display)
    inputs = Inputs(nodes=_nodes(settings, nodes), waiting=parse_waiting(waiting))
    plan = plan_try(settings, inputs, policy, pods)
    inform(screen, plan.notes)
    screen.note(headline(plan))
    with ExitStack() as stack:
        with following(screen, plan) as listener:
            outcome = stack.enter_context(tried(plan, programs, listener))
        _show(screen, plan, outcome, next_steps(plan.reference, settings), is_json=is_json)
        if is_keeping:
            _keep(screen, outcome)
    raise typer.Exit(1 if alike(plan, outcome) else 0)


def _nodes(settings: Settings, nodes: int | None) -> int | None:
    from podium.traces.catalogue import EMBEDDED

    is_embedded = (settings.simulate.cluster or settings.simulate.trace) == EMBEDDED
    return NODES if nodes is None and is_embedded else nodes


def _keep(screen: Screen, outcome: Outcome) -> None:
    """Leaves everything running until somebody asks for the end."""
    screen.note(f"the cluster runs until ctrl-C: export KUBECONFIG={outcome.kubeconfig}")
    with suppress(KeyboardInterrupt):
        signal.pause()


class LiveTable(TryListener):
    """Draws the runs side by side while they go on."""

    def __init__(self, live: Live, plan: TryPlan) -> None:
        self._live = live
        self._plan = plan
        self._status = ""
        self._tallies: dict[str, Tally | None] = dict.fromkeys(SHOWN)
        self._drawn_s = 0.0

    def status(self, text: str) -> None:
        """Shows what is being done."""
        self._status = text
        self._draw()

    def decided(self, arm: str, tally: Tally) -> None:
        """Shows one more pod, some times a second."""
        self._tallies[arm] = tally
        self._status = f"{SHOWN[arm]}: pods are placed"
        if time.monotonic() - self._drawn_s >= REFRESH_S:
            self._draw()

    def _draw(self) -> None:
        from rich.text import Text

        self._drawn_s = time.monotonic()
        tallies = [*self._tallies.values()]
        lines = live_lines(self._plan, tallies, self._live.console.width)
        text = Text("\n".join([*lines, "", f"{self._status} ..."]), no_wrap=True, overflow="crop")
        self._live.update(text, refresh=True)


class Lines(TryListener):
    """Prints a line for each step and one now and then in between, where there is no terminal."""

    def __init__(self, screen: Screen, plan: TryPlan, rhythm: Rhythm) -> None:
        self._screen = screen
        self._plan = plan
        self._rhythm = rhythm

    def status(self, text: str) -> None:
        """Prints what is being done."""
        self._screen.note(text)

    def decided(self, arm: str, tally: Tally) -> None:
        """Prints how far a run is: now and then, and at its end."""
        is_last = tally.submitted == len(self._plan.pods)
        if self._rhythm.is_due() or is_last:
            self._screen.note(f"{SHOWN[arm]}: {line_of(self._plan, tally)}")


@contextmanager
def following(screen: Screen, plan: TryPlan) -> Iterator[TryListener]:
    """Shows the runs on a terminal while the block goes on; elsewhere prints lines."""
    display = screen.display
    if display.quiet or not display.progress:
        yield TryListener()
    elif not sys.stderr.isatty():
        yield Lines(screen, plan, Rhythm(LINE_S))
    else:
        from rich.live import Live

        console = screen.console(sys.stderr)
        with Live(console=console, transient=True, auto_refresh=False) as live, guarding():
            yield LiveTable(live, plan)


def headline(plan: TryPlan) -> str:
    """Says what is submitted to what, and how parts of GPUs are counted."""
    nodes, gpus = figures.counted(len(plan.cluster), "node"), plan.cluster.gpu_total
    pods = figures.counted(len(plan.pods), "pod")
    told = f"{nodes} with {figures.counted(gpus, 'GPU')}, {pods} of {plan.trace}, seed {plan.seed}"
    running = [staying(len(plan.running))] if plan.running else []
    used = COUNTED if plan.has_parts else ALONE
    lines = [told, *running, *(line.format(policy=plan.policy.name) for line in used)]
    return "\n".join(map(on_one_line, lines))


def line_of(plan: TryPlan, tally: Tally) -> str:
    """Writes how far a run is in one line."""
    free = f"{plan.gpus_free:,.1f}".removesuffix(".0")
    return (
        f"{tally.bound:,} of {len(plan.pods):,} pods bound, {tally.gpus_allocated:,.1f} of "
        f"{free} GPUs allocated, {tally.no_room:,} found no room"
    )


def live_lines(plan: TryPlan, tallies: Sequence[Tally | None], width: int) -> list[str]:
    """Draws the table of all runs, with bars; a narrow one leaves out what was asked for."""
    bars = ("", "", *(_bar(plan, *each) for each in zip(tallies, TITLES[2:], strict=True)))
    cells = [[figures.text_of(cell) for cell in row] for row in rows_of(plan, tallies)]
    lines = plain_table(TITLES, [bars, *cells], [False, *[True] * (len(TITLES) - 1)])
    if max(map(len, lines)) <= width:
        return lines
    shown = [(row[0], *row[2:]) for row in (bars, *cells)]
    return plain_table((TITLES[0], *TITLES[2:]), shown, [False, *[True] * len(SHOWN)])


def rows_of(plan: TryPlan, tallies: Sequence[Tally | None]) -> list[tuple[object, ...]]:
    """Gives the cells of a table: what was asked for, and what came of it in each run."""
    asked = plan.asked
    rows: list[tuple[object, ...]] = [
        ("GPUs allocated", _gpus(asked), *map(_gpus, tallies)),
        ("pods bound", asked.bound, *(tally and tally.bound for tally in tallies)),
    ]
    for name in plan.classes:
        cells = (tally and tally.by_class.get(name, (0, 0))[1] for tally in tallies)
        rows.append((f"- {name}", asked.by_class[name][0], *cells))
    rows.append(("found no room", None, *(tally and tally.no_room for tally in tallies)))
    return rows


def verdict(plan: TryPlan, outcome: Outcome) -> str:
    """Says in a sentence what the policy changed, over the better of the runs without it."""
    gpus, pods = (outcome.change(figure) for figure in ("gpus_allocated", "bound"))
    gpus = round(gpus, 1) or gpus
    told = [f"{_more(gpus)} GPUs allocated"] if gpus else []
    told += [f"{_more(pods)} pod{'' if abs(pods) == 1 else 's'} bound"] if pods else []
    return f"With {plan.policy.name}: {' and '.join(told)} than with {RIVALS[outcome.rival]}"


def _more(change: float) -> str:
    return f"{abs(change):,g} {'more' if change > 0 else 'fewer'}"


def next_steps(policy: str, settings: Settings) -> dict[str, str]:
    """Lists commands that go on from here, on the trace and cluster that were tried."""
    given = {"--trace": settings.simulate.trace, "--cluster": settings.simulate.cluster}
    is_own = settings.origins["simulate.trace"] != "default"
    named = [(flag, value) for flag, value in given.items() if value]
    named = [each for each in named if is_own or each[0] != "--trace"]
    source = "".join(f" {flag} {shlex.quote(value)}" for flag, value in named)
    return {each.format(policy=policy, source=source): what for each, what in NEXT.items()}


def _show(
    screen: Screen, plan: TryPlan, outcome: Outcome, steps: dict[str, str], *, is_json: bool
) -> None:
    told = alike(plan, outcome)
    if is_json:
        reasons = {"alike": told.splitlines()} if told else {}
        notes = [*plan.notes, *outcome.notes, *filter(None, [plan.untried])]
        print_json({**reasons, **plan.as_object(), **outcome.as_object(), "notes": notes})
        return
    inform(screen, outcome.notes)
    _show_figures(screen, plan, outcome)
    print()
    if told:
        show_alike(screen, told)
    else:
        print(on_one_line(verdict(plan, outcome)))
    print()
    print("Next:")
    for command, what in steps.items():
        print(on_one_line(f"  {command:<{max(map(len, steps))}}  {what}"))
    inform(screen, filter(None, [plan.untried]))


def _show_figures(screen: Screen, plan: TryPlan, outcome: Outcome) -> None:
    """Prints the table of all runs; a narrow terminal gets what was simulated as a second one."""
    real = [outcome.real[arm] for arm in SHOWN]
    simulated = [outcome.forecasts[arm].listed for arm in SHOWN]
    if not sys.stdout.isatty() or screen.console(sys.stdout).width >= FINAL_COLUMNS:
        pairs = (each for pair in zip(real, simulated, strict=True) for each in pair)
        screen.table(FINAL_TITLES, rows_of(plan, [*pairs]))
        return
    for name, tallies in (("real", real), ("simulated", simulated)):
        rows = [(row[0], *row[2:]) for row in rows_of(plan, tallies)]
        screen.table((name, *TITLES[2:]), rows)


def _bar(plan: TryPlan, tally: Tally | None, title: str) -> str:
    """Draws the share of GPUs that is allocated, as wide as a title."""
    gpus = plan.gpus_free
    share = tally.gpus_allocated / gpus if tally is not None and gpus else 0.0
    filled = round(len(title) * min(1.0, share))
    return "█" * filled + "·" * (len(title) - filled)


def _gpus(tally: Tally | None) -> figures.Figure | None:
    return None if tally is None else figures.decimal(tally.gpus_allocated, 1)
