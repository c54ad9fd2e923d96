"""Runs the real `podium` on a terminal, and interrupts it."""

import os
import pty
import select
import signal
import subprocess
import time

from support.binary import PODIUM, clean_environment, podium_after

# Makes the terminal the process's own, so that ctrl-C becomes a signal there.
OWN_TERMINAL = "import fcntl, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0)"


def words_on_terminal(arguments, folder):
    """Gives what a command prints to standard error when that is a terminal, and its output."""
    ours, theirs = pty.openpty()
    environment = clean_environment(folder, TERM="xterm-256color", COLUMNS="120")
    with subprocess.Popen(
        [*PODIUM, *arguments], cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=theirs
    ) as process:
        os.close(theirs)
        printed = b"".join(iter(lambda: read_some(ours), b""))
        output = process.stdout.read()
    os.close(ours)
    assert process.returncode == 0, printed
    return printed.decode(), output.decode()


def read_some(descriptor):
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


def pressed_ctrl_c(arguments, folder, *, cue, after_s=3.0, deadline_s=300.0):
    """Presses ctrl-C on a command's own terminal some time after the cue; gives code and words."""
    ours, theirs = pty.openpty()
    environment = clean_environment(folder, TERM="xterm-256color", COLUMNS="120")
    process = subprocess.Popen(
        [*podium_after(OWN_TERMINAL), *arguments],
        cwd=folder,
        env=environment,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    try:
        words = _until(ours, cue.encode(), deadline_s)
        time.sleep(after_s)
        os.write(ours, b"\x03")
        words += _until(ours, None, deadline_s)
        # A terminal drops what it has not shown yet when ctrl-C is pressed, half a letter too.
        return process.wait(deadline_s), words.decode(errors="replace")
    finally:
        process.kill()
        process.wait()
        os.close(ours)


def _until(descriptor, cue, deadline_s):
    """Reads until the cue is seen, or to the end where there is none."""
    seen, end_s = b"", time.monotonic() + deadline_s
    while cue is None or cue not in seen:
        left_s = end_s - time.monotonic()
        if left_s <= 0 or not select.select([descriptor], [], [], left_s)[0]:
            raise AssertionError(f"no {cue!r} within {deadline_s} s: {seen[-500:]!r}")
        read = read_some(descriptor)
        if not read:
            assert cue is None, f"it ended before {cue!r}: {seen[-500:]!r}"
            break
        seen += read
    return seen
