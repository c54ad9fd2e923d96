import subprocess
import sys
import tempfile

import pytest

from podium.kube.local.folder import PREFIX, temporary_folder

HOLD = """
import sys, time
from podium.kube.local.folder import temporary_folder
with temporary_folder() as folder:
    print(folder, flush=True)
    time.sleep(300)
"""


@pytest.fixture(autouse=True)
def _own_temporary_files(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)


def test_a_folder_goes_with_its_block(tmp_path):
    with temporary_folder() as folder:
        (folder / "etcd").mkdir()
    assert not list(tmp_path.iterdir())


def test_what_the_killed_left_is_removed_and_what_is_in_use_is_not(tmp_path):
    with subprocess.Popen([sys.executable, "-c", HOLD], stdout=subprocess.PIPE, text=True) as other:
        left = other.stdout.readline().strip()
        with temporary_folder():
            assert left in map(str, tmp_path.iterdir())
        other.kill()
        other.wait()
        with temporary_folder() as own:
            assert list(tmp_path.iterdir()) == [own]


def test_folders_of_others_stay(tmp_path):
    (tmp_path / f"{PREFIX}unknown").mkdir()
    with temporary_folder():
        assert (tmp_path / f"{PREFIX}unknown").is_dir()
