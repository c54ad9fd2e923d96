"""Runs the real `podium` in a process of its own."""

import os
import subprocess
import sys
from pathlib import Path

PODIUM = [str(Path(sys.executable).with_name("podium"))]
TESTS = Path(__file__).resolve().parents[1]


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
        "PODIUM_TRACES_CACHE": str(folder / ".traces"),
        "PYTHONPATH": str(TESTS),
    }
    return {**kept, **homes, **environ}
