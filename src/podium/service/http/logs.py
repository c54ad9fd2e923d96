"""Writes structured logs: one JSON object a line, written by a thread of its own.

A full pipe at the other end must not hold up an answer. Lines wait in memory; when too many wait,
the newest are dropped and counted.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from typing import Any, TextIO

import structlog
from structlog.typing import FilteringBoundLogger

from podium.settings import Secrets

MOST_WAITING = 10_000
SELDOM_S = 60.0
LEVELS = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}


class LineWriter:
    """Writes lines to a stream, in order, without ever blocking who logs them."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._lines: queue.Queue[str | None] = queue.Queue(MOST_WAITING)
        self.dropped = 0
        self._thread = threading.Thread(target=self._write, name="podium-log", daemon=True)
        self._thread.start()

    def msg(self, line: str) -> None:
        """Takes a line."""
        try:
            self._lines.put_nowait(line)
        except queue.Full:
            self.dropped += 1

    debug = info = warning = error = critical = msg

    def close(self, limit_s: float = 2.0) -> None:
        """Writes what waits; a stream that takes nothing is given up."""
        try:
            self._lines.put(None, timeout=limit_s)
        except queue.Full:
            return
        self._thread.join(limit_s)

    def _write(self) -> None:
        while (line := self._lines.get()) is not None:
            try:
                self._stream.write(line + "\n")
                if self._lines.empty():
                    self._stream.flush()
            except (OSError, ValueError):  # nobody reads any more: the service goes on
                self.dropped += 1


class Log:
    """Holds the logger of one service."""

    def __init__(self, stream: TextIO, level: str = "info", secrets: Secrets | None = None) -> None:
        known = secrets or Secrets()
        self.writer = LineWriter(stream)
        self.level = LEVELS[level]
        self.logger: FilteringBoundLogger = structlog.wrap_logger(
            self.writer,
            processors=[
                structlog.processors.add_log_level,
                structlog.processors.TimeStamper(fmt="iso", utc=True, key="time"),
                structlog.processors.format_exc_info,
                structlog.processors.EventRenamer("message"),
                lambda _logger, _method, event: known.hide_all(event),
                structlog.processors.JSONRenderer(),
            ],
            wrapper_class=structlog.make_filtering_bound_logger(self.level),
        )

    def adopt(self, name: str) -> None:
        """Takes over what a library logs by Python's own means."""
        logger = logging.getLogger(name)
        logger.handlers = [Adopted(self.logger)]
        logger.propagate = False
        logger.setLevel(logging.WARNING)

    def close(self) -> None:
        """Writes what is left."""
        self.writer.close()


class SeldomWarning:
    """Warns of what may happen thousands of times a second: the first time, then once a minute."""

    def __init__(self, logger: FilteringBoundLogger, message: str, hint: str) -> None:
        self._logger = logger
        self._message = message
        self._hint = hint
        self._next_s = 0.0
        self._count = 0

    def __call__(self, **facts: Any) -> None:
        """Counts one, and tells of all since the last time when it is time to."""
        self._count += 1
        if time.monotonic() >= self._next_s:
            self._next_s = time.monotonic() + SELDOM_S
            self._logger.warning(self._message, times=self._count, hint=self._hint, **facts)
            self._count = 0


class Adopted(logging.Handler):
    """Turns records of Python's logging into structured ones."""

    def __init__(self, logger: FilteringBoundLogger) -> None:
        super().__init__()
        self._logger = logger

    def emit(self, record: logging.LogRecord) -> None:
        """Logs a record."""
        details: dict[str, Any] = {"logger": record.name}
        if record.exc_info:
            details["exc_info"] = record.exc_info
        self._logger.log(record.levelno, record.getMessage().strip(), **details)
