import subprocess
import sys
from importlib import resources
from pathlib import Path

import pytest

from support.traces import originals

TOOL = Path(__file__).parents[3] / "tools" / "profile_openb.py"


def run(*arguments):
    command = [sys.executable, str(TOOL), *map(str, arguments)]
    return subprocess.run(command, check=False, capture_output=True, text=True)


@pytest.mark.openb
def test_the_embedded_profile_is_what_the_original_files_give(tmp_path):
    done = run(originals(), tmp_path / "openb.json")
    assert done.returncode == 0, done.stderr
    embedded = resources.files("podium.traces").joinpath("data/openb.json").read_bytes()
    assert (tmp_path / "openb.json").read_bytes() == embedded


def test_without_a_folder_the_tool_says_how_it_is_called():
    done = run()
    assert done.returncode == 1
    assert "usage: python tools/profile_openb.py FOLDER" in done.stderr
