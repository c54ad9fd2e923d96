import os
import shlex
import subprocess
from pathlib import Path

import pytest

from podium.errors import MissingError
from podium.kube.local.programs import BUILD_TOOL, KUBERNETES, PROGRAMS, find_programs


def fill(folder, *names):
    folder.mkdir(parents=True)
    for name in names:
        (folder / name).touch(mode=0o755)
    return folder


def test_the_folder_that_is_named_comes_before_the_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    cached = fill(tmp_path / "podium" / "kube" / KUBERNETES, *PROGRAMS)
    assert find_programs({}) == cached
    named = fill(tmp_path / "named", *PROGRAMS)
    assert find_programs({"KUBEBUILDER_ASSETS": str(named)}) == named


def test_what_is_missing_is_named_with_a_command_that_exists(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(
        MissingError, match="needs etcd, kube-apiserver and kube-scheduler, and"
    ) as e:
        find_programs({})
    assert e.value.where == str(tmp_path / "podium" / "kube" / KUBERNETES)
    shell, tool = shlex.split(e.value.hint, comments=True)
    assert (shell, Path(tool)) == ("bash", BUILD_TOOL)
    assert BUILD_TOOL.is_file()


def test_a_folder_that_lacks_one_is_the_one_to_be_filled(tmp_path):
    named = fill(tmp_path / "named", "etcd", "kube-apiserver")
    with pytest.raises(MissingError, match="needs kube-scheduler, and it is not there") as e:
        find_programs({"KUBEBUILDER_ASSETS": str(named)})
    assert shlex.split(e.value.hint, comments=True)[2] == str(named)


def test_the_tool_builds_where_programs_are_looked_for(tmp_path):
    """Without Go it builds nothing, but says what it would need; with all there, where they are."""
    folder = fill(tmp_path / "podium" / "kube" / KUBERNETES)
    for name in (*PROGRAMS, "kwok"):
        version = {"etcd": "3.6.8", "kwok": "v0.8.0"}.get(name, KUBERNETES)
        (folder / name).write_text(f"#!/bin/sh\necho version {version} is this\n")
        (folder / name).chmod(0o755)
    environ = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    done = subprocess.run(["bash", BUILD_TOOL], env=environ, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, f"{folder}\n"), done.stderr
