"""Shows Podium at work, offline, in under a minute."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

import typer

from podium.cli import figures
from podium.cli.demo_search import Found, search_at_random
from podium.cli.group import new_app
from podium.cli.options import Json, read_settings
from podium.cli.render import Screen, print_json
from podium.cli.signals import stoppable
from podium.cli.watch import watching
from podium.errors import MissingError
from podium.settings import Settings, Simulate

app = new_app()

PACKING = (
    "mlp", "usable-gpu", "keep-room", "fgd", "first-fit", "best-fit", "gpu-packing", "worst-fit",
    "kube-packing", "kube-default",
)  # fmt: skip
QUEUEING = (
    "keep-room",
    "best-fit",
    "fgd",
    "first-fit",
    "worst-fit",
    "kube-packing",
    "kube-default",
)
SEEDS = [1000, 1001, 1002]
LOAD = 4.0
BAR_CELLS = 24
ORIGIN = (
    "mlp is a trained net, usable-gpu was found by a search in terms that people wrote; people "
    "wrote the others (podium policies show usable-gpu)"
)
NEXT = {
    "kubectl get nodes,pods -A -o yaml | podium fit -": "do your own pending pods fit, and where?",
    "podium simulate --policy fgd --protocol inflation": "one run in full",
    "podium compare fgd my_policy.py --protocol inflation": "your own score(pod, node)",
    "podium policies list": "all policies that ship",
    "podium search run --time 10m": "a longer search that can be resumed",
    "podium train mlp": "a net that learns by trial",
}


@app.command()
@stoppable
def demo(ctx: typer.Context, is_json: Json = False) -> None:
    """Shows Podium at work, offline, in under a minute.

    Compares schedulers on an embedded cluster, and breeds a better one from random programs.
    """
    settings = read_settings(ctx)
    screen = Screen(settings.display)
    packed = _runs(screen, _only(settings, trace="openb", protocol="inflation"), PACKING)
    queued = _runs(screen, _only(settings, trace="openb:16", load=LOAD), QUEUEING)
    found = _found(screen, settings)
    if is_json:
        print_json({"packing": packed, "queueing": queued, "search": found and asdict(found)})
        return
    _show_packing(screen, packed)
    _show_queueing(screen, queued)
    if found is not None:
        _show_search(screen, found)
    print("Next:")
    for command, what in NEXT.items():
        print(f"  {command:<{max(map(len, NEXT))}}  {what}")


def _found(screen: Screen, settings: Settings) -> Found | None:
    """Searches; returns None where candidates cannot be confined: the demo goes on without it."""
    try:
        return search_at_random(screen, settings)
    except MissingError as error:
        screen.note(f"search skipped: {error.message}")
        return None


def _only(settings: Settings, **chosen: Any) -> Settings:
    # The demo says what it shows, so that settings of the user's own experiments stay out of it.
    return replace(settings, simulate=Simulate(**chosen))


def _runs(
    screen: Screen, settings: Settings, names: tuple[str, ...]
) -> dict[str, list[dict[str, Any]]]:
    from podium.experiments.case import Inputs
    from podium.experiments.compare import ComparisonRequest, run_all
    from podium.policies import load

    request = ComparisonRequest([load(name) for name in names], SEEDS)
    with watching(screen) as listener:
        return run_all(settings, Inputs(), request, listener)


def _show_packing(screen: Screen, packed: dict[str, list[dict[str, Any]]]) -> None:
    first = next(iter(packed.values()))[0]
    print(
        f"Packing: {first['nodes']:,} nodes, {first['gpus']:,} GPUs; pods arrive until they ask "
        f"for 130 % of them ({len(SEEDS)} seeds)"
    )
    print()
    rows = []
    for name, runs in sorted(packed.items(), key=lambda item: -_mean(item[1], "gpu_allocation")):
        share = _mean(runs, "gpu_allocation")
        rows.append(
            (
                name,
                figures.percent(share),
                _bar(share),
                figures.percent(_mean(runs, "fragmentation")),
                round((1 - share) * first["gpus"]),
            )
        )
    screen.table(["policy", "GPUs allocated", "80 % .. 100 %", "fragmented", "GPUs idle"], rows)
    print()
    print(ORIGIN)
    print()


def _show_queueing(screen: Screen, queued: dict[str, list[dict[str, Any]]]) -> None:
    first = next(iter(queued.values()))[0]
    print(
        f"Queueing: {first['nodes']} nodes, {first['gpus']} GPUs; {first['pods']:,} pods come and "
        f"go, {LOAD:g} times as fast as recorded"
    )
    print()
    rows = []
    for name, runs in sorted(queued.items(), key=lambda item: _mean(item[1], "wait_mean_s")):
        waits = [figures.duration(_mean(runs, f"wait_{which}_s")) for which in ("mean", "max")]
        rows.append((name, round(_mean(runs, "waited")), *waits))
    screen.table(["policy", "pods that waited", "mean wait", "longest wait"], rows)
    print()


def _show_search(screen: Screen, found: Found) -> None:
    print(
        f"Search: {found.evaluations:,} evaluations of programs bred from random ones, of "
        f"ingredients that people named, with seed {found.seed}; measured on clusters that the "
        "search never saw"
    )
    print()
    rows = [("found here", figures.decimal(found.fitness, 2), "")]
    rows += [
        (name, figures.decimal(value, 2), figures.Figure(f"{found.fitness - value:+.2f}"))
        for name, value in found.others.items()
    ]
    screen.table(["policy", "GPUs allocated (%)", "advantage"], rows)
    print()


def _bar(share: float) -> str:
    filled = round(BAR_CELLS * min(1.0, max(0.0, (share - 0.8) / 0.2)))
    return "█" * filled + "·" * (BAR_CELLS - filled)


def _mean(runs: list[dict[str, Any]], name: str) -> float:
    return float(sum(run[name] for run in runs) / len(runs))
