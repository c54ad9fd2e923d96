"""Writes structured logs: one JSON object a line, written by a thread of its own.

A full pipe at the other end must not hold up an answer. Lines wait in memory; when too many wait,
the newest are dropped and counted. Nor must strangers fill the disk: of lines that anybody can
cause, so many of a kind are written a minute, and the others are counted.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Any, TextIO

import structlog
from structlog.typing import EventDict, FilteringBoundLogger

from podium.settings import Secrets

MOST_WAITING = 10_000
WINDOW_S = 60.0
MOST_OF_A_KIND = 30
"""Lines of a kind that are written in WINDOW_S."""

KIND = "kind_of_line"
"""The key of a line's facts under which it is counted; it is not written."""

LEVELS = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}


class LineWriter:
    """Writes lines to a stream, in order, without ever blocking the caller."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._lines: queue.Queue[str | None] = queue.Queue(MOST_WAITING)
        self.dropped = 0
        self._thread = threading.Thread(target=self._write, name="podium-log", daemon=True)
        self._thread.start()

    def msg(self, line: str) -> None:
        """Queues a line."""
        try:
            self._lines.put_nowait(line)
        except queue.Full:
            self.dropped += 1

    debug = info = warning = error = critical = msg

    def close(self, limit_s: float = 2.0) -> None:
        """Writes the queued lines; returns up on a stream that accepts nothing."""
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


class LineLimiter:
    """Passes a limited number of lines of a kind per minute, and reports how many it suppressed."""

    def __init__(self, report: Callable[[str, int], None]) -> None:
        self._report = report
        self._lock = threading.Lock()
        self._counts: Counter[str] = Counter()
        self._next_s = 0.0

    def __call__(self, _logger: Any, _method: str, event: EventDict) -> EventDict:
        """Passes a line on, or drops it."""
        kind = event.pop(KIND, None)
        if kind is not None and not self._admits(kind):
            raise structlog.DropEvent
        return event

    def flush(self) -> None:
        """Reports what was suppressed since the last time."""
        with self._lock:
            counts, self._counts = self._counts, Counter()
        for kind, count in counts.items():
            if count > MOST_OF_A_KIND:
                self._report(kind, count - MOST_OF_A_KIND)

    def _admits(self, kind: str) -> bool:
        with self._lock:
            is_due = time.monotonic() >= self._next_s
            if is_due:
                self._next_s = time.monotonic() + WINDOW_S
        if is_due:
            self.flush()
        with self._lock:
            self._counts[kind] += 1
            return self._counts[kind] <= MOST_OF_A_KIND


class Log:
    """The logger of one service and the thread that writes its lines."""

    def __init__(self, stream: TextIO, level: str = "info", secrets: Secrets | None = None) -> None:
        known = secrets or Secrets()
        self.writer = LineWriter(stream)
        self.level = LEVELS[level]
        self.limiter = LineLimiter(self._log_suppressed)
        self.logger: FilteringBoundLogger = structlog.wrap_logger(
            self.writer,
            processors=[
                self.limiter,
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
        """Takes over what a library logs with Python's logging."""
        logger = logging.getLogger(name)
        logger.handlers = [LibraryHandler(self.logger)]
        logger.propagate = False
        logger.setLevel(logging.WARNING)

    def close(self) -> None:
        """Writes what is left."""
        self.limiter.flush()
        self.writer.close()

    def _log_suppressed(self, kind: str, count: int) -> None:
        level = max(self.level, logging.WARNING)
        self.logger.log(level, "log lines were suppressed", kind=kind, times=count)


class RateLimitedWarning:
    """Warns of what may happen thousands of times a second: the first time, then once a minute."""

    def __init__(self, logger: FilteringBoundLogger, message: str, hint: str) -> None:
        self._logger = logger
        self._message = message
        self._hint = hint
        self._next_s = 0.0
        self._count = 0

    def __call__(self, **facts: Any) -> None:
        """Counts one, and warns of all since the last time if it is time to."""
        self._count += 1
        if time.monotonic() >= self._next_s:
            self._next_s = time.monotonic() + WINDOW_S
            self._logger.warning(self._message, times=self._count, hint=self._hint, **facts)
            self._count = 0


class LibraryHandler(logging.Handler):
    """Turns records of Python's logging into structured ones."""

    def __init__(self, logger: FilteringBoundLogger) -> None:
        super().__init__()
        self._logger = logger

    def emit(self, record: logging.LogRecord) -> None:
        """Logs a record."""
        kind = f"{record.levelname.lower()} of {record.name}"
        details: dict[str, Any] = {"logger": record.name, KIND: kind}
        if record.exc_info:
            details["exc_info"] = record.exc_info
        self._logger.log(record.levelno, record.getMessage().strip(), **details)
