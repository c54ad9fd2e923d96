"""Keeps ctrl-C out of the compiled core, and acts on it as soon as that can stop."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def deferred_interrupt(stop: Callable[[FrameType | None], None]) -> Iterator[None]:
    """Asks the block to stop on ctrl-C, and interrupts once the block has ended.

    `stop` is given the frame that is at work, and may raise where somebody catches it.
    An exception that is raised as a callback begins has nobody to catch it: ctypes prints it
    and goes on with a score that no policy gave.
    """
    previous = _handler()
    if previous is None:
        yield
        return
    seen: list[tuple[int, FrameType | None]] = []

    def note(number: int, frame: FrameType | None) -> None:
        seen.append((number, frame))
        stop(frame)

    signal.signal(signal.SIGINT, note)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)
    if seen:
        previous(*seen[0])


@contextmanager
def unbroken() -> Iterator[None]:
    """Lets a short compilation end before it is interrupted.

    Much of what Numba and LLVM do happens where Python drops exceptions: in finalizers.
    """
    with deferred_interrupt(lambda _frame: None):
        yield


@contextmanager
def insistent() -> Iterator[None]:
    """Interrupts a long compilation at once, and again at its end if that was dropped."""
    with deferred_interrupt(_interrupt):
        yield


def _interrupt(_frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _handler() -> Callable[[int, FrameType | None], object] | None:
    # Only the main thread is interrupted; a signal that is ignored stays ignored.
    if threading.current_thread() is not threading.main_thread():
        return None
    handler = signal.getsignal(signal.SIGINT)
    return handler if callable(handler) and not isinstance(handler, int) else None
