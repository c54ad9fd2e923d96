"""Shows results: tables, words, progress, JSON."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Literal, Protocol, TextIO, cast

from podium.cli.figures import Figure, text_of
from podium.cli.terminal import guarding, json_text, on_one_line, unguarded, visible
from podium.experiments.plain import plain
from podium.settings import Display

if TYPE_CHECKING:
    from rich.console import Console


GAP = 2
"""Spaces between columns."""

LONGEST_CELL = 1000
"""Characters of a cell in a table; --json gives all of them."""

LOG_S = 30.0
"""Seconds between progress lines in a log."""


class Advance(Protocol):
    """Moves a progress bar on."""

    def __call__(self, steps: int = 1) -> None:
        """Counts so many steps as done."""


@dataclass(slots=True)
class Rhythm:
    """Decides when the next progress line is due in a log."""

    every_s: float = LOG_S
    clock: Callable[[], float] = time.monotonic
    _last_s: float = field(init=False)

    def __post_init__(self) -> None:
        self._last_s = self.clock()

    def is_due(self) -> bool:
        """Returns whether the interval is over, and starts the next one if so."""
        now_s = self.clock()
        if now_s - self._last_s < self.every_s:
            return False
        self._last_s = now_s
        return True


@dataclass(frozen=True, slots=True)
class Screen:
    """Shows data on standard output and words on standard error.

    Tables are drawn on a terminal and plain, aligned text elsewhere.
    """

    display: Display

    def table(self, titles: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        """Prints rows below their titles; columns of numbers are aligned right."""
        are_right = [_is_numeric([row[i] for row in rows]) for i in range(len(titles))]
        cells = [[on_one_line(_cell(text_of(value))) for value in row] for row in rows]
        titles = [on_one_line(title) for title in titles]
        if sys.stdout.isatty() or self.display.color == "always":
            self._draw(titles, cells, are_right)
        else:
            print("\n".join(plain_table(titles, cells, are_right)))

    def fields(self, values: Mapping[str, object]) -> None:
        """Prints names and values, one pair a line."""
        shown = [(on_one_line(name), on_one_line(text_of(each))) for name, each in values.items()]
        width = max((len(name) for name, _ in shown), default=0)
        for name, text in shown:
            print(f"{name:<{width}}  {text}".rstrip())

    def note(self, text: str) -> None:
        """Prints words for people to standard error, unless asked to be quiet."""
        if not self.display.quiet:
            with suppress(OSError):  # words that nobody can hear stop no work
                print(visible(text), file=sys.stderr)

    @contextmanager
    def progress(self, label: str, total: int | None = None) -> Iterator[Advance]:
        """Shows a bar on standard error while the block runs; a line now and then off a terminal.

        Without a total the bar only shows that work goes on.
        """
        if not self.display.progress or self.display.quiet:
            yield _stand_still
            return
        if not sys.stderr.isatty():
            yield Log(self, label, total)
            return
        from rich.progress import Progress, TextColumn

        # A policy's name is a label: what looks like markup in it is shown.
        words = TextColumn("{task.description}", style="progress.description", markup=False)
        columns = (words, *Progress.get_default_columns()[1:])
        # While a bar is shown, rich takes what is printed and draws it above.
        with (
            Progress(*columns, console=self.console(sys.stderr), transient=True) as bar,
            guarding(),
        ):
            task = bar.add_task(on_one_line(label), total=total)

            def advance(steps: int = 1) -> None:
                bar.advance(task, steps)

            yield advance

    def _draw(self, titles: Sequence[str], cells: list[list[str]], are_right: list[bool]) -> None:
        from rich import box
        from rich.table import Table
        from rich.text import Text

        console = self.console(sys.stdout)
        widths = column_widths([titles, *cells], are_right, console.width)
        table = Table(box=box.SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0))
        for title, is_right, width in zip(titles, are_right, widths, strict=True):
            justify: Literal["left", "right"] = "right" if is_right else "left"
            table.add_column(Text(title), justify=justify, width=width)
        for row in cells:
            table.add_row(*(Text(cell) for cell in row))
        # Lines that the terminal breaks are better than figures that are cut off.
        console.width = max(console.width, sum(width + GAP for width in widths))
        console.print(table)

    def console(self, stream: IO[str]) -> Console:
        """Returns the console that draws on a stream."""
        from rich.console import Console

        return Console(
            file=unguarded(cast("TextIO", stream)),
            highlight=False,
            no_color=self.display.color == "never" or None,
            force_terminal=self.display.color == "always" or None,
        )


@dataclass(slots=True)
class Log:
    """Prints a progress line now and then instead of moving a bar: logs have no bars."""

    screen: Screen
    label: str
    total: int | None
    done: int = 0
    rhythm: Rhythm = field(default_factory=Rhythm)

    def __call__(self, steps: int = 1) -> None:
        """Counts so many steps as done."""
        self.done += steps
        if self.rhythm.is_due():
            of = f" of {self.total:,}" if self.total is not None else ""
            self.screen.note(f"{self.label}: {self.done:,}{of}")


def plain_table(
    titles: Sequence[str], cells: Sequence[Sequence[str]], are_right: Sequence[bool]
) -> list[str]:
    """Aligns cells with spaces, two between columns, one line a row."""
    lines = [list(titles), *cells]
    widths = [max(len(line[i]) for line in lines) for i in range(len(titles))]
    return [
        "  ".join(
            cell.rjust(width) if is_right else cell.ljust(width)
            for cell, width, is_right in zip(line, widths, are_right, strict=True)
        ).rstrip()
        for line in lines
    ]


def column_widths(
    lines: Sequence[Sequence[str]], are_right: Sequence[bool], available: int
) -> list[int]:
    """Narrows columns of words, the widest first, until a table fits; no word is cut."""
    columns = list(zip(*lines, strict=True))
    widths = [max(map(len, column)) for column in columns]
    least = [
        width
        if is_right
        else max((len(word) for cell in column for word in cell.split()), default=0)
        for column, width, is_right in zip(columns, widths, are_right, strict=True)
    ]
    for index in sorted(range(len(widths)), key=lambda index: widths[index], reverse=True):
        excess = sum(width + GAP for width in widths) - available
        widths[index] -= min(max(0, excess), widths[index] - least[index])
    return widths


def show_alike(screen: Screen, alike: str) -> None:
    """Says why nothing is ranked, and what would change that."""
    reason, way_out = alike.split("\n")
    print(f"no ranking: {reason}")
    screen.note(f"try: {way_out}")


def print_json(value: object) -> None:
    """Prints one JSON document: keys in the order given, full precision, NaN as null."""
    print(json_text(plain(value), indent=2))


def _is_numeric(values: Sequence[object]) -> bool:
    known = [value for value in values if value is not None]
    return bool(known) and all(
        isinstance(value, int | float | Figure) and not isinstance(value, bool) for value in known
    )


def _stand_still(steps: int = 1) -> None:
    del steps


def _cell(text: str) -> str:
    """Cuts what nobody reads in a table: to lay out megabytes takes minutes."""
    return text if len(text) <= LONGEST_CELL else f"{text[:LONGEST_CELL]}..."
