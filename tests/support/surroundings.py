"""Fixtures of tests that work as a user does: in a folder of their own, without settings."""

import os
from pathlib import Path

import pytest
from typer.testing import CliRunner

from podium.policies.jit import cache_folder
from podium.sim import kernel
from support.small_trace import write_small_trace

# Read before the tests clean their environment.
ORIGINALS = os.environ.get("PODIUM_TRACES")
COMPILED = cache_folder()


@pytest.fixture
def openb_folder():
    """Names the folder of the original OpenB files."""
    if not ORIGINALS:
        pytest.skip("PODIUM_TRACES does not name a folder with the original OpenB files")
    return Path(ORIGINALS)


@pytest.fixture(autouse=True)
def _clean_surroundings(tmp_path, monkeypatch):
    """Works in an empty folder, without settings of the machine that runs the tests."""
    for name in [name for name in os.environ if name.startswith("PODIUM_")]:
        monkeypatch.delenv(name)
    # Set first, so that what a verb puts there is taken back.
    monkeypatch.setenv("PODIUM_COMPILE_CACHE", "")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.delenv("NO_COLOR", raising=False)
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")


@pytest.fixture
def _warm_cache(monkeypatch):
    """Lets verbs use machine code that the machine keeps; compiles it where it has none."""
    monkeypatch.setenv("PODIUM_COMPILE_CACHE", str(COMPILED or ""))
    if not kernel.is_core_on_disk():
        kernel._core.cache_clear()
    kernel.core()


@pytest.fixture
def small_trace():
    """Writes two nodes and three pods into the working folder."""
    write_small_trace(Path.cwd())


@pytest.fixture
def runner():
    """Runs an app in this process."""
    return CliRunner()
