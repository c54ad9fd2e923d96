"""Runs the real `podium` in a process of its own."""

import os
import subprocess
import sys
from pathlib import Path

PODIUM = [str(Path(sys.executable).with_name("podium"))]
TESTS = Path(__file__).resolve().parents[1]
# What a child does to itself before it becomes the command. A function that runs after fork would
# do the same, but libraries with threads that a test has loaded (JAX) warn of every fork.
FIRST = "import os, sys; {statement}; os.execv(sys.argv[1], sys.argv[1:])"


def podium_after(statement):
    """Gives the command that executes a statement of Python and then is podium."""
    return [sys.executable, "-c", FIRST.format(statement=statement), *PODIUM]


def run(command, folder, **environ):
    """Runs a command in a folder, free of the settings of the machine that tests."""
    return subprocess.run(
        command,
        cwd=folder,
        env=clean_environment(folder, **environ),
        capture_output=True,
        text=True,
    )


def clean_environment(folder, **environ):
    """Gives an environment without settings, with home folders of its own."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("PODIUM_") and name not in ("NO_COLOR", "FORCE_COLOR")
    }
    homes = {
        "XDG_CONFIG_HOME": str(folder / ".config"),
        "XDG_DATA_HOME": str(folder / ".data"),
        "XDG_STATE_HOME": str(folder / ".state"),
        "PODIUM_TRACES_CACHE": str(folder / ".traces"),
        "PYTHONPATH": str(TESTS),
    }
    return {**kept, **homes, **environ}
