"""Takes from a worker process what a candidate must never reach."""

from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import Iterable
from typing import Any, NoReturn

from podium.search.sandbox.seccomp import (
    Descriptors,
    die_with,
    drop_privileges,
    refuse_system_calls,
)

ENVIRONMENT, LIMITS, MEMORY = "environment", "limits", "memory"
CAPABILITIES, PARENT, SYSTEM_CALLS, AUDIT = "capabilities", "parent", "system calls", "audit"
WALLS = (ENVIRONMENT, LIMITS, MEMORY, CAPABILITIES, PARENT, SYSTEM_CALLS, AUDIT)
"""The walls around a candidate; if one is missing, candidates run only with --allow-unconfined."""

_REFUSED = (
    "ctypes.dlopen", "ftplib.", "glob.", "http.", "import", "mmap.", "nntplib.", "open", "os.",
    "pathlib.", "poplib.", "pty.", "resource.", "setopts.", "shutil.", "signal.", "smtplib.",
    "socket.", "sqlite3.", "subprocess.", "sys.addaudithook", "syslog.", "telnetlib.", "tempfile.",
    "urllib.", "webbrowser.", "_thread.start_new_thread",
)  # fmt: skip
"""Audit events, or how their names begin, that nothing raises once the worker is ready."""

_LIMITED = "resource.setrlimit"
_CPU_LIMIT_S = 24 * 3600
_MOST_MIB = 1 << 20
_STANDARD_OUTPUTS = (1, 2)  # they lead nowhere


class Confinement:
    """Keeps the limits of a confined process; entered once, it cannot be left."""

    def __init__(
        self, pipes: tuple[int, int], own_name: str = "", absent: Iterable[str] = ()
    ) -> None:
        self._pipes = pipes  # to read from and to write to
        self._own_name = own_name  # under which candidates are compiled
        self._absent = frozenset(absent)  # modules that could not be loaded before either
        self._lacking: set[str] = set()
        self._is_limiting = False
        # Opened before files are out of reach.
        self._sizes = os.open("/proc/self/statm", os.O_RDONLY) if _has_proc() else -1

    def enter(self, parent: int) -> list[str]:
        """Builds every wall permanently; lists those that this system allows."""
        _check_alone()
        os.environ.clear()
        walls = {
            ENVIRONMENT: True,
            LIMITS: _limit_forever(),
            MEMORY: self.held_bytes() > 0 and _limit("RLIMIT_AS", _MOST_MIB << 20, _MOST_MIB << 20),
            CAPABILITIES: drop_privileges(),
            PARENT: die_with(parent),  # whoever changes the user is no longer told of the death
            SYSTEM_CALLS: refuse_system_calls(self._open_files()),
            AUDIT: True,
        }
        # Some imports raise no audit event; what the hook sees cannot be undone.
        sys.meta_path.insert(0, self)
        sys.addaudithook(self._refuse)
        return [wall for wall, stands in walls.items() if stands]

    def allow(self, time_s: float, memory_mib: int) -> None:
        """Sets the processor time and memory limits of the next candidate.

        A candidate that set them could have the system kill its process, as though others did.
        """
        self._is_limiting = True
        _limit("RLIMIT_CPU", math.ceil(time.process_time() + time_s) + 1, _CPU_LIMIT_S)
        held = self.held_bytes()
        if held:
            _limit("RLIMIT_AS", held + (memory_mib << 20), _MOST_MIB << 20)
        self._is_limiting = False
        self._lacking.clear()

    def lacking(self) -> list[str]:
        """Lists modules that libraries tried to import since the last `allow`, and did not get."""
        return sorted(self._lacking)

    def held_bytes(self) -> int:
        """Measures the address space of this process; 0 where the system does not report it."""
        if self._sizes < 0:
            return 0
        pages = int(os.pread(self._sizes, 64, 0).split()[0])
        return pages * os.sysconf("SC_PAGE_SIZE")

    def _open_files(self) -> Descriptors:
        reading, writing = self._pipes
        sizes = (self._sizes,) if self._sizes >= 0 else ()
        return Descriptors((reading,), (writing, *_STANDARD_OUTPUTS), sizes)

    def _refuse(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not event.startswith(_REFUSED) or (self._is_limiting and event == _LIMITED):
            return
        if event != "import":
            raise PermissionError(f"a candidate may not cause {event}")
        self.find_spec(str(arguments[0]))

    def find_spec(self, name: str, *_given: object) -> NoReturn:
        """Refuses an import, and notes where it came from."""
        # A library that loads a part of itself late is no fault of the candidate's.
        if _importer() != self._own_name and name not in self._absent:
            self._lacking.add(name)
        raise ImportError("a candidate imports nothing")


def _importer() -> str:
    """Names the file whose code wants to import something."""
    frame = sys._getframe(2)
    while frame.f_back is not None and _is_machinery(frame.f_code.co_filename):
        frame = frame.f_back
    return frame.f_code.co_filename


def _is_machinery(file: str) -> bool:
    return file == __file__ or "importlib" in file


def _has_proc() -> bool:
    return os.path.exists("/proc/self/statm")  # noqa: PTH110 - pathlib is not needed otherwise


def _check_alone() -> None:
    """Makes sure that no other thread stays outside: some walls stand around one thread only."""
    try:
        threads = len(os.listdir("/proc/self/task"))  # noqa: PTH208 - as above
    except OSError:
        return  # a system without that wall
    if threads > 1:
        raise RuntimeError(f"{threads} threads cannot be confined together")


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
