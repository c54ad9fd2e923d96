"""Gives up privileges, and has the Linux kernel allow this process a few system calls only.

The list says what is allowed: a call that a kernel has tomorrow is refused without a change here.
What is on it was measured with `strace` over real candidates: reading, compiling, simulating,
tuning, running out of memory.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import signal
import struct
import sys
from collections.abc import Iterator
from dataclasses import dataclass

_SET_PARENT_DEATH_SIGNAL, _DROP_BOUNDING, _SET_SECUREBITS = 1, 24, 28
SET_NO_NEW_PRIVILEGES, _GET_NO_NEW_PRIVILEGES, _AMBIENT = 38, 39, 47
_CLEAR_ALL_AMBIENT = 4
# NOROOT, KEEP_CAPS off and NO_CAP_AMBIENT_RAISE, each with the bit that makes it final.
_SECUREBITS = 0x01 | 0x02 | 0x20 | 0x40 | 0x80
_CAPABILITIES = 64
_CAPABILITY_VERSION_3 = 0x20080522
_NOBODY = 65534


def prctl(option: int, *arguments: int) -> int:
    """Asks the kernel to change this process; -1 where it refuses or is not Linux."""
    if sys.platform != "linux":
        return -1
    call = ctypes.CDLL(None, use_errno=True).prctl
    call.argtypes = [ctypes.c_int, *[ctypes.c_ulong] * 4]
    return int(call(option, *arguments, *[0] * (4 - len(arguments))))


def die_with(parent: int) -> bool:
    """Has the kernel kill this process when its parent dies; ends it if that has happened."""
    is_bound = prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL) == 0
    if os.getppid() != parent:  # it died before the kernel knew
        os._exit(0)
    return is_bound


def drop_privileges() -> bool:
    """Gives up root, all capabilities and the ways to gain any; returns whether none is left."""
    if sys.platform != "linux":
        return False
    # The bounding set and the securebits take a capability to change: who has none needs neither.
    for capability in range(_CAPABILITIES):
        prctl(_DROP_BOUNDING, capability)
    prctl(_SET_SECUREBITS, _SECUREBITS)
    prctl(_AMBIENT, _CLEAR_ALL_AMBIENT)
    _leave_root()
    prctl(SET_NO_NEW_PRIVILEGES, 1)
    _set_capabilities_to_none()
    return not any(_capabilities()) and prctl(_GET_NO_NEW_PRIVILEGES) == 1


def _leave_root() -> None:
    """Becomes the user nobody, if there is one: a container may only have root."""
    if os.getuid() != 0:
        return
    for change, given in (
        (os.setgroups, ([],)), (os.setresgid, (_NOBODY,) * 3), (os.setresuid, (_NOBODY,) * 3),
    ):  # fmt: skip
        try:
            change(*given)
        except OSError:
            continue  # capabilities are dropped all the same, and files are out of reach


class _Header(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


_Sets = ctypes.c_uint32 * 6  # effective, permitted and inheritable, the lower 32 and the upper


def _set_capabilities_to_none() -> None:
    header = _Header(_CAPABILITY_VERSION_3, 0)
    ctypes.CDLL(None).capset(ctypes.byref(header), ctypes.byref(_Sets()))


def _capabilities() -> list[int]:
    header, found = _Header(_CAPABILITY_VERSION_3, 0), _Sets(*[1] * 6)
    ctypes.CDLL(None).capget(ctypes.byref(header), ctypes.byref(found))
    return list(found)


_SET_SECCOMP, _MODE_FILTER = 22, 2
_ALLOW = 0x7FFF0000
_REFUSE = 0x00050000 | errno.EPERM
"""What is not listed fails. Libraries ask for files that need not be there, and go on."""

_KILL = 0x80000000
"""Calls through another interface of the kernel, with other numbers, are hostile."""

_LOAD, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_NUMBER_AT, _MACHINE_AT, _ARGUMENTS_AT = 0, 4, 16

MACHINES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_X32 = 0x40000000  # numbers from here are another interface to the same calls

_PROT_NONE, _PROT_READ, _PROT_WRITE, _PROT_EXEC = 0, 1, 2, 4
_PRIVATE_MEMORY = (0x22, 0x4022)  # MAP_PRIVATE | MAP_ANONYMOUS, perhaps MAP_NORESERVE: no file
_DATA = (_PROT_NONE, _PROT_READ, _PROT_READ | _PROT_WRITE)
_OWN_LOCKS = (128, 129, 137, 393)  # FUTEX_WAIT, WAKE and WAIT_BITSET, private to the process
_CLOCKS = (0, 1, 2, 3, 4, 5, 6, 7)  # negative ones are those of other processes
_RLIMIT_CPU, _RLIMIT_AS = 0, 9
_SELF = 0

Call = tuple[int, int]
"""The number of a system call on x86-64 and on arm64."""

NUMBERS: dict[str, Call] = {
    "read": (0, 63), "write": (1, 64), "pread64": (17, 67),
    "mmap": (9, 222), "mprotect": (10, 226), "munmap": (11, 215), "brk": (12, 214),
    "futex": (202, 98), "prlimit64": (302, 261), "sched_getaffinity": (204, 123),
    "clock_gettime": (228, 113), "getcwd": (79, 17), "exit_group": (231, 94),
}  # fmt: skip
"""Every system call that is allowed, some of them with certain arguments only."""


@dataclass(frozen=True, slots=True)
class Descriptors:
    """Which open files may be used, and how."""

    reading: tuple[int, ...] = ()
    writing: tuple[int, ...] = ()
    sizes: tuple[int, ...] = ()  # read at a place of the file

    def conditions(self) -> dict[str, dict[int, tuple[int, ...]]]:
        """Returns the values that each argument of a call may have, by position."""
        return {
            "read": {0: self.reading},
            "write": {0: self.writing},
            "pread64": {0: self.sizes},
            # Machine code is written first and made executable afterwards: never both.
            "mmap": {2: _DATA, 3: _PRIVATE_MEMORY},
            "mprotect": {2: (*_DATA, _PROT_READ | _PROT_EXEC)},
            "futex": {1: _OWN_LOCKS},
            "prlimit64": {0: (_SELF,), 1: (_RLIMIT_CPU, _RLIMIT_AS)},
            "sched_getaffinity": {0: (_SELF,)},
            "clock_gettime": {0: _CLOCKS},
        }


def allowed_numbers(machine: str) -> frozenset[int]:
    """Lists the numbers of the calls that are allowed on a machine."""
    index = list(MACHINES).index(machine)
    return frozenset(numbers[index] for numbers in NUMBERS.values())


def refuse_system_calls(open_files: Descriptors) -> bool:
    """Installs the filter; returns whether the kernel accepted it. It cannot be removed again."""
    machine = platform.machine()
    if sys.platform != "linux" or machine not in MACHINES:
        return False
    program = filter_program(machine, open_files)
    code = ctypes.create_string_buffer(program, len(program))

    class Filter(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("code", ctypes.c_void_p))

    described = Filter(len(program) // 8, ctypes.addressof(code))
    if prctl(SET_NO_NEW_PRIVILEGES, 1) != 0:
        return False
    return prctl(_SET_SECCOMP, _MODE_FILTER, ctypes.addressof(described)) == 0


def filter_program(machine: str, open_files: Descriptors) -> bytes:
    """Writes the filter for the kernel's machine: it kills, allows or refuses by call."""
    index, conditions = list(MACHINES).index(machine), open_files.conditions()
    steps = [
        _step(_LOAD, _MACHINE_AT),
        _step(_EQUAL, MACHINES[machine], 1, 0),
        _step(_RETURN, _KILL),
        _step(_LOAD, _NUMBER_AT),
        _step(_AT_LEAST, _X32, 0, 1),
        _step(_RETURN, _KILL),
    ]
    for name, numbers in NUMBERS.items():
        body = list(_body(conditions.get(name, {})))
        steps += [_step(_EQUAL, numbers[index], 0, len(body)), *body]
    return b"".join([*steps, _step(_RETURN, _REFUSE)])


def _body(conditions: dict[int, tuple[int, ...]]) -> Iterator[bytes]:
    """Allows a call if its arguments are as they must be; ends in every case."""
    for place, values in conditions.items():
        # Nothing that the kernel heeds stands in the upper half of any of these.
        yield _step(_LOAD, _ARGUMENTS_AT + 8 * place)
        for i, value in enumerate(values):
            yield _step(_EQUAL, value, len(values) - i, 0)
        yield _step(_RETURN, _REFUSE)
    yield _step(_RETURN, _ALLOW)


def _step(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)
