"""The process that candidates run in: it gets ready, locks itself in, and serves requests.

The parent speaks first, and names who serves its requests. Later it sends one at a time, and
kills the process when that takes too long.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import signal
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Protocol

from podium.errors import InputError, PodiumError
from podium.search.candidate.verdict import Rejected
from podium.search.sandbox.channel import Channel, ChannelClosed
from podium.search.sandbox.confinement import Confinement
from podium.search.sandbox.report import LACKING, SPOILED
from podium.search.sandbox.seccomp import die_with

HANDLERS = {"trial": "podium.search.judging.handler"}
"""Modules that a parent may name, each with an `open_handler`; nothing else is loaded by name."""


class Handler(Protocol):
    """Serves the requests of a parent, once the process has locked itself in."""

    @property
    def own_name(self) -> str:
        """The file name under which it compiles untrusted code."""
        ...

    @property
    def facts(self) -> dict[str, Any]:
        """What the parent wants to know before its first request."""
        ...

    def serve(self, channel: Channel, request: dict[str, Any]) -> dict[str, Any]:
        """Answers one request; it may exchange messages with the parent meanwhile."""
        ...


@dataclass(frozen=True, slots=True)
class NoHandler:
    """Serves nothing: for a parent that only asks which walls could be built."""

    own_name: str = ""
    facts: dict[str, Any] = field(default_factory=dict)

    def serve(self, _channel: Channel, _request: dict[str, Any]) -> dict[str, Any]:
        """Refuses every request."""
        raise PodiumError("this process serves no requests")


def main(parent: int) -> None:
    """Serves one parent until it goes away."""
    die_with(parent)
    # Whoever sends a signal ends the process: the candidate is not to blame, and is tried again.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    _spare_imports()
    channel = _private_channel()
    with contextlib.suppress(ChannelClosed):
        serve(channel, channel.receive(), parent)
    # The usual end of Python needs more of the system than is left.
    os._exit(0)


def _spare_imports() -> None:
    """Keeps out what Numba would load where it is installed, and nothing here uses.

    It would count lines and call BLAS. A worker starts sooner without.
    """
    for name in ("coverage", "scipy"):
        sys.modules.setdefault(name, None)  # type: ignore[arg-type]


def serve(channel: Channel, setup: dict[str, Any], parent: int) -> None:
    """Gets ready, locks the process in, and answers."""
    try:
        absent = _load(setup["modules"])
        handler = _open(setup)
        confinement = Confinement(channel.pipes, handler.own_name, absent)
        walls = confinement.enter(parent)
        channel.send({"ready": True, "walls": walls, **handler.facts})
    except ChannelClosed:
        raise
    except Exception as error:  # noqa: BLE001 - told to the parent, who raises it
        told = [error.message, error.where, error.hint] if isinstance(error, InputError) else None
        channel.send({"failure": _told(error), "input": told})
        return
    while True:
        request = channel.receive()
        began_s = time.thread_time()  # a limit makes the clock of the process a coarse one
        confinement.allow(request["time_s"], request["memory_mib"])
        answer = guarded(handler, channel, request)
        answer |= {LACKING: confinement.lacking(), "processor_s": time.thread_time() - began_s}
        channel.send(answer)


def _open(setup: dict[str, Any]) -> Handler:
    """Loads the handler that the parent names, and prepares it."""
    name = setup.get("handler")
    if name is None:
        return NoHandler()
    if name not in HANDLERS:
        raise PodiumError(f"no handler is called {name!r}")
    handler: Handler = importlib.import_module(HANDLERS[name]).open_handler(setup)
    return handler


def _told(error: Exception) -> str:
    return str(error) if isinstance(error, PodiumError) else f"{type(error).__name__}: {error}"


def _load(modules: Iterable[str]) -> list[str]:
    """Loads modules that an earlier process lacked; lists those that are not installed."""
    absent = []
    for name in modules:
        try:
            importlib.import_module(name)
        except ImportError:
            absent.append(name)
    return absent


def guarded(handler: Handler, channel: Channel, request: dict[str, Any]) -> dict[str, Any]:
    """Serves a request; any exception becomes the last message."""
    try:
        found = handler.serve(channel, request)
    except Rejected as error:
        return {"done": True, "reason": str(error)[:2000], SPOILED: error.is_spoiling}
    except MemoryError:
        reason = f"needs more than its {request['memory_mib']} MiB of memory"
        return {"done": True, "reason": reason, SPOILED: True}
    except ChannelClosed:
        raise
    except BaseException as error:  # noqa: BLE001 - a candidate may raise anything
        reason = f"{type(error).__name__}: {error}"[:2000]
        return {"done": True, "reason": reason, SPOILED: True}
    return {"done": True, "reason": "", SPOILED: False, **found}


def _private_channel() -> Channel:
    # Whatever prints goes nowhere: the pipes are moved away from standard input and output.
    reading, writing = os.dup(0), os.dup(1)
    sink = os.open(os.devnull, os.O_RDWR)
    os.dup2(sink, 0)
    os.dup2(sink, 1)
    return Channel(reading, writing)
