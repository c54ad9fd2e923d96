"""Ends a verb in an orderly way when the system asks for it, as ctrl-C does."""

from __future__ import annotations

import functools
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, ParamSpec, TypeVar

_P = ParamSpec("_P")
_R = TypeVar("_R")

_ASKING = ("SIGTERM", "SIGHUP")


def stoppable(verb: Callable[_P, _R]) -> Callable[_P, _R]:
    """Makes a verb close what it has open, and save its progress, before it ends."""

    @functools.wraps(verb)
    def stopped(*arguments: _P.args, **options: _P.kwargs) -> _R:
        with stopping():
            return verb(*arguments, **options)

    return stopped


@contextmanager
def stopping() -> Iterator[None]:
    """Treats a request to end as ctrl-C; an ignored signal, as under nohup, stays ignored."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {name: _heed(name) for name in _ASKING if hasattr(signal, name)}
    try:
        yield
    finally:
        for name, handler in before.items():
            signal.signal(getattr(signal, name), handler)


@contextmanager
def stopping_between() -> Iterator[Callable[[], bool]]:
    """Yields whether somebody asked to stop, by ctrl-C too; a second time ends the work at once.

    For work that goes on in steps and saves what it has between two of them.
    """
    asked = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield asked.is_set
        return

    def note(number: int, frame: FrameType | None) -> None:
        if asked.is_set():
            signal.default_int_handler(number, frame)
        asked.set()

    before: dict[int, Any] = {}
    for name in ("SIGINT", *_ASKING):
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
            before[number] = signal.signal(number, note)
    try:
        yield asked.is_set
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _heed(name: str) -> signal.Handlers | Callable[..., object] | int | None:
    number = getattr(signal, name)
    before = signal.getsignal(number)
    if before is not signal.SIG_IGN:
        signal.signal(number, signal.default_int_handler)
    return before
