"""Starts one worker process, talks to it, and kills it when a request overruns."""

from __future__ import annotations

import contextlib
import functools
import os
import select
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from podium.errors import InputError, PodiumError
from podium.policies.jit import cache_folder
from podium.search.sandbox.channel import (
    HEAD,
    Channel,
    ChannelClosed,
    ChannelGarbled,
    ChannelTimeout,
)
from podium.search.sandbox.limits import CLOCK_FACTOR, Limits
from podium.search.sandbox.report import WorkerReport

Report = TypeVar("Report", bound=WorkerReport)

STILL_S = 30.0
"""A starting process that uses no processor time for this long is stuck, on any busy machine."""

_LOOK_S = 0.5
_BOOT = """import sys
sys.path.extend({path!r})
try:
    from podium.search.sandbox.worker_main import main
except BaseException as error:
    import json, os, struct
    told = json.dumps({{"failure": f"{{type(error).__name__}}: {{error}}"}}).encode()
    os.write(1, struct.pack({head!r}, len(told)) + told)
    os._exit(1)
main({parent})
"""
_PASSED_ON = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "SYSTEMROOT", "TZ")
_NOWHERE = f"{os.devnull}/compiled"  # no folder can be made there

_OWN_DOING = frozenset(
    {"SIGABRT", "SIGBUS", "SIGFPE", "SIGILL", "SIGSEGV", "SIGSYS", "SIGTRAP", "SIGXCPU", "SIGXFSZ"}
)
"""Signals that a process causes itself; any other was sent by somebody."""


class WorkerKilled(Exception):  # noqa: N818 - reads as the sentence it makes
    """Somebody else killed the process before it was ready."""


class Worker:
    """Runs one worker process; it boots while the parent does other things."""

    def __init__(self, setup: dict[str, Any], limits: Limits) -> None:
        self.facts: dict[str, Any] = {}  # what it told when it was ready
        self.walls: tuple[str, ...] = ()
        self.modules: tuple[str, ...] = tuple(setup.get("modules", ()))  # that it loads first
        self.limits = limits
        self.served = 0  # requests
        self._using = threading.RLock()  # the pipes, whose numbers are given to others once closed
        self._is_closed = False
        self._deadline: float | None = time.monotonic() + limits.start_s
        self._process = _starter(os.getpid()).submit(_spawn).result()
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._channel = Channel(self._process.stdout.fileno(), self._process.stdin.fileno())
        with contextlib.suppress(ChannelClosed):  # told when the process is first needed
            self._channel.send(setup)

    @property
    def pid(self) -> int:
        """Returns the process id."""
        return self._process.pid

    def get_ready(self) -> None:
        """Waits until the process has locked itself in."""
        with self._using:
            self._get_ready()

    def _get_ready(self) -> None:
        if self._deadline is None:
            return
        try:
            message = self._first_words(self._deadline)
        except (ChannelClosed, ChannelTimeout, ChannelGarbled) as error:
            sent = self._signal() if isinstance(error, ChannelClosed) else ""
            reason = self._cause_of_silence(error, sent)
            self.close()
            if sent and sent not in _OWN_DOING:
                raise WorkerKilled(sent) from error
            raise _not_started(reason) from error
        if not message.get("ready"):
            self.close()
            if message.get("input"):  # the files of the user, not the installation
                text, where, hint = message["input"]
                raise InputError(text, where=where, hint=hint)
            raise _not_started(str(message.get("failure", "no reason given")))
        self.facts, self.walls = message, tuple(message["walls"])
        self._deadline = None

    def _first_words(self, deadline: float) -> dict[str, Any]:
        """Waits for the process's first message, unless it is stuck: it may have been stopped."""
        self._check_open()
        used, moved_s = _used_ticks(self.pid), time.monotonic()
        while not select.select([self._channel.pipes[0]], [], [], _LOOK_S)[0]:
            now_s, before = time.monotonic(), used
            used = _used_ticks(self.pid)
            if used != before or used is None:
                moved_s = now_s
            if now_s > deadline:
                raise ChannelTimeout
            if now_s - moved_s > STILL_S:
                self.close()
                raise WorkerKilled(f"podium, because it stood still for {STILL_S:g} s")
        return self._channel.receive(min(deadline, time.monotonic() + STILL_S))

    def ask(self, request: dict[str, Any], report: Report, time_s: float, short_s: float) -> Report:
        """Has one request served; whatever happens to the process, the report comes back."""
        spent = _Spent(self.pid)
        self.served += 1
        try:
            with self._using:
                self._talk({**request, "time_s": time_s}, report, spent, min(time_s, short_s))
        except ChannelTimeout:
            limit_s = short_s if report.is_short else time_s
            report.reason = f"did not finish within {limit_s:g} s; is there an endless loop?"
        except ChannelGarbled as error:
            report.reason = f"the process answered with {error}"
        except ChannelClosed:
            report.reason = self._cause_of_death()
            sent = self._signal()
            report.killed_by = "" if sent in _OWN_DOING else sent
        report.seconds = spent.clock_s
        return report

    def _talk(
        self, request: dict[str, Any], report: WorkerReport, spent: _Spent, short_s: float
    ) -> None:
        self._check_open()
        self._channel.send({**request, "memory_mib": self.limits.memory_mib})
        while not report.is_done:
            limit_s = short_s if report.is_short else request["time_s"]
            reply = report.take(self._receive(spent, limit_s))
            if reply is not None:
                self._channel.send(reply)

    def _receive(self, spent: _Spent, limit_s: float) -> dict[str, Any]:
        """Waits for a message as long as the process may go on."""
        while (left_s := spent.left_s(limit_s)) > 0:
            with contextlib.suppress(ChannelTimeout):
                return self._channel.receive(time.monotonic() + left_s)
        raise ChannelTimeout

    def _check_open(self) -> None:
        if self._is_closed:
            raise ChannelClosed

    def _cause_of_silence(self, error: Exception, sent: str) -> str:
        if isinstance(error, ChannelTimeout):
            return f"it was not ready within {self.limits.start_s:g} s"
        if isinstance(error, ChannelGarbled):
            return f"it answered with {error}"
        code = self._process.returncode
        return f"it died of {sent}" if sent else f"it ended by itself (exit {code})"

    def _cause_of_death(self) -> str:
        sent = self._signal()
        if sent == "SIGXCPU":
            return "used up its processor time; is there an endless loop?"
        if sent:
            return f"the process died of {sent}; is memory used up?"
        return f"the process ended by itself (exit {self._process.returncode})"

    def _signal(self) -> str:
        """Names the signal that the process died of; nothing if it ended by itself."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(1.0)
        code = self._process.returncode
        if code is None or code >= 0:
            return ""
        try:
            return signal.Signals(-code).name
        except ValueError:
            return f"signal {-code}"

    def close(self) -> None:
        """Kills the process."""
        self._process.kill()
        self._process.wait()
        with self._using:  # whoever listens hears that the process is gone
            self._is_closed = True
            for pipe in (self._process.stdin, self._process.stdout):
                if pipe is not None:
                    with contextlib.suppress(OSError):
                        pipe.close()


@functools.cache
def _starter(_pid: int) -> ThreadPoolExecutor:
    """Keeps the one thread of a process that starts workers.

    The kernel kills a worker when the thread that started it ends, so this one ends last.
    """
    return ThreadPoolExecutor(1, thread_name_prefix="podium-starter")


def _spawn() -> subprocess.Popen[bytes]:
    environment = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    environment |= {
        "LC_ALL": "C.UTF-8",
        "PYTHONDONTWRITEBYTECODE": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "OMP_NUM_THREADS": "1",
        "NUMBA_NUM_THREADS": "1",
        "PODIUM_COMPILE_CACHE": str(cache_folder() or _NOWHERE),
    }
    path = [os.path.abspath(part) for part in sys.path if part]  # noqa: PTH100 - kept as it is
    boot = _BOOT.format(path=path, parent=os.getpid(), head=HEAD.format)
    return subprocess.Popen(
        [sys.executable, "-I", "-X", "utf8", "-c", boot],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        # No folder of its own: none can stay behind.
        env=environment, cwd="/", bufsize=0, close_fds=True, start_new_session=True,
    )  # fmt: skip


class _Spent:
    """What a process has used since it was asked.

    Its own processor time counts, so that a busy machine refuses nobody who is fast enough.
    """

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._began_s = time.monotonic()
        self._ticks = _used_ticks(pid)

    @property
    def clock_s(self) -> float:
        """Returns how long ago it was asked."""
        return time.monotonic() - self._began_s

    def left_s(self, limit_s: float) -> float:
        """Returns for how long it cannot have used up its time, which is 0 once it has."""
        if self._ticks is None:
            return max(0.0, limit_s - self.clock_s)
        ticks = _used_ticks(self._pid) or self._ticks  # nothing is left of one that is gone
        used_s = (ticks - self._ticks) / os.sysconf("SC_CLK_TCK")
        return max(0.0, min(limit_s - used_s, CLOCK_FACTOR * limit_s - self.clock_s))


def _used_ticks(pid: int) -> int | None:
    """Reads how much processor time a process has used; nothing where the system does not say."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
        return int(fields[11]) + int(fields[12])
    except (OSError, ValueError, IndexError):
        return None


def _not_started(reason: str) -> PodiumError:
    return PodiumError(
        f"the worker process could not be started: {reason}",
        hint="podium doctor checks the installation",
    )
