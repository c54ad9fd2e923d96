"""Lists, shows, checks and explains policies."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from podium.cli.group import new_app
from podium.cli.options import Json, TracesFolder, read_settings
from podium.cli.render import Screen, print_json
from podium.cli.simulate import (
    ClusterName,
    IgnoreUnknown,
    Load,
    Orders,
    ProtocolName,
    Ratio,
    Seed,
    TraceName,
)

if TYPE_CHECKING:
    from podium.reports.explanation import Explanation

app = new_app("Lists, shows, checks and explains policies.")

Reference = Annotated[str, typer.Argument(help="Policy by name or file.")]


@app.command("list")
def list_policies(ctx: typer.Context, is_json: Json = False) -> None:
    """Lists the policies that ship with Podium."""
    from podium.policies import catalogue

    found = catalogue()
    if is_json:
        print_json(found)
        return
    rows = [(p.name, p.kind, p.origin, p.may_hold, p.summary) for p in found]
    screen = Screen(read_settings(ctx).display)
    screen.table(["name", "kind", "origin", "may hold", "summary"], rows)


@app.command()
def show(
    ctx: typer.Context,
    reference: Reference,
    is_ignoring_unknown: IgnoreUnknown = False,
    is_json: Json = False,
) -> None:
    """Prints what a policy is, and its source."""
    from podium.policies import load

    policy = load(reference, ignore_unknown_plugins=is_ignoring_unknown)
    text = policy.source.text if policy.source else ""
    facts = {
        "name": policy.name,
        "kind": policy.kind,
        "origin": policy.origin,
        "may_hold": policy.may_hold,
        "summary": policy.summary,
        "notes": list(policy.notes),
    }
    if is_json:
        print_json({**facts, "source": text})
        return
    screen = Screen(read_settings(ctx).display)
    for note in policy.notes:
        screen.note(f"note: {note}")
    if text:
        print(text.rstrip())
    else:
        screen.fields(facts)


@app.command()
def check(
    ctx: typer.Context,
    reference: Reference,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the random states.", min=0)] = 0,
    is_ignoring_unknown: IgnoreUnknown = False,
    is_json: Json = False,
) -> None:
    """Runs the contract on a policy; exit 1 if it breaks it."""
    from podium.cli.watch import announce_compilation
    from podium.policies import load
    from podium.testing import check_policy

    screen = Screen(read_settings(ctx).display)
    policy = load(reference, ignore_unknown_plugins=is_ignoring_unknown)
    announce_compilation(screen)
    report = check_policy(policy, seed=seed)
    if is_json:
        print_json({"policy": policy.name, "ok": report.is_ok, "findings": report.findings})
    else:
        rows = [(f.name, "ok" if f.is_ok else "FAILED", f.detail) for f in report.findings]
        screen.table(["promise", "kept", "detail"], rows)
    if not report.is_ok:
        raise typer.Exit(1)


@app.command()
def explain(
    ctx: typer.Context,
    reference: Reference,
    pod: Annotated[str, typer.Option("--pod", help="Name of a pod of the trace.")],
    trace: TraceName = None,
    cluster: ClusterName = None,
    protocol: ProtocolName = None,
    ratio: Ratio = None,
    load: Load = None,
    seed: Seed = None,
    orders: Orders = None,
    traces: TracesFolder = None,
    is_json: Json = False,
) -> None:
    """Says why a pod of a simulated run went where it went."""
    flags = {
        "simulate.trace": trace,
        "simulate.cluster": cluster,
        "simulate.protocol": protocol,
        "simulate.ratio": ratio,
        "simulate.load": load,
        "simulate.seed": seed,
        "traces.folder": traces,
    }
    settings = read_settings(ctx, flags)
    screen = Screen(settings.display)

    from podium.cli.case import Inputs, load_case
    from podium.cli.watch import run_watched
    from podium.policies import load as load_policy
    from podium.reports.explanation import explain

    case = load_case(settings, Inputs(orders=Path(orders) if orders else None))
    found = explain(run_watched(screen, case, load_policy(reference)), pod)
    if is_json:
        print_json(found)
    else:
        _show_explanation(screen, found)


def _show_explanation(screen: Screen, found: Explanation) -> None:
    slots = f", GPU {'-'.join(map(str, found.gpu_slots))}" if found.gpu_slots else ""
    against = [f"{count:,} nodes: {reason}" for reason, count in found.reasons.items()]
    screen.fields(
        {
            "pod": found.pod,
            "asks for": ", ".join(f"{key} {value:,}" for key, value in found.request.items()),
            "policy": found.policy,
            "placed on": f"{found.node}{slots}" if found.node else "no node",
            "could take it": f"{found.feasible:,} nodes",
            "could not": "; ".join(against) or "none",
        }
    )
    print()
    rows = [
        (
            c.node + (" *" if c.is_chosen else ""),
            c.score,
            c.cpu_milli_left,
            c.memory_mib_left,
            " ".join(map(str, c.gpu_milli_left)),
        )
        for c in found.candidates
    ]
    screen.table(["node", "score", "CPU milli left", "memory MiB left", "GPU milli left"], rows)
