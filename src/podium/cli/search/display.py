"""Shows a search while it runs, and what it found."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from podium.cli import figures
from podium.cli.render import Rhythm, Screen
from podium.cli.terminal import guarding, on_one_line
from podium.cli.watch import ScreenListener

if TYPE_CHECKING:
    from podium.experiments.search import SearchOutcome
    from podium.search.run.plan import Budget
    from podium.search.run.progress import Progress

REFRESH_S = 0.25
Watch = Callable[["Progress"], None]


class SearchListener(ScreenListener):
    """Passes the progress of a search to a watch function."""

    def __init__(self, screen: Screen, watch: Watch) -> None:
        super().__init__(screen, ExitStack())
        self._watch = watch

    def search_progress(self, progress: Progress) -> None:
        """Shows how far the search is."""
        self._watch(progress)


@contextmanager
def following(screen: Screen, budget: Budget) -> Iterator[SearchListener]:
    """Shows a search on the screen while the block runs."""
    with follow(screen, budget) as watch:
        yield SearchListener(screen, watch)


@contextmanager
def follow(screen: Screen, budget: Budget) -> Iterator[Watch]:
    """Draws the progress of a run on a terminal; elsewhere prints a line now and then."""
    display = screen.display
    if not display.progress or display.quiet:
        yield lambda _progress: None
        return
    if not sys.stderr.isatty():
        yield _logging(screen, budget, Rhythm())
        return
    from rich.live import Live

    last = 0.0
    console = screen.console(sys.stderr)
    with Live(console=console, transient=True, auto_refresh=False) as live, guarding():

        def watch(progress: Progress) -> None:
            nonlocal last
            now = time.monotonic()
            if now - last >= REFRESH_S:
                last = now
                live.update(_panel(progress, budget), refresh=True)

        yield watch


def _logging(screen: Screen, budget: Budget, rhythm: Rhythm) -> Watch:
    def watch(progress: Progress) -> None:
        if rhythm.is_due():
            screen.note(line_of(progress, budget))

    return watch


def line_of(progress: Progress, budget: Budget) -> str:
    """Writes the progress of a run in one line, for logs."""
    facts = facts_of(progress, budget)
    left = f", {facts['time left']} left" if "time left" in facts else ""
    return (
        f"run {progress.run_id}: {part_of(progress, budget):.0%}, {facts['evaluations']} "
        f"evaluations at {progress.rate:.1f}/s, best {facts['best']}{left}"
    )


def facts_of(progress: Progress, budget: Budget | None = None) -> dict[str, str]:
    """Returns the progress of a run as names and values."""
    summary = progress.summary()
    facts = facts_of_summary(summary)
    facts["speed"] = f"{progress.rate:.1f} evaluations/s"
    left = eta_s(progress, budget) if budget else None
    if left is not None:
        facts["time left"] = figures.duration(left)
    return facts


def facts_of_summary(summary: dict[str, Any]) -> dict[str, str]:
    """Returns the facts of a run's summary as names and values."""
    refused = ", ".join(f"{gate} {count:,}" for gate, count in summary["refused"].items())
    facts = {
        "evaluations": f"{summary['evaluations']:,}",
        "candidates": f"{summary['candidates']:,}, accepted {summary['accepted']:,}",
        "refused": refused or "none",
        "best": _best(summary),
        **({"selection": _selection(summary)} if summary.get("finalists") else {}),
        "validation": _validation(summary),
        "time": figures.duration(summary["seconds"]),
    }
    if summary.get("ranking"):
        facts["ranking"] = _ranking(summary["ranking"])
    if summary.get("missing_walls"):
        facts["missing walls"] = ", ".join(summary["missing_walls"])
    if summary["calls"]:
        facts["spend"] = _spend(summary)
        if summary["usd"]:
            facts["price"] = _price(summary)
    return facts


def eta_s(progress: Progress, budget: Budget) -> float | None:
    """Estimates the seconds until the budget is used up, at the present speed."""
    spans = []
    if budget.seconds is not None:
        spans.append(budget.seconds - progress.seconds)
    if budget.evaluations is not None and progress.rate > 0:
        spans.append((budget.evaluations - progress.tally.evaluations) / progress.rate)
    return max(0.0, min(spans)) if spans else None


def part_of(progress: Progress, budget: Budget) -> float:
    """Returns the share of the budget that is used, from 0 to 1."""
    parts = [0.0]
    if budget.seconds is not None:
        parts.append(progress.seconds / budget.seconds)
    if budget.evaluations is not None:
        parts.append(progress.tally.evaluations / budget.evaluations)
    return min(1.0, max(parts))


def show_end(screen: Screen, found: SearchOutcome) -> None:
    """Prints what a run found and what to do next."""
    from podium.search.generators.llm.budget import USED_UP

    run_id, summary = found.run_id, found.summary
    screen.fields({"run": run_id, "ended": found.ending, **facts_of_summary(summary)})
    show_islands(screen, summary)
    if found.text is not None:
        print()
        print(found.text.rstrip())
    more = "--evaluations N continues up to N in all"
    if USED_UP in found.ending:
        more = "--usd N or --tokens N continues"
    screen.note(
        f"podium search promote {run_id} validates it; podium search resume {run_id} {more}"
    )


def show_islands(screen: Screen, summary: dict[str, Any]) -> None:
    """Prints one line for each island."""
    print()
    titles = ["island", "emphasis", "members", "best", "fitness", "stale", "respawns"]
    rows = [
        (
            each["island"], each["family"], each["members"],
            figures.MISSING if each["best"] is None else f"#{each['best']}",
            figures.decimal(each["fitness"], 3), each["stale"], each["respawns"],
        )
        for each in summary["islands"]
    ]  # fmt: skip
    screen.table(titles, rows)


def _panel(progress: Progress, budget: Budget) -> Any:
    from rich.console import Group
    from rich.progress_bar import ProgressBar
    from rich.table import Table
    from rich.text import Text

    grid = Table.grid(padding=(0, 2))
    for key, value in facts_of(progress, budget).items():
        grid.add_row(Text(on_one_line(key)), Text(on_one_line(value)))
    return Group(grid, ProgressBar(total=1.0, completed=part_of(progress, budget), width=60))


def _best(summary: dict[str, Any]) -> str:
    if summary["fitness"] is None:
        return "none yet"
    gain = summary["fitness"] - summary["fitness_fgd"]
    return (
        f"{summary['fitness']:.3f} ({gain:+.3f} against fgd), candidate #{summary['best']}, "
        f"{summary['complexity']} parts"
    )


def _spend(summary: dict[str, Any]) -> str:
    """Describes what was spent; an unknown price is not shown as 0."""
    usd, unpriced = summary["usd"], summary["unpriced_calls"]
    told = [f"{summary['calls']:,} calls"]
    if summary["tokens"]:
        told.insert(0, f"{summary['tokens']:,} tokens")
    if usd or not unpriced:
        told.insert(0, f"{'at least ' if unpriced else ''}{usd:.4f} USD")
    elif summary["tokens"]:
        told[0] += " at unknown cost"
    return ", ".join(told)


def _price(summary: dict[str, Any]) -> str:
    start, best = summary["fitness_start"], summary["fitness"]
    gain = 0.0 if start is None or best is None else best - start
    if gain <= 0:
        return "no gain yet over the starting policies"
    return f"{summary['usd'] / gain:.4f} USD per point gained ({gain:+.3f} over the start)"


def _selection(summary: dict[str, Any]) -> str:
    fitness, count = summary["selection_fitness"], summary["finalists"]
    gain = fitness - summary["selection_fitness_fgd"]
    told = f"{fitness:.3f} ({gain:+.3f} against fgd), the best of {count} finalists"
    if summary["best"] == summary["best_by_training"]:
        return f"{told} and by training"
    return f"{told}; by training it was #{summary['best_by_training']}"


def _ranking(ranking: dict[str, Any]) -> str:
    """Describes how well the training cases rank."""
    if ranking["correlation"] is None:
        return f"unknown: {ranking.get('reason', 'all programs are alike')}"
    traces = figures.counted(len(ranking["traces"]), "trace")
    return (
        f"{ranking['correlation']:.2f} rank correlation of training with full size, on "
        f"{ranking['programs']} programs and {traces}"
    )


def _validation(summary: dict[str, Any]) -> str:
    if summary["validation_fitness"] is None:
        return "none yet"
    gain = summary["validation_fitness"] - summary["validation_fitness_fgd"]
    return (
        f"{summary['validation_fitness']:.3f} ({gain:+.3f} against fgd), "
        f"candidate #{summary['validated']}"
    )
