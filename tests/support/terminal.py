"""Runs the real `podium` on a terminal, and interrupts it."""

import os
import pty
import signal
import subprocess
import time

from support.binary import PODIUM, clean_environment


def words_on_terminal(arguments, folder):
    """Gives what a command prints to standard error when that is a terminal, and its output."""
    ours, theirs = pty.openpty()
    environment = clean_environment(folder, TERM="xterm-256color", COLUMNS="120")
    with subprocess.Popen(
        [*PODIUM, *arguments], cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=theirs
    ) as process:
        os.close(theirs)
        printed = b"".join(iter(lambda: _read(ours), b""))
        output = process.stdout.read()
    os.close(ours)
    assert process.returncode == 0, printed
    return printed.decode(), output.decode()


def _read(descriptor):
    try:
        return os.read(descriptor, 4096)
    except OSError:  # Linux reports the end of a terminal as an error
        return b""


def interrupted(arguments, folder, *, after_s=0.0):
    """Interrupts a command some time after its first words; gives its code and later words."""
    with subprocess.Popen(
        [*PODIUM, *arguments],
        cwd=folder,
        env=clean_environment(folder),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        process.stderr.readline()
        time.sleep(after_s)
        process.send_signal(signal.SIGINT)
        output, words = process.communicate()
    return process.returncode, output, words
