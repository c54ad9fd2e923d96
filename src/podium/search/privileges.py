"""Gives up what the Linux kernel grants a process beyond its memory and processor time."""

from __future__ import annotations

import ctypes
import os
import signal
import sys

_SET_PARENT_DEATH_SIGNAL, _DROP_BOUNDING, _SET_SECUREBITS = 1, 24, 28
SET_NO_NEW_PRIVILEGES, _GET_NO_NEW_PRIVILEGES, _AMBIENT = 38, 39, 47
_CLEAR_ALL_AMBIENT = 4
# NOROOT, KEEP_CAPS off and NO_CAP_AMBIENT_RAISE, each with the bit that makes it final.
_SECUREBITS = 0x01 | 0x02 | 0x20 | 0x40 | 0x80
_CAPABILITIES = 64
_CAPABILITY_VERSION_3 = 0x20080522
_NOBODY = 65534


def prctl(option: int, *arguments: int) -> int:
    """Asks the kernel to change this process; -1 where it refuses, or is another one."""
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
    """Gives up root, all capabilities and the ways to gain any; tells whether none is left."""
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
    """Becomes nobody, where there is such a user: a container may know root alone."""
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
