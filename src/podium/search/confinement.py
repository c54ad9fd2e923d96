"""Takes from a worker process what a candidate must never reach."""

from __future__ import annotations

import math
import os
import sys
from typing import Any

from podium.search.seccomp import refuse_system_calls

_REFUSED = (
    "ctypes.dlopen", "ftplib.", "glob.", "http.", "import", "mmap.", "nntplib.", "open", "os.",
    "pathlib.", "poplib.", "pty.", "setopts.", "shutil.", "signal.", "smtplib.", "socket.",
    "sqlite3.", "subprocess.", "sys.addaudithook", "syslog.", "telnetlib.", "tempfile.", "urllib.",
    "webbrowser.", "_thread.start_new_thread",
)  # fmt: skip
"""Audit events, or how their names begin, that nothing raises once the worker is ready."""

_CPU_LIMIT_S = 24 * 3600
_MOST_MIB = 1 << 20


class Confinement:
    """Keeps the limits of a confined process; entered once, it cannot be left."""

    def __init__(self) -> None:
        # Opened before files are out of reach.
        self._sizes = os.open("/proc/self/statm", os.O_RDONLY) if _has_proc() else -1

    def enter(self) -> list[str]:
        """Closes every door for good; lists those that this system lets it close."""
        os.environ.clear()
        doors = ["environment", "limits" if _limit_forever() else ""]
        doors.append("system calls" if refuse_system_calls() else "")
        sys.addaudithook(_refuse)
        return [door for door in (*doors, "audit") if door]

    def allow(self, time_s: float, memory_mib: int) -> None:
        """Gives the next candidate its processor time and memory."""
        import resource

        usage = resource.getrusage(resource.RUSAGE_SELF)
        spent_s = usage.ru_utime + usage.ru_stime
        _limit("RLIMIT_CPU", math.ceil(spent_s + time_s) + 1, _CPU_LIMIT_S)
        held = self.held_bytes()
        if held:
            _limit("RLIMIT_AS", held + (memory_mib << 20), _MOST_MIB << 20)

    def held_bytes(self) -> int:
        """Measures the address space of this process; 0 where the system does not tell."""
        if self._sizes < 0:
            return 0
        pages = int(os.pread(self._sizes, 64, 0).split()[0])
        return pages * os.sysconf("SC_PAGE_SIZE")


def _has_proc() -> bool:
    return os.path.exists("/proc/self/statm")  # noqa: PTH110 - pathlib is not needed otherwise


def _limit_forever() -> bool:
    found = [_limit(name, 0, 0) for name in ("RLIMIT_FSIZE", "RLIMIT_CORE", "RLIMIT_NPROC")]
    return all(found)


def _limit(name: str, soft: int, hard: int) -> bool:
    import resource

    try:
        kind = getattr(resource, name)
        given = resource.getrlimit(kind)[1]
        most = hard if given == resource.RLIM_INFINITY else min(hard, given)
        resource.setrlimit(kind, (min(soft, most), most))
    except (AttributeError, ValueError, OSError):
        return False
    return True


def _refuse(event: str, _arguments: tuple[Any, ...]) -> None:
    if not event.startswith(_REFUSED):
        return
    if event == "import":
        raise ImportError("a candidate imports nothing")
    raise PermissionError(f"a candidate may not cause {event}")
