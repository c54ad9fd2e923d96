"""Lists, shows, checks and explains policies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

import typer

from podium.cli import figures
from podium.cli.case_options import CaseOptions, IgnoreUnknown, Seed
from podium.cli.completion import policies as names
from podium.cli.flags import with_blocks
from podium.cli.group import new_app
from podium.cli.options import Json, read_settings
from podium.cli.render import Screen, print_json
from podium.cli.signals import stoppable
from podium.cli.watch import announce_compilation, apart, inform, watching
from podium.model.records import GPU_MILLI

if TYPE_CHECKING:
    from podium import policies
    from podium.reports.explanation import Candidate, Explanation, GangPlace

app = new_app(__doc__)

Reference = Annotated[
    str,
    typer.Argument(metavar="POLICY", help="Policy by name or file.", autocompletion=names),
]
PLACE = "argument POLICY"


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
    """Prints the description and the source of a policy."""
    policy = _loaded(reference, is_ignoring_unknown=is_ignoring_unknown)
    text = policy.source.text if policy.source else policy.text
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
    inform(screen, policy.notes)
    if text:
        print(text.rstrip())
    else:
        screen.fields(facts)


@app.command()
@stoppable
def check(
    ctx: typer.Context,
    reference: Reference,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the random states.", min=0)] = 0,
    is_ignoring_unknown: IgnoreUnknown = False,
    is_json: Json = False,
) -> None:
    """Checks that a policy keeps its contract.

    Exits with 1 when it does not.
    """
    from podium.experiments.simulate import interruptible
    from podium.testing import check_policy

    screen = Screen(read_settings(ctx).display)
    policy = _loaded(reference, is_ignoring_unknown=is_ignoring_unknown)
    announce_compilation(screen)
    with screen.progress(f"checking {policy.name}"), apart():
        report = interruptible(lambda: check_policy(policy, seed=seed))
    if is_json:
        print_json({"policy": policy.name, "ok": report.is_ok, "findings": report.findings})
    else:
        rows = [(f.name, "ok" if f.is_ok else "FAILED", f.detail) for f in report.findings]
        screen.table(["promise", "kept", "detail"], rows)
    if not report.is_ok:
        raise typer.Exit(1)


@app.command()
@stoppable
@with_blocks
def explain(
    ctx: typer.Context,
    reference: Reference,
    pod: Annotated[str, typer.Option("--pod", help="Name of a pod in the trace.")],
    case: CaseOptions,
    seed: Seed = None,
    is_json: Json = False,
) -> None:
    """Explains why a pod of a simulated run was placed where it was."""
    settings = read_settings(ctx, {**case.settings(), "simulate.seed": seed})
    screen = Screen(settings.display)

    from podium.experiments.explain import explain

    with watching(screen) as listener:
        policy = _loaded(reference, is_ignoring_unknown=case.is_ignoring_unknown)
        found = explain(settings, case.inputs(), policy, pod, listener)
    if is_json:
        print_json(found.as_object())
    else:
        show_explanation(screen, found)


def _loaded(reference: str, *, is_ignoring_unknown: bool) -> policies.Policy:
    from podium.experiments.case import named_policy

    with apart():
        return named_policy(reference, PLACE, is_ignoring_unknown=is_ignoring_unknown)


def show_explanation(screen: Screen, found: Explanation) -> None:
    """Prints how a pod was decided, for people."""
    against = [
        f"{figures.counted(count, 'node')}: {reason}" for reason, count in found.reasons.items()
    ]
    screen.fields(
        {
            "pod": found.pod,
            "asks for": words_of_request(found.request),
            "policy": found.policy + (f" ({found.origin})" if found.origin else ""),
            "placed on": _place(found),
            "could take it": figures.counted(found.feasible, "node"),
            "could not": "; ".join(against) or "none",
            **({"gang": _gang(found.gang)} if found.gang else {}),
            **({"evicted for it": ", ".join(found.evicted)} if found.evicted else {}),
            **_evicted_itself(found),
        }
    )
    if found.candidates:
        print()
        rows = [_candidate_row(candidate) for candidate in found.candidates]
        screen.table(["node", "score", "CPU milli left", "memory MiB left", "GPU milli left"], rows)


def words_of_request(request: Mapping[str, int]) -> str:
    """Writes what a pod asks for."""
    parts = [f"{request['cpu_milli']:,} milli CPU", f"{request['memory_mib']:,} MiB"]
    if request["gpu_count"]:
        share = f" of {request['gpu_milli']} milli" if request["gpu_milli"] < GPU_MILLI else ""
        parts.append(figures.counted(request["gpu_count"], "GPU") + share)
    return ", ".join(parts)


def _place(found: Explanation) -> str:
    if not found.node:
        return f"no node: {found.reason}"
    slots = "-".join(map(str, found.gpu_slots))
    place = f"{found.node}, GPU {slots}" if slots else found.node
    return f"{place}, where it ran before the run began" if found.is_bound else place


def _evicted_itself(found: Explanation) -> dict[str, object]:
    if not found.times_evicted:
        return {}
    return {"evicted itself": figures.counted(found.times_evicted, "time")}


def _gang(gang: GangPlace) -> str:
    together = f", all in one {gang.domain}" if gang.domain else ""
    return (
        f"{gang.name}: {gang.placed:,} of {figures.counted(gang.members, 'pod')} placed, "
        f"{gang.minimum:,} start together{together}"
    )


def _candidate_row(candidate: Candidate) -> tuple[object, ...]:
    return (
        candidate.node + (" *" if candidate.is_chosen else ""),
        "refused" if candidate.score is None else figures.Figure(f"{candidate.score:,.6g}"),
        candidate.cpu_milli_left,
        candidate.memory_mib_left,
        " ".join(map(str, candidate.gpu_milli_left)),
    )
