import os

import pytest
from typer.testing import CliRunner


@pytest.fixture(autouse=True)
def _clean_surroundings(tmp_path, monkeypatch):
    """Works in an empty folder, without settings of the machine that runs the tests."""
    for name in [name for name in os.environ if name.startswith("PODIUM_")]:
        monkeypatch.delenv(name)
    # Set first, so that what a verb puts there is taken back.
    monkeypatch.setenv("PODIUM_COMPILE_CACHE", "")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("NO_COLOR", raising=False)
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")


@pytest.fixture
def runner():
    """Runs an app in this process."""
    return CliRunner()
