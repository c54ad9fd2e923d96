"""Lets tests run alike wherever they are started."""

import os
import signal
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, settings

# A busy machine draws examples slowly, which says nothing of what is tested.
settings.register_profile("podium", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("podium")


def pytest_configure(config):
    # A shell that starts the suite in the background lets it, and all it starts, ignore ctrl-C.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # Under nohup they ignore that their terminal is gone, too.
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    if not hasattr(config, "workerinput"):  # workers have the environment of their controller
        leave_home(config)


def leave_home(config):
    """Keeps runs, settings and trust of the person who starts the tests out of them."""
    home = tempfile.TemporaryDirectory(prefix="podium-home-")
    config.add_cleanup(home.cleanup)
    for name in ("CONFIG", "DATA", "STATE"):
        os.environ[f"XDG_{name}_HOME"] = str(Path(home.name) / name.lower())
