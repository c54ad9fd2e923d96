"""Asks the Linux kernel to refuse files, sockets and processes to this process, for good."""

from __future__ import annotations

import ctypes
import errno
import platform
import struct
import sys

_PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP = 38, 22
_MODE_FILTER = 2
_ALLOW = 0x7FFF0000
_REFUSE = 0x00050000 | errno.EPERM
_LOAD, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_NUMBER_AT, _MACHINE_AT = 0, 4

_MACHINES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}

_REFUSED = {
    "x86_64": (
        2, 257, 437, 85,  # open, openat, openat2, creat
        41, 53, 42, 49, 50, 43, 288, 44, 46, 307,  # socket and what sends
        57, 58, 56, 435, 59, 322,  # fork, vfork, clone, clone3, execve, execveat
        62, 200, 234, 101, 310, 311, 434, 424,  # signals and other processes
        87, 263, 82, 264, 316, 83, 258, 84, 86, 265, 88, 266,  # names of files
        90, 91, 268, 92, 93, 260, 76, 77, 133, 259,  # rights, sizes and devices
        165, 166, 161, 308, 272, 321, 425, 319, 298, 323,  # the system
    ),
    "aarch64": (
        56, 437,
        198, 199, 203, 200, 201, 202, 242, 206, 211, 269,
        220, 435, 221, 281,
        129, 130, 131, 117, 270, 271, 434, 424,
        35, 38, 276, 34, 37, 36,
        52, 53, 55, 54, 45, 46, 33,
        40, 39, 51, 268, 97, 280, 425, 279, 241, 282,
    ),
}  # fmt: skip
"""Numbers of system calls by machine, in the same order."""

_X32 = 0x40000000  # numbers from here are another interface to the same calls


def refuse_system_calls() -> bool:
    """Installs the filter; tells whether the kernel took it. It cannot be taken off again."""
    machine = platform.machine()
    if sys.platform != "linux" or machine not in _MACHINES:
        return False
    program = _program(machine)
    code = ctypes.create_string_buffer(program, len(program))

    class Filter(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("code", ctypes.c_void_p))

    described = Filter(len(program) // 8, ctypes.addressof(code))
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    prctl.argtypes = [ctypes.c_int, *[ctypes.c_ulong] * 4]
    if prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        return False
    address = ctypes.addressof(described)
    return bool(prctl(_PR_SET_SECCOMP, _MODE_FILTER, address, 0, 0) == 0)


def _program(machine: str) -> bytes:
    numbers = _REFUSED[machine]
    # Jumps count the instructions to skip; the last but one allows and the last refuses.
    steps = [
        _step(_LOAD, _MACHINE_AT),
        _step(_EQUAL, _MACHINES[machine], 0, len(numbers) + 3),
        _step(_LOAD, _NUMBER_AT),
        _step(_AT_LEAST, _X32, len(numbers) + 1, 0),
        *(_step(_EQUAL, number, len(numbers) - i, 0) for i, number in enumerate(numbers)),
        _step(_RETURN, _ALLOW),
        _step(_RETURN, _REFUSE),
    ]
    return b"".join(steps)


def _step(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)
