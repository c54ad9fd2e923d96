"""Runs the command line: `podium`, or `python -m podium`."""

from __future__ import annotations

import os
import signal

INTERRUPTED = 130


def main() -> None:
    """Runs the command line of this process; ctrl-C ends it quietly from the very beginning on."""
    before = signal.getsignal(signal.SIGINT)
    is_usual = before is signal.default_int_handler
    if is_usual:  # imports take a while, and an interrupt in their middle would show a traceback
        signal.signal(signal.SIGINT, lambda *_: os._exit(INTERRUPTED))
    from podium.cli.main import main as run

    if is_usual:
        signal.signal(signal.SIGINT, before)
    run()


if __name__ == "__main__":
    main()
