"""Fills the disk under every verb that writes: exit 3 in three lines, and no half of a file."""

import json
import subprocess
from pathlib import Path

import pytest

from support.binary import PODIUM, clean_environment, podium_after, run

SMALL = ("--nodes", "20", "--pods", "200")
MOST_BYTES = 512  # of one file, as on a disk that has no more room
NO_ROOM = f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, ({MOST_BYTES},) * 2)"


def podium_on_full_disk(folder, *arguments):
    """Runs a command that can write no more than a few bytes to any file."""
    return subprocess.run(
        [*podium_after(NO_ROOM), *arguments],
        cwd=folder,
        env=clean_environment(folder),
        capture_output=True,
        text=True,
    )


@pytest.fixture(scope="module", autouse=True)
def _compiled(tmp_path_factory):
    run([*PODIUM, "simulate", *SMALL], tmp_path_factory.mktemp("compile"))


@pytest.mark.deep
@pytest.mark.parametrize(
    "arguments",
    [
        ("simulate", *SMALL, "--placements", "made.csv"),
        ("simulate", *SMALL, "--placements", "made.parquet"),
        ("simulate", *SMALL, "--timeline", "made.csv"),
        ("simulate", *SMALL, "--timeline", "made.json"),
        ("learn", "--seeds", "1", "--jobs", "20", "--plot", "made.png"),
        ("learn", "--seeds", "1", "--jobs", "20", "--plot", "made.svg"),
        ("traces", "generate", "made.yaml", *SMALL),
        ("traces", "generate", "made.csv", *SMALL),
        ("traces", "generate", "made.csv.gz", "--nodes", "900"),
        ("traces", "convert", "openb:16", "made.json"),
    ],
    ids=" ".join,
)
def test_a_file_that_has_no_room_is_told_and_leaves_nothing(tmp_path, arguments):
    done = podium_on_full_disk(tmp_path, *arguments)
    assert done.returncode == 3, done.stderr
    what, where, advice = done.stderr.splitlines()[-3:]
    assert what.startswith("error: no space left to write: ")
    assert where.startswith("  at:  made")
    assert advice.startswith("  try: free some space")
    assert [path.name for path in tmp_path.iterdir() if "made" in path.name] == []


def test_a_file_that_was_there_stays_as_it_was(tmp_path):
    (tmp_path / "made.csv").write_text("precious\n")
    done = podium_on_full_disk(tmp_path, "simulate", *SMALL, "--placements", "made.csv")
    assert done.returncode == 3
    assert (tmp_path / "made.csv").read_text() == "precious\n"


def test_a_search_without_room_for_its_folder_leaves_no_run(tmp_path):
    done = podium_on_full_disk(tmp_path, "search", "run", "--evaluations", "3")
    assert done.returncode == 3, done.stderr
    assert len(done.stderr.splitlines()) == 3
    assert list(tmp_path.glob(".data/podium/runs/*")) == []


@pytest.mark.parametrize(
    "arguments",
    [
        ("--help",), ("--version",), ("policies", "list"), ("policies", "list", "--json"),
        ("simulate", *SMALL, "--protocol", "inflation", "--json"),
        ("policies", "check", "first-fit"), ("traces", "list"),
    ],
    ids=" ".join,
)  # fmt: skip
def test_an_output_without_room_is_told(tmp_path, arguments):
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [*PODIUM, *arguments], cwd=tmp_path, env=clean_environment(tmp_path),
            stdout=full, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
    assert done.returncode == 3, done.stderr
    if "--json" in arguments:
        assert json.loads(done.stderr)["error"]["where"] == "standard output"
    else:
        assert done.stderr.splitlines()[:2] == [
            "error: no space left to write: No space left on device",
            "  at:  standard output",
        ]


def test_words_without_room_stop_no_work(tmp_path):
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [*PODIUM, "simulate", *SMALL, "--ratio", "2"], cwd=tmp_path,
            env=clean_environment(tmp_path), stdout=subprocess.PIPE, stderr=full, text=True,
        )  # fmt: skip
    assert done.returncode == 0
    assert "digest" in done.stdout


def test_a_device_is_written_to_and_stays_one(tmp_path):
    (tmp_path / "made.csv").symlink_to("/dev/full")
    done = run([*PODIUM, "simulate", *SMALL, "--placements", "made.csv"], tmp_path)
    assert done.returncode == 3
    assert (tmp_path / "made.csv").is_symlink()
