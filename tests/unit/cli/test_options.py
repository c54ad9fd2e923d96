import os
from pathlib import Path

from podium.cli.main import app


def test_a_cache_folder_from_a_file_reaches_processes_that_are_started_later(runner):
    Path("podium.toml").write_text('[compile]\ncache = "here"\n')
    runner.invoke(app, ["trust"])
    runner.invoke(app, ["policies", "list"])
    assert os.environ["PODIUM_COMPILE_CACHE"] == str(Path("here").absolute())


def test_the_default_cache_folder_leaves_the_environment_alone(runner):
    runner.invoke(app, ["policies", "list"])
    assert os.environ["PODIUM_COMPILE_CACHE"] == ""
