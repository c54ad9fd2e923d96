"""Starts a program under a kernel that, from its view, takes no filter of system calls.

python -m support.unfiltered PROGRAM ARGUMENTS
"""

import ctypes
import errno
import os
import platform
import struct
import sys

_LOAD, _EQUAL, _RETURN = 0x20, 0x15, 0x06
_PRCTL = {"x86_64": 157, "aarch64": 167}


def refuse_filters():
    """Has the kernel answer to PR_SET_SECCOMP as one does that was built without it."""
    libc = ctypes.CDLL(None, use_errno=True)
    steps = [
        (_LOAD, 0, 0, 0),
        (_EQUAL, 0, 3, _PRCTL[platform.machine()]),
        (_LOAD, 0, 0, 16),
        (_EQUAL, 0, 1, 22),
        (_RETURN, 0, 0, 0x00050000 | errno.EINVAL),
        (_RETURN, 0, 0, 0x7FFF0000),
    ]
    code = b"".join(struct.pack("=HBBI", *step) for step in steps)
    kept = ctypes.create_string_buffer(code, len(code))
    filter_of = struct.pack("@HxxxxxxQ", len(steps), ctypes.addressof(kept))
    libc.prctl(38, 1, 0, 0, 0)
    if libc.prctl(22, 2, ctypes.c_char_p(filter_of), 0, 0) != 0:
        sys.exit(77)


if __name__ == "__main__":
    refuse_filters()
    os.execv(sys.argv[1], sys.argv[1:])
