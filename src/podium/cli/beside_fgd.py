"""Reports on policies that were never published, beside the published figures of FGD."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from podium.cli import figures
from podium.cli.published import Material, run_all, runs_with_orders
from podium.cli.render import Screen
from podium.errors import UsageError

if TYPE_CHECKING:
    from podium.reports.beside_fgd import Comparison, Row
    from podium.reports.fgd_experiment import Published
    from podium.settings import Settings


def rivals_among(references: Sequence[str], published: Published) -> list[str]:
    """Lists the policies that were never published; all of them are, or none."""
    known = {experiment.policy for experiment in published}
    found = [each for each in dict.fromkeys(references) if each not in known]
    if found and len(found) < len(set(references)):
        others = ", ".join(each for each in dict.fromkeys(references) if each in known)
        raise UsageError(
            f"{others} was published, {', '.join(found)} was not: they are reported differently",
            where="flag --policy",
            hint="ask for published policies and for others in two commands",
        )
    return found


def compare_all(
    screen: Screen, settings: Settings, material: Material, references: Sequence[str],
    traces: tuple[str, ...],
) -> list[Comparison]:  # fmt: skip
    """Runs policies in the place of FGD in every published run of it."""
    from podium.cli.case import named_policy
    from podium.cli.watch import announce_compilation
    from podium.reports.beside_fgd import attempt, compare, published_runs

    policies = [named_policy(each, f"flag --policy {each}") for each in references]
    wanted = published_runs(material.results, traces)
    runs = runs_with_orders(screen, material, wanted)
    announce_compilation(screen)
    jobs = [(run, policy) for policy in policies for run in runs]
    done = run_all(screen, settings, material, jobs, attempt)
    return [
        compare(
            reference,
            names_hold=policy.may_hold,
            attempts=done[i * len(runs) : (i + 1) * len(runs)],
        )
        for i, (reference, policy) in enumerate(zip(references, policies, strict=True))
    ]


def show_comparison(screen: Screen, found: Comparison) -> None:
    """Prints a row for each trace, then the means."""
    from podium.reports.beside_fgd import mean_row

    named = found.named
    means = [mean_row(named, f"mean of {len(named)} named")] if named else []
    means.append(mean_row(found.rows, f"mean of all {len(found.rows)}"))
    titles = ["trace", "100 % ours", "FGD", "difference", "130 % ours", "FGD", "difference"]
    titles += ["frag ours", "FGD", "may hold", "held"]
    print(f"{found.policy} beside the published FGD:")
    screen.table(titles, [_cells(row, may_hold=found.may_hold) for row in (*found.rows, *means)])


def _cells(row: Row, *, may_hold: bool) -> tuple[object, ...]:
    cells: list[figures.Figure] = []
    for column in ("alloc_100", "alloc_130"):
        cells += [figures.decimal(row.ours[column]), figures.decimal(row.published[column])]
        cells.append(_signed(row.difference(column)))
    fragments = [row.ours["frag_130"], row.published["frag_130"]]
    return (row.name, *cells, *map(figures.decimal, fragments), may_hold, row.held)


def _signed(points: float) -> figures.Figure:
    text = figures.decimal(points)
    return text if text == figures.MISSING or points < 0 else figures.Figure(f"+{text}")
