"""Answers whether the pending pods of a cluster fit, and where."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from podium.cli.case_options import IgnoreUnknown, Preemption, Seed, SkipBad
from podium.cli.figures import Figure, counted
from podium.cli.group import new_app
from podium.cli.options import Json, State, Topology, read_settings
from podium.cli.render import Screen, print_json
from podium.cli.signals import stoppable
from podium.cli.terminal import on_one_line
from podium.cli.watch import watching
from podium.errors import PodiumError, UsageError
from podium.experiments.places import place_of

if TYPE_CHECKING:
    from podium.experiments.fit import Fit

app = new_app()


@app.command()
@stoppable
def fit(
    ctx: typer.Context,
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
    waiting: Annotated[
        str | None,
        typer.Option(
            "--waiting", help="Try work that waits for something else, too: gated,suspended.",
            show_default=False,
        ),
    ] = None,
    policy: Annotated[
        str | None,
        typer.Option(
            "--policy", help="Policy by name or file. [default: [simulate] policy, or kube-default]"
        ),
    ] = None,
    cluster: Annotated[
        str | None,
        typer.Option("--cluster", help="Take the nodes from another name or file."),
    ] = None,
    state: State = None,
    topology: Topology = None,
    preemption: Preemption = None,
    seed: Seed = None,
    is_skipping_bad: SkipBad = False,
    is_ignoring_unknown: IgnoreUnknown = False,
    is_json: Json = False,
) -> None:  # fmt: skip
    """Answers whether the pending pods of a cluster fit, and where.

    Running pods stay where they are, unless --preemption lets pods of higher priority evict them.
    Exits with 1 when a pod does not fit.
    """
    from podium.experiments.case import Inputs, named_policy
    from podium.experiments.fit import chosen_policy
    from podium.experiments.fit import fit as fit_pods
    from podium.traces.kubernetes.waiting import parse_waiting

    flags = {
        "simulate.trace": dump,
        "simulate.protocol": "rounds",
        "simulate.policy": policy,
        "simulate.cluster": cluster,
        "simulate.state": state,
        "simulate.topology": topology,
        "simulate.preemption": preemption,
        "simulate.seed": seed,
    }
    settings = read_settings(ctx, flags)
    screen = Screen(settings.display)
    wanted = tuple(pods or ())
    if [dump, *wanted].count("-") > 1:
        raise UsageError("standard input can only be read once", hint="name a file for the other")
    with watching(screen) as listener:
        place = place_of(settings, "simulate.policy")
        chosen = named_policy(
            chosen_policy(settings), place, is_ignoring_unknown=is_ignoring_unknown
        )
        inputs = Inputs(
            is_skipping_bad=is_skipping_bad, wanted=wanted,
            waiting=parse_waiting(waiting) if waiting else (),
        )  # fmt: skip
        with _naming_the_argument():
            found = fit_pods(settings, inputs, chosen, listener)
    if is_json:
        print_json(found.as_object())
    else:
        _show(screen, found)
    raise typer.Exit(0 if found.is_yes else 1)


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
