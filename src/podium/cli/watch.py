"""Shows on the screen what an experiment reports while it runs."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, redirect_stdout
from typing import TYPE_CHECKING

from podium.cli.failure import LONGEST_TEXT
from podium.cli.terminal import on_one_line
from podium.experiments.listener import Listener
from podium.experiments.listener import announce_compilation as announce

if TYPE_CHECKING:
    from podium.cli.render import Advance, Screen


class ScreenListener(Listener):
    """Prints notes, and draws one bar for each stage."""

    def __init__(self, screen: Screen, bars: ExitStack) -> None:
        self.screen = screen
        self._bars = bars
        self._shown: dict[str, tuple[Advance, int]] = {}

    def note(self, text: str) -> None:
        """Prints what the user should know."""
        self.screen.note(f"note: {on_one_line(text[:LONGEST_TEXT])}")

    def advise(self, text: str) -> None:
        """Prints how the experiment would show more."""
        self.note(text)

    def warn(self, text: str) -> None:
        """Prints a warning."""
        self.screen.note(f"warning: {text}")

    def status(self, text: str) -> None:
        """Prints what is being done."""
        self.screen.note(text)

    def progress(self, stage: str, done: int, total: int | None) -> None:
        """Moves the bar of a stage on; a new stage takes the place of the last one."""
        if stage not in self._shown:
            self._bars.close()
            bar = self._bars.enter_context(self.screen.progress(stage, total or None))
            self._shown[stage] = (bar, 0)
        advance, before = self._shown[stage]
        advance(done - before)
        self._shown[stage] = (advance, done)


@contextmanager
def watching(screen: Screen) -> Iterator[ScreenListener]:
    """Shows an experiment while the block runs; what a policy prints stays out of the results."""
    with apart(), ExitStack() as bars:
        yield ScreenListener(screen, bars)


@contextmanager
def apart() -> Iterator[None]:
    """Sends what a policy prints to standard error, so that it stays out of the results."""
    with redirect_stdout(sys.stderr):
        yield


def announce_compilation(screen: Screen) -> None:
    """Announces the first start, which takes longer than any other."""
    announce(ScreenListener(screen, ExitStack()))


def inform(screen: Screen, notes: Iterable[str]) -> None:
    """Prints notes, each once."""
    listener = ScreenListener(screen, ExitStack())
    for note in dict.fromkeys(notes):
        listener.note(note)
