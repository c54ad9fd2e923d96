"""Reports what happens while an experiment runs, to whoever shows it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from podium.rl.training import TrainingProgress
    from podium.search.run.progress import Progress
    from podium.sim.kernel import Variant


class Cancelled(Exception):  # noqa: N818 - an answer to the caller, not a fault
    """A listener asked the experiment to stop."""


class Listener:
    """Receives what happens while an experiment runs; this base class ignores it all.

    Every method is called in the thread that started the experiment, several times a second at
    most. One that raises `Cancelled` stops the experiment: a search can be resumed afterwards.
    """

    def note(self, text: str) -> None:
        """Receives what the user should know about inputs and results."""

    def advise(self, text: str) -> None:
        """Receives how the experiment would show more."""

    def warn(self, text: str) -> None:
        """Receives a warning that the run is less safe or less certain."""

    def status(self, text: str) -> None:
        """Receives a line on what is being done."""

    def progress(self, stage: str, done: int, total: int | None) -> None:
        """Receives how much of a stage is done; the total is None where it is unknown."""

    def search_progress(self, progress: Progress) -> None:
        """Receives the progress of a search, once per judged candidate and batch."""

    def training_progress(self, progress: TrainingProgress) -> None:
        """Receives the progress of a training, once per iteration."""


SILENT = Listener()


class Notes:
    """Passes every note on to a listener once."""

    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self._noted: set[str] = set()

    def add(self, texts: Iterable[str]) -> None:
        """Passes on the notes that are new."""
        for text in texts:
            if text not in self._noted:
                self._noted.add(text)
                self._listener.note(text)


def announce_compilation(listener: Listener, variant: Variant = "plain") -> None:
    """Reports the first start, which takes longer than any other."""
    from podium.sim.kernel import is_core_on_disk

    if not is_core_on_disk(variant):
        listener.status("compiling the simulator's core (once, about ten seconds) ...")
