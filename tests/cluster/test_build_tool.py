import shutil
import subprocess
from pathlib import Path

import pytest

TOOL = Path(__file__).parents[2] / "tools" / "build_control_plane.sh"
WRITTEN = {
    "etcd": "etcd Version: 3.6.8\nGit SHA: none",
    "kube-apiserver": "Kubernetes v1.36.4",
    "kube-scheduler": "Kubernetes v1.36.4",
    "kwok": "kwok version v0.8.0 go1.26.8 (linux/amd64)",
}


@pytest.fixture
def built(tmp_path):
    """Fills a folder with programs that only say their versions."""
    folder = tmp_path / "built"
    folder.mkdir()
    for name, version in WRITTEN.items():
        write(folder / name, version)
    return folder


def write(program, version):
    program.write_text(f"#!/bin/sh\nprintf '{version}\\n'\n")
    program.chmod(0o755)


def run(*arguments, path):
    """Runs the tool on a machine without Go."""
    path.mkdir()
    (path / "bash").symlink_to(shutil.which("bash"))
    return subprocess.run(
        [shutil.which("bash"), TOOL, *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": str(path), "HOME": str(path)},
    )


def test_programs_that_are_there_are_not_built_again(built, tmp_path):
    done = run(built, path=tmp_path / "path")
    assert (done.returncode, done.stdout) == (0, f"{built}\n")
    assert done.stderr.count("is there") == 4


@pytest.mark.parametrize("version", ["Kubernetes v1.36.40", "Kubernetes v0.0.0-master+1"])
def test_a_program_of_another_version_is_built_anew_for_which_go_is_needed(
    built, tmp_path, version
):
    write(built / "kube-scheduler", version)
    done = run(built, path=tmp_path / "path")
    assert (done.returncode, done.stdout) == (3, "")
    assert "needs Go 1.26.0 or newer on the path: https://go.dev/dl" in done.stderr
    assert (built / "kube-scheduler").exists()
