"""Forges what worker processes say: by a program in their place, or by a candidate in one."""

import json
import struct

from podium.evaluation.measures import FIGURES

KIND = "inflation"
OS = '__builtins__["__import__"]("os")'
HUGE = 10**400
VALUES = dict.fromkeys(FIGURES[KIND], 50.0)
DECISIONS = {"signature": "0" * 16, "behaviour": [0.5, 0.5, 0.5, 0.0]}
CASE = {"case": 0, "values": VALUES, "held": [0, 60]}
LOST = {"stranded": 1.0, "broken": 0.5, "idle": 0}
LOSSES = {"losses": 0, "values": {**LOST, "8-gpu": 100.0}}
DONE = {"done": True, "reason": "", "spoiled": False}

_READY = """
import struct, sys, time
def hear():
    (size,) = struct.unpack(">I", sys.stdin.buffer.read(4))
    sys.stdin.buffer.read(size)
def say(told):
    sys.stdout.buffer.write(told)
    sys.stdout.buffer.flush()
def answer(walls, told):
    hear()
    ready = b'{"ready": true, "baseline": [], "losses": [], "walls": ' + walls + b"}"
    say(struct.pack(">I", len(ready)) + ready)
    hear()
    say(bytes.fromhex(told))
    time.sleep(60)
"""


def packed(*messages):
    """Writes messages as they go over a pipe."""
    bodies = [json.dumps(each).encode() for each in messages]
    return b"".join(struct.pack(">I", len(body)) + body for body in bodies)


def imposter(*messages, walls=()):
    """Writes a program that gets ready like a worker and answers with the messages."""
    told = json.dumps(list(walls)).encode()
    return _READY + f'answer({told!r}, "{packed(*messages).hex()}")\n'


def forging(*messages, head=""):
    """Writes a candidate that answers for its process."""
    answer = f'{OS}.write(4, bytes.fromhex("{packed(*messages).hex()}"))'
    # It waits, so that what it said is not mixed up with what the process says. Score functions
    # are translated before they are run; what stands at the top of a file is run as it is.
    return f"{head}{answer}\nwhile True:\n    pass\n\n\ndef score(pod, node):\n    return 1\n"
