"""Answers whether the pending pods of a cluster fit, and where."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Annotated, Any

import typer

from podium.cli.case_options import IgnoreUnknown, Preemption, Seed, SkipBad
from podium.cli.figures import Figure, counted
from podium.cli.flags import with_blocks
from podium.cli.group import new_app
from podium.cli.options import Json, State, Topology, Waiting, read_settings
from podium.cli.render import Screen, print_json
from podium.cli.signals import stoppable
from podium.cli.terminal import on_one_line
from podium.cli.watch import watching
from podium.errors import PodiumError, UsageError
from podium.experiments.places import place_of

if TYPE_CHECKING:
    from podium.experiments.case import Inputs
    from podium.experiments.fit import Fit
    from podium.settings import Settings

app = new_app()


@dataclass(frozen=True, slots=True)
class FitOptions:
    """The options of how pods are tried on a dump, and by whom."""

    policy: Annotated[
        str | None,
        typer.Option(
            "--policy", help="Policy by name or file. [default: [simulate] policy, or kube-default]"
        ),
    ] = None
    cluster: Annotated[
        str | None,
        typer.Option("--cluster", help="Take the nodes from another name or file."),
    ] = None
    state: State = None
    topology: Topology = None
    preemption: Preemption = None
    seed: Seed = None

    def settings(self) -> dict[str, Any]:
        """Returns the options by the path of their setting."""
        chosen = {f"simulate.{each.name}": getattr(self, each.name) for each in fields(self)}
        return {**chosen, "simulate.protocol": "rounds"}


@app.command()
@stoppable
@with_blocks
def fit(
    ctx: typer.Context,
    *,
    dump: Annotated[
        str,
        typer.Argument(
            metavar="DUMP",
            help="What `kubectl get nodes,pods -A -o yaml` printed: a file, a folder, or - for "
            "standard input.",
        ),
    ],
    pods: Annotated[
        list[str] | None,
        typer.Option(
            "--pods", help="Pods, Jobs, Deployments to be tried as well; - for standard input.",
            show_default=False,
        ),
    ] = None,
    waiting: Waiting = None,
    options: FitOptions,
    is_skipping_bad: SkipBad = False,
    is_ignoring_unknown: IgnoreUnknown = False,
    is_json: Json = False,
) -> None:  # fmt: skip
    """Answers whether the pending pods of a cluster fit, and where.

    Running pods stay where they are, unless --preemption lets pods of higher priority evict them.
    Exits with 1 when a pod does not fit.
    """
    from podium.experiments.case import Inputs
    from podium.traces.kubernetes.waiting import parse_waiting

    settings = read_settings(ctx, {**options.settings(), "simulate.trace": dump})
    wanted = tuple(pods or ())
    if [dump, *wanted].count("-") > 1:
        raise UsageError("standard input can only be read once", hint="name a file for the other")
    inputs = Inputs(
        is_skipping_bad=is_skipping_bad, wanted=wanted, waiting=parse_waiting(waiting)
    )  # fmt: skip
    screen = Screen(settings.display)
    found = _fitted(screen, settings, inputs, is_ignoring_unknown=is_ignoring_unknown)
    if is_json:
        print_json(found.as_object())
    else:
        _show(screen, found)
    raise typer.Exit(0 if found.is_yes else 1)


def _fitted(
    screen: Screen, settings: Settings, inputs: Inputs, *, is_ignoring_unknown: bool
) -> Fit:
    from podium.experiments.case import named_policy
    from podium.experiments.fit import chosen_policy
    from podium.experiments.fit import fit as fit_pods

    with watching(screen) as listener:
        place = place_of(settings, "simulate.policy")
        chosen = named_policy(
            chosen_policy(settings), place, is_ignoring_unknown=is_ignoring_unknown
        )
        with _naming_the_argument():
            return fit_pods(settings, inputs, chosen, listener)


@contextmanager
def _naming_the_argument() -> Iterator[None]:
    """Names the argument where other commands name the flag --trace."""
    try:
        yield
    except PodiumError as error:
        if error.where.startswith("flag --trace"):
            error.where = "argument DUMP"
        raise


def _show(screen: Screen, found: Fit) -> None:
    from podium.experiments.fit import TITLES

    if found.pods:
        rows = [(pod, Figure(gpus), node, reason) for pod, gpus, node, reason in found.rows()]
        screen.table(TITLES, rows)
        print()
        if len(rows) < len(found.pods):
            screen.note(f"pods alike share a row; --json lists all {len(found.pods):,}")
    for line in found.explanations():
        print(on_one_line(line))
    print(found.summary)
    running = counted(found.bound, "pod")
    screen.note(f"decided by {found.policy}; {running} already running")
