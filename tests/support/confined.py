"""Runs programs that confine themselves as a worker does, and then try what they must not."""

import json
import os
import subprocess
import sys

from podium.search.sandbox.seccomp import MACHINES

IS_FILTERED = sys.platform == "linux" and os.uname().machine in MACHINES

HEAD = """
import ctypes, errno, json, os, sys
from podium.search.sandbox.confinement import Confinement
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
def call(number, *arguments):
    ctypes.set_errno(0)
    given = [a if isinstance(a, (bytes, type(None))) else ctypes.c_long(a) for a in arguments]
    found = libc.syscall(ctypes.c_long(number), *given)
    return [found, ctypes.get_errno()]
def say(value):
    os.write(1, json.dumps(value).encode() + b"\\n")
parent, target = int(sys.argv[1]), int(sys.argv[2])
"""
ENTER = """
walls = Confinement((3, 4)).enter(os.getppid())
"""


def run_confined(program, target=0, before=""):
    """Runs a program after it has locked itself in; gives its exit status and what it said."""
    done = subprocess.run(
        [sys.executable, "-c", HEAD + before + ENTER + program + "\nos._exit(0)\n",
         str(os.getpid()), str(target)],
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert not done.stderr, done.stderr
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()]
