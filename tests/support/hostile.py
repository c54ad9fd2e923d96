"""Holds candidates that want out, want more, or never end, with the gate that stops each.

Most stand in `hostile.txt`, under a line `=== name | gate | part of the reason`.
"""

from pathlib import Path
from typing import NamedTuple

from podium.search.candidate.verdict import ALLOWLIST, SIGNATURE, SYNTAX

GOOD = '''"""Prefers the fullest node. An important note: import, eval and open are words."""


def score(pod, node):
    # It is important that comments may say anything: __class__, while True, os.system.
    return -node.cpu_milli_left - sum(node.gpu_milli_left)
'''
_PLAIN = "def score(pod, node):\n    return 1.0\n"
_RETURN = "def score(pod, node):\n    return "
_MARK = "=== "


class Hostile(NamedTuple):
    """Names a candidate, the gate that stops it, and part of what its author is told."""

    name: str
    gate: str
    reason: str
    text: str


def hostile_candidates():
    """Gives all of them."""
    text = Path(__file__).with_suffix(".txt").read_text(encoding="utf-8")
    written = [_read(part) for part in ("\n" + text).split("\n" + _MARK)[1:]]
    return [*_GENERATED, *written]


def _read(part):
    title, _, text = part.partition("\n")
    name, gate, reason = (word.strip() for word in title.split("|"))
    return Hostile(name, gate, reason, text)


def _loops(depth):
    lines = [f"{'    ' * (i + 1)}for i{i} in range(9):" for i in range(depth)]
    return "\n".join(["def score(pod, node):", *lines, "    " * (depth + 1) + "return 1.0", ""])


_GENERATED = [
    Hostile("an empty file", SYNTAX, "is empty", ""),
    Hostile("blanks alone", SYNTAX, "is empty", "\n  \n"),
    Hostile("a fenced block", SYNTAX, "not Python", f"```python\n{GOOD}\n```"),
    Hostile("null bytes", SYNTAX, "null", GOOD + "\0"),
    Hostile("more than 20 kB", SYNTAX, "20,000 at most", GOOD + "# filler\n" * 3000),
    Hostile("a thousand brackets", SYNTAX, "not Python", _RETURN + "(" * 1000),
    Hostile("ten thousand signs", SYNTAX, "not Python", _RETURN + "-" * 10000 + "1"),
    Hostile("a literal too long to read", SYNTAX, "not Python", _RETURN + "9" * 5000),
    Hostile("a giant literal", ALLOWLIST, "beyond 2**53", _RETURN + "9" * 400),
    Hostile("deep arithmetic", ALLOWLIST, "nested deeper", _RETURN + "1+(" * 60 + "1" + ")" * 60),
    Hostile("a long chain", ALLOWLIST, "nested deeper", _RETURN + "pod" + ".gang" * 100),
    Hostile("nested loops", ALLOWLIST, "more than 3 loops", _loops(5)),
    Hostile("a decorator", ALLOWLIST, "decorator", f"@property\n{_PLAIN}"),
    Hostile("another name", SIGNATURE, "no function score", _PLAIN.replace("score", "rate")),
    Hostile("score twice", ALLOWLIST, "defines score() twice", _PLAIN + _PLAIN),
]
